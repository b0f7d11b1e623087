"""Named queries: SQL lives in files, where a person can read and run it.

A file holds blocks that begin with `-- name: some_name`; the rest of the block is the statement.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_NAME = re.compile(r"^-- name: ([a-z_][a-z0-9_]*)\s*$", re.MULTILINE)


class Queries:
    """The statements of one file, as attributes."""

    def __init__(self, path: Path) -> None:
        pieces = _NAME.split(path.read_text())
        self._statements = dict(zip(pieces[1::2], map(str.strip, pieces[2::2]), strict=True))
        self._path = path

    def __getattr__(self, name: str) -> str:
        try:
            return self._statements[name]
        except KeyError:
            raise AttributeError(f"{self._path.name} has no statement named {name}") from None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Each statement with its name, in the file's order."""
        return iter(self._statements.items())
