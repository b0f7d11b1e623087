"""The syntax of the tree's files, parsed once for all tests of a process."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def syntax(path: Path) -> ast.Module:
    """The syntax tree of a file; it is shared: nobody changes it."""
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes(path: Path) -> Iterator[ast.AST]:
    """Every node of a file."""
    return ast.walk(syntax(path))
