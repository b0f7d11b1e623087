"""How large the tree is: `python -m deploy.reference.size [ROOT]` prints it as TOML.

`make size` writes it to SIZE.toml, above which a test fails: what grows is raised in the commit
that needs it, whose message says why.

Python is counted in nodes of its syntax tree, which no layout changes; docstrings count as one node
each, comments as none. SQL, templates, JavaScript and CSS are counted in bytes. Beside them stand
the numbers of what a user or an operator meets; not those of another checkout, ROOT.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("contracts", "libs", "services", "deploy", "benchmarks", "tests")
DEEP = frozenset({"libs", "services"})
"""Folders whose parts are counted apart."""
PRODUCT = ("contracts", "libs", "services")
OTHER = (".sql", ".html", ".jinja", ".js", ".css")
NOT_OURS = "vendor"

Sizes = Mapping[str, Mapping[str, int]]


def python_nodes(root: Path) -> Mapping[str, int]:
    """Nodes of Python by part of the tree: `libs/bus`, `tests`, and the product as a whole."""
    counted: Counter[str] = Counter()
    for path, part in _files(root, (".py",)):
        nodes = sum(1 for _ in ast.walk(ast.parse(path.read_bytes())))
        counted[part] += nodes
        if part.startswith(PRODUCT):
            counted["product"] += nodes
    return counted


def other_bytes(root: Path) -> Mapping[str, int]:
    """Bytes of the product's SQL, templates, JavaScript and CSS, by their kind."""
    counted: Counter[str] = Counter()
    for path, part in _files(root, OTHER):
        if part.startswith(PRODUCT) and NOT_OURS not in path.parts:
            counted[path.suffix[1:]] += path.stat().st_size
    return counted


def surface() -> Mapping[str, int]:
    """How many commands, settings, paths and the like there are."""
    from contracts.audit import EventType  # noqa: PLC0415 - the counts above need no product
    from deploy.reference import errors_page  # noqa: PLC0415
    from libs.runtime.settings import all_settings  # noqa: PLC0415
    from libs.telemetry.metrics import all_metrics  # noqa: PLC0415
    from services.cli.shell.examples import EXAMPLES  # noqa: PLC0415

    migrations = ROOT / "libs/postgres/migrations"
    tables = re.compile(r"^create table", re.MULTILINE | re.IGNORECASE)
    routes = re.compile(r"^@[a-z]+\.(get|post|put|delete)\(", re.MULTILINE)
    http = ROOT / "services/console/http"
    return {
        "commands": len(EXAMPLES),
        "error_codes": errors_page.table().count("\n| `"),
        "event_types": len(EventType),
        "http_paths": sum(len(routes.findall(path.read_text())) for path in http.glob("*.py")),
        "metrics": len(all_metrics()),
        "settings": len(list(all_settings())),
        "tables": sum(len(tables.findall(path.read_text())) for path in migrations.glob("*.sql")),
    }


def sizes(root: Path = ROOT) -> Sizes:
    """All numbers by their group."""
    counted = {"python_nodes": python_nodes(root), "bytes": other_bytes(root)}
    return counted | ({"counts": surface()} if root == ROOT else {})


def written(counted: Sizes) -> str:
    """The numbers as TOML."""
    groups = (
        f"\n[{group}]\n" + "".join(f'"{name}" = {numbers[name]}\n' for name in sorted(numbers))
        for group, numbers in counted.items()
    )
    return "".join(groups).lstrip()


def grown(now: Sizes, before: Sizes) -> list[str]:
    """What is more than before, a line each: the group, the name and both numbers."""
    return [
        f"{group}.{name}: {before[group].get(name, 0):,} -> {number:,}"
        for group, numbers in now.items()
        for name, number in numbers.items()
        if number > before[group].get(name, 0)
    ]


def _files(root: Path, kinds: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    """Files of these kinds, each with the part of the tree that it counts to."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in kinds:
                inner = path.relative_to(root / folder).parts
                is_deep = folder in DEEP and len(inner) > 1
                yield path, f"{folder}/{inner[0]}" if is_deep else folder


def main() -> None:
    """Print the counts, of this tree or of another checkout."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    sys.stdout.write(written(sizes(root)))


if __name__ == "__main__":
    main()
