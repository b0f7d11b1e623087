"""Named queries: SQL lives in files, where a person can read and run it.

A file holds blocks that begin with `-- name: some_name`; the rest of the block is the statement.
What several statements have in common, such as their columns, stands once: in a block that begins
with `-- part: some_name`, before the statements that have `{some_name}` in its place.
A statement that takes many rows names their columns once, with their types, as in
`from rows($fills) as t (ticker text, price numeric)`. Elsewhere `$fills.price` is that column as an
array.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_BLOCK = re.compile(r"^-- (name|part): ([a-z_][a-z0-9_]*)\s*$", re.MULTILINE)
_PART = re.compile(r"\{([a-z_]+)\}")

_ROWS = re.compile(r"rows\(\$(\w+)\) as (\w+) \(([^)]+)\)")
_COLUMN = re.compile(r"\$([a-z_]+\.[a-z_0-9]+)")


class Queries:
    """The statements of one file, as attributes."""

    def __init__(self, path: Path) -> None:
        _, *pieces = _BLOCK.split(path.read_text())
        parts: dict[str, str] = {}
        self._columns: dict[str, Sequence[str]] = {}
        self._statements: dict[str, str] = {}
        for kind, name, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            whole = _PART.sub(lambda it: parts[it[1]], text.strip())
            if kind == "part":
                parts[name] = whole
            else:
                statement, self._columns[statement] = _numbered(whole)
                self._statements[name] = statement
        self._path = path

    def __getattr__(self, name: str) -> str:
        try:
            return self._statements[name]
        except KeyError:
            raise AttributeError(f"{self._path.name} has no statement named {name}") from None

    def arrays(
        self, statement: str, **rows: Sequence[Mapping[str, object]]
    ) -> Sequence[list[object]]:
        """The parameters of a statement that takes rows: each column as an array."""
        names = (column.split(".") for column in self._columns[statement])
        return [[row[column] for row in rows[table]] for table, column in names]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Each statement with its name, in the file's order."""
        return iter(self._statements.items())


def _numbered(text: str) -> tuple[str, Sequence[str]]:
    """A statement with numbered parameters; the columns of its rows in their order, as
    `fills.price`."""
    types = {
        f"{table}.{column}": kind
        for table, _, columns in _ROWS.findall(text)
        for column, kind in map(str.split, columns.split(","))
    }
    numbers = {name: f"${number}::{kind}[]" for number, (name, kind) in enumerate(types.items(), 1)}

    def unnested(match: re.Match[str]) -> str:
        names = [column.split()[0] for column in match[3].split(",")]
        arrays = ", ".join(numbers[f"{match[1]}.{name}"] for name in names)
        return f"unnest({arrays}) as {match[2]} ({', '.join(names)})"

    statement = _COLUMN.sub(lambda it: numbers[it[1]], _ROWS.sub(unnested, text))
    return statement, tuple(types)
