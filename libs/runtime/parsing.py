"""Python source as a tree, in any thread."""

import ast
from threading import Lock

_ONE_AT_A_TIME = Lock()


def parsed(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """The tree of a source. Raises as `ast.parse`: SyntaxError, ValueError, RecursionError and
    MemoryError.

    Python 3.11 counts the depth of a tree for all threads together: of two that parse at once one
    may end with a SystemError.
    """
    with _ONE_AT_A_TIME:
        return ast.parse(source, filename)
