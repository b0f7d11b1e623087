"""How the tree is built: `python -m benchmarks.house [ROOT]`.

Files, lines and their causes (code, docstrings, comments, imports), lengths of files and functions,
the largest folder, and arrows: imports between two parts of one folder (its files and its folders),
of as many as there could be. ROOT is another checkout to compare with; nothing of it is run.
"""

import argparse
import ast
import io
import statistics
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from benchmarks.report import table

PACKAGES: Final = ("contracts", "libs", "services", "tests", "benchmarks")
PRODUCT: Final = PACKAGES[:3]
FOLDERS_SHOWN: Final = 12
PRIVATE_ENGLISH: Final = ("told", "said", "made", "found", "given", "each")
"""Names that say what happened to a value and not what it is."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of Python."""

    root: Path
    path: Path

    @property
    def name(self) -> str:
        """As it is imported."""
        parts = self.path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def text(self) -> str:
        """Its source."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """How many it has."""
        return len(self.text.splitlines())

    @property
    def functions(self) -> Sequence[int]:
        """How long each function is, in lines."""
        nodes = (node for node in ast.walk(self.tree) if isinstance(node, Function))
        return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes]

    @property
    def causes(self) -> Counter[str]:
        """Its lines by what they are there for."""
        lines = Counter(blank=sum(1 for line in self.text.splitlines() if not line.strip()))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                lines["imports"] += (node.end_lineno or node.lineno) - node.lineno + 1
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                lines["docstrings"] += (node.end_lineno or node.lineno) - node.lineno + 1
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        lines["comments"] = sum(
            1 for t in tokens if t.type == tokenize.COMMENT and not t.line[: t.start[1]].strip()
        )
        lines["code"] = self.lines - lines.total()
        return lines

    def imports(self) -> Iterator[str]:
        """What it imports, by full names; a name of a module may be a module or a thing in it."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path.cwd())
    root = parser.parse_args().root.resolve()
    modules = [
        Module(root, path)
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    ]
    print(
        table(("", "files", "lines", *CAUSES, "median file", "functions, median"), sizes(modules))
    )
    product = [module for module in modules if module.name.split(".")[0] in PRODUCT]
    print()
    print(table(("folder", "files", "parts", "arrows", "of possible"), folders(product)))
    names = Counter(
        node.id
        for module in product
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    uses = ", ".join(f"{name} {names[name]}" for name in PRIVATE_ENGLISH)
    print(f"\nvariables of the product named: {uses}")


CAUSES: Final = ("code", "docstrings", "comments", "imports", "blank")


def sizes(modules: Sequence[Module]) -> list[tuple[str, ...]]:
    """A row a package."""
    rows = []
    for package in PACKAGES:
        own = [module for module in modules if module.name.split(".")[0] == package]
        causes = sum((module.causes for module in own), Counter())
        lengths = [length for module in own for length in module.functions]
        rows.append(
            (
                package,
                f"{len(own)}",
                f"{sum(module.lines for module in own):,}",
                *(f"{causes[cause]:,}" for cause in CAUSES),
                f"{statistics.median(module.lines for module in own):.0f}",
                f"{statistics.median(lengths):.0f}",
            )
        )
    return rows


def folders(modules: Sequence[Module]) -> list[tuple[str, ...]]:
    """A row for each of the fullest folders: its files, its parts, and the arrows between them."""
    names = {module.name for module in modules}
    packages = {module.name for module in modules if module.path.name == "__init__.py"}
    counted = []
    for package in packages:
        inside = [m for m in modules if m.name.startswith(f"{package}.")]
        files = [m for m in inside if m.path.parent == _folder(package, m)]
        parts = {_part(package, module.name) for module in inside}
        arrows = {
            (_part(package, module.name), _part(package, target))
            for module in inside
            for target in _known(module.imports(), names)
            if target.startswith(f"{package}.")
            and _part(package, target) != _part(package, module.name)
        }
        possible = len(parts) * (len(parts) - 1) // 2
        own = sum(1 for m in files if m.path.name != "__init__.py")
        counted.append((own, package, len(parts), len(arrows), possible))
    return [
        (package, f"{own}", f"{parts}", f"{arrows}", f"{possible}")
        for own, package, parts, arrows, possible in sorted(counted, reverse=True)[:FOLDERS_SHOWN]
    ]


def _folder(package: str, module: Module) -> Path:
    return module.root / package.replace(".", "/")


def _part(package: str, name: str) -> str:
    return name.removeprefix(f"{package}.").partition(".")[0]


def _known(targets: Iterable[str], names: set[str]) -> Iterator[str]:
    for target in targets:
        module = target if target in names else target.rpartition(".")[0]
        if module in names:
            yield module


if __name__ == "__main__":
    main()
