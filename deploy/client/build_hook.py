"""Make the client's wheel: the desk's contracts, and what of its libraries the client needs.

Their imports begin with `contracts` and `libs`. In an environment that others use those names would
collide, so the copies in the wheel import one another from `deskbus_client`.
"""

import ast
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TREE = Path(__file__).parents[2]
OWN = Path(__file__).parent / "deskbus_client"
HOMES = {"contracts": "deskbus_client.contracts", "libs": "deskbus_client._libs"}
"""Where each package of the tree stands in the wheel."""


class ClientBuildHook(BuildHookInterface[Any]):
    """Called by hatchling for the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Add the copies; `build_data` is hatchling's."""
        copies = Path(tempfile.mkdtemp(prefix="deskbus-client-"))
        for number, path in enumerate((*sorted(OWN.rglob("*.py")), *_needed())):
            copy = copies / f"{number}.py"
            copy.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
            build_data["force_include"][str(copy)] = home(path)


def home(path: Path) -> str:
    """Where a file of the tree stands in the wheel."""
    if path.is_relative_to(OWN):
        return str(path.relative_to(OWN.parent))
    package, *rest = path.relative_to(TREE).parts
    return "/".join((*HOMES[package].split("."), *rest))


def rewritten(source: str) -> str:
    """The source with its imports from the new places."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
            continue
        package, dot, rest = node.module.partition(".")
        if package in HOMES:
            line = lines[node.lineno - 1]
            new = HOMES[package] + dot + rest
            lines[node.lineno - 1] = line.replace(f"from {node.module} ", f"from {new} ", 1)
    return "".join(lines)


def _needed() -> Sequence[Path]:
    """All contracts, and the modules of libs that the client imports, and those that these do."""
    found: set[Path] = set()
    left = [*OWN.rglob("*.py"), *(TREE / "contracts").rglob("*.py")]
    while left:
        path = left.pop()
        if path in found:
            continue
        found.add(path)
        left += _imported(path)
    return sorted(path for path in found if not path.is_relative_to(OWN))


def _imported(path: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                if name.partition(".")[0] in HOMES:
                    yield from _files(name)


def _files(name: str) -> Iterator[Path]:
    """The module's file, and those of the packages that it is in."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        place = TREE.joinpath(*parts[:count])
        yield from filter(Path.is_file, (place.with_suffix(".py"), place / "__init__.py"))
