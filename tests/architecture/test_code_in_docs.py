"""The Python of the pages can be used as it stands: it parses, what it imports is there, and each
name that it uses is its own, or one of the modules that its section says to write it into."""

import ast
import builtins
import importlib
import re
import textwrap
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^( *)```python\n(?P<code>.*?)^\1```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`([\w/]+\.py|(?:libs|services|contracts)/[\w/]+)`")
HEADING = re.compile(r"^#+ ", re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


MODULES_WRITTEN = {"logic"}
"""Modules that a page has its reader write, and import from another of them."""


@dataclass(frozen=True)
class Sample:
    """One block: where it stands, its code, the text of its section above it, and the code of the
    page above it."""

    place: str
    code: str
    above: str
    before: tuple[str, ...]


def samples() -> Iterator[Sample]:
    """Every block of Python on the pages."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        before: list[str] = []
        for block in BLOCK.finditer(text):
            head = text[: block.start()]
            section = head[max((it.start() for it in HEADING.finditer(head)), default=0) :]
            code = textwrap.dedent(block["code"])
            line = head.count("\n") + 1
            place = f"{page.relative_to(ROOT).as_posix()}:{line}"
            yield Sample(place, code, section, tuple(before))
            before.append(code)


SAMPLES = tuple(samples())


def imported(tree: ast.AST) -> set[str]:
    """The names that code imports."""
    imports = (it for it in ast.walk(tree) if isinstance(it, ast.Import | ast.ImportFrom))
    return {(it.asname or it.name).partition(".")[0] for each in imports for it in each.names}


def made(tree: ast.AST) -> set[str]:
    """The names that code defines, assigns or takes."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.arg(arg=name):
                names.add(name)
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
    return names


def free(tree: ast.AST) -> set[str]:
    """The names that code uses and does not bind itself."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return used - made(tree) - imported(tree) - set(dir(builtins))


@cache
def module(path: str) -> ModuleType | None:
    """The module of a file below the root; None where there is none yet."""
    if not (ROOT / path).is_file():
        return None
    return importlib.import_module(path.removesuffix(".py").replace("/", "."))


def homes(section: str) -> Iterator[ModuleType]:
    """The modules that a section names: by path, or by name in a folder named before."""
    folders = [""]
    for name in NAMED.findall(section):
        if not name.endswith(".py"):
            folders.append(f"{name}/")
        elif found := next(filter(None, (module(f"{at}{name}") for at in folders)), None):
            yield found


def lost_imports(tree: ast.AST, own: Collection[str]) -> Iterator[str]:
    """The imports of what is not there and is no name of the page's `own` code."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        try:
            where: object = importlib.import_module(node.module)
        except ModuleNotFoundError:
            where = None  # a module that the page has its reader write
        for each in node.names:
            if not hasattr(where, each.name) and each.name not in own:
                yield f"{node.module}.{each.name}"


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.place)
def test_a_sample_uses_only_what_there_is(sample: Sample) -> None:
    tree = ast.parse(sample.code)
    own = {name for code in (*sample.before, sample.code) for name in made(ast.parse(code))}
    assert list(lost_imports(tree, {*own, *MODULES_WRITTEN})) == []
    known = {name for home in homes(sample.above) for name in vars(home)}
    assert sorted(free(tree) - known) == []
