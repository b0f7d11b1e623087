"""What tests of the tree look at in a file. Each is parsed once a process and not kept whole."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Source:
    """One file of Python.

    `docstrings` are all, the module's own first; `own` are the names that the module itself
    defines (without those that a decorator hands on), `used` those that are read, `given` all
    names of variables, parameters, functions and classes, `classes` those of classes alone.
    """

    docstrings: tuple[str, ...]
    own: frozenset[str]
    used: frozenset[str]
    given: frozenset[str]
    classes: tuple[str, ...]


@cache
def source(path: Path) -> Source:
    """The file, from its syntax tree."""
    return read(path.read_text(encoding="utf-8"))


def read(text: str) -> Source:
    """The same of a text."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    names = (node for node in nodes if isinstance(node, ast.Name))
    documented = (node for node in nodes if isinstance(node, ast.Module | Defined))
    return Source(
        docstrings=tuple(ast.get_docstring(each) or "" for each in documented),
        own=frozenset(_own(tree.body)),
        used=frozenset(node.id for node in names if isinstance(node.ctx, ast.Load)),
        given=frozenset(_given(nodes)),
        classes=tuple(node.name for node in nodes if isinstance(node, ast.ClassDef)),
    )


def _own(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        # What a decorator hands on (a route, a fixture) is used elsewhere.
        if isinstance(node, Defined) and not node.decorator_list:
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        yield from (each.id for each in targets if isinstance(each, ast.Name))


def _given(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
