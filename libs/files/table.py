"""A table that a person brought: CSV in any of its forms, or Parquet, as cells under headings.

How a table is written is read as it comes: commas, semicolons, tabs or bars between its cells,
blanks around them, any line ends, capitals in headings, a comma at the end of each line. What it
says is not touched here. `libs.files.numbers` and `libs.files.dates` read the cells.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path

import polars as pl
import polars.selectors as cs

from libs.facts.cells import READ_BACK
from libs.files.bounds import FILE_BYTES_MAX, bound_parquet, bound_text
from libs.files.finding import BadFile, FileFinding, bad, is_parquet
from libs.files.text import separator_of, text_of, unopened

LEADING_ROWS = 5
"""Rows at the beginning that `Heads` is shown."""
CELL_CHARS_MAX = 100_000
UNNAMED = re.compile(r"unnamed: \d+(_level_\d+)?|index|(__index_)?level_\d+(__)?")
"""Headings that pandas makes up for an index or a column without one."""

CORRECT = "correct the row or leave it out"
NO_CELLS = (pl.Binary, pl.Duration, pl.Time, pl.Object)
"""Types of Parquet that no column is read from."""

Heads = Callable[[Sequence[Sequence[str]]], tuple[Sequence[str], int]]
"""From the first rows of a text to its headings, and how many lines they take."""


@dataclass(frozen=True)
class FileTable:
    """Cells under headings. Headings are in lower case without blanks around them. The cells of a
    text are text without blanks around, null where empty; those of Parquet have its types. `longer`
    are rows with more cells than headings, where they were not refused. Where some were left out,
    `rows` are the places of the frame's rows in the file, and `whole` is the frame with all of
    them, which says how dates are written. `decimal_comma` says whether a comma is the decimal
    mark; None where the cells must say it."""

    path: Path
    frame: pl.DataFrame
    text: bytes | None = None
    head_lines: int = 1
    separator: str = ","
    longer: Mapping[int, str] = field(default_factory=dict)
    rows: pl.Series | None = None
    whole: pl.DataFrame | None = None
    decimal_comma: bool | None = None

    def without(self, is_out: pl.Series) -> "FileTable":
        """The table without some of its rows."""
        rows = self.rows if self.rows is not None else pl.Series(range(self.frame.height))
        whole = self.frame if self.whole is None else self.whole
        frame, rows = self.frame.filter(~is_out), rows.filter(~is_out)
        return replace(self, frame=frame, rows=rows, whole=whole)

    def fault(self, row: int | None, what: str, remedy: str, column: str | None = None) -> BadFile:
        """A fault of one row of the frame, and of its cell in `column`."""
        value = None
        if row is not None and row >= self.frame.height:
            row = None
        if row is not None and column is not None and column in self.frame.columns:
            cell = self.frame[column][row]
            value = "" if cell is None else str(cell)
        line = self.head_lines if row is None else self._line_of(row)
        return BadFile(FileFinding(self.path.name, what, remedy, line, column, value), row)

    def lines(self) -> Iterator[int]:
        """The line on which each row of the file begins, those that were left out too."""
        if self.text is None:
            yield from count(1)
            return
        # Cells may hold line ends: only a reader of CSV knows where a row begins.
        text = io.StringIO(self.text.decode(), newline="")
        for _ in range(self.head_lines):
            text.readline()
        reader = csv.reader(text, delimiter=self.separator)
        rows = 0
        try:
            yield self.head_lines + 1
            for rows, _ in enumerate(reader, 1):  # noqa: B007 - goes on from it below
                yield self.head_lines + reader.line_num + 1
        except csv.Error:
            yield from count(self.head_lines + rows + 1)

    def _line_of(self, row: int) -> int:
        row = row if self.rows is None else self.rows[row]
        return next(islice(self.lines(), row, None), self.head_lines + row + 1)


def read_table(path: Path, heads: Heads | None = None, *, longer_max: int = 0) -> FileTable:
    """The table in a file. `longer_max` rows may have more cells than there are headings: see
    `FileTable.longer`. Raises BadFile, and nothing else, for one that is none."""
    try:
        if is_parquet(path):
            table = _parquet(path, heads)
        else:
            table = table_in(path, text_of(path, FILE_BYTES_MAX), heads, longer_max)
    except pl.exceptions.PolarsError as error:
        kind = "Parquet" if is_parquet(path) else "CSV"
        words = " ".join(str(error).split())[:120]
        raise bad(path, None, f"not readable as {kind} ({words})", "write it again") from error
    except OSError as error:
        raise unopened(path, error) from error
    return table


def rows_of(text: bytes, separator: str) -> Iterable[list[str]]:
    """The rows of a text as lists of cells. Raises csv.Error."""
    return csv.reader(io.StringIO(text.decode(), newline=""), delimiter=separator)


def heading(cell: object) -> str:
    """A heading as it is compared: in lower case, with single blanks."""
    return " ".join(str(cell).split()).casefold()


def table_in(path: Path, text: bytes, heads: Heads | None = None, longer_max: int = 0) -> FileTable:
    """The table in a text that `text_of` has read; `path` is for faults. Raises BadFile, and
    PolarsError for what is no table."""
    above = len(text) - len(text.lstrip(b"\n"))  # lines without a heading
    if text[above : above + 4].lower() == b"sep=":  # a mark for spreadsheets
        above += 1
    start = _start_of(text, above)
    rest = text[start:] if start else text
    if not rest.strip():
        raise bad(path, None, "no rows", "fill in the file or remove it")
    separator = separator_of(rest)
    bound_text(path, text, separator, above)
    mark = separator.decode()
    try:
        leading = list(islice(rows_of(_first_lines(rest), mark), LEADING_ROWS))
    except csv.Error as error:
        raise bad(path, above + 1, f"no CSV ({error})", "write it again") from error
    heading_row, head_lines = heads(leading) if heads else (leading[0], 1)
    names = [heading(name) for name in heading_row]
    frame, is_ragged = _cells(text, mark, names, above + head_lines)
    longer: Mapping[int, str] = {}
    if is_ragged:
        longer = _longer(path, text, mark, len(names), above + head_lines, longer_max)
    return _tidy(FileTable(path, frame, text, above + head_lines, mark, longer))


def _start_of(text: bytes, lines: int) -> int:
    """Where the text goes on behind its first lines."""
    start = 0
    for _ in range(lines):
        start = text.find(b"\n", start) + 1 or len(text)
    return start


def _first_lines(text: bytes) -> bytes:
    end = 0
    for _ in range(LEADING_ROWS):
        end = text.find(b"\n", end) + 1
        if end == 0:
            return text
    return text[:end]


def _cells(
    text: bytes, separator: str, names: Sequence[str], head_lines: int
) -> tuple[pl.DataFrame, bool]:
    """Every cell as text: a single odd cell must not change how the others are read. And whether
    some rows have more cells than there are headings."""
    columns = [str(number) for number in range(len(names))]
    start = _start_of(text, head_lines)
    # Under headings of our own, which cannot come twice: a short row then ends in empty cells.
    body = separator.join(columns).encode() + b"\n" + text[start:]
    for is_ragged in (False, True):
        try:
            raw = pl.read_csv(
                io.BytesIO(body),
                separator=separator,
                infer_schema=False,
                truncate_ragged_lines=is_ragged,
            )
            break
        except pl.exceptions.ComputeError:
            if is_ragged:
                raise
    raw = raw.with_columns(
        # What `market record` wrote is marked where a spreadsheet would run it.
        pl.all().str.replace(READ_BACK, "${1}").str.strip_chars().replace("", None)
    )
    raw = _without_end(raw)
    return raw.rename(dict(zip(columns, _labels(names), strict=True))), is_ragged


def _labels(names: Sequence[str]) -> list[str]:
    """The names, with a mark and their place where they come twice."""
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{name}\0{n}" for n, name in enumerate(names)]


def _longer(
    path: Path, text: bytes, separator: str, columns: int, head_lines: int, count_max: int
) -> Mapping[int, str]:
    """The rows with a filled cell beyond the last heading. Raises BadFile for one too many."""
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=separator)
    longer: dict[int, str] = {}
    try:
        for number, cells in enumerate(reader, -head_lines):
            if number >= 0 and any(cell.strip() for cell in cells[columns:]):
                longer[number] = f"{len(cells)} cells under a header of {columns}"
                if len(longer) > count_max:
                    raise bad(path, reader.line_num, longer[number], CORRECT)
    except csv.Error as error:  # a cell of 128 kB or more
        raise bad(path, reader.line_num, f"no CSV ({error})", "write it again") from error
    return longer


def _without_end(raw: pl.DataFrame) -> pl.DataFrame:
    """The table without the empty lines that editors leave at its end; any other one is a row."""
    filled = raw.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    return raw.head(filled[-1] + 1 if len(filled) else 0)


def _parquet(path: Path, heads: Heads | None) -> FileTable:
    if path.stat().st_size > FILE_BYTES_MAX:
        raise bad(path, None, f"larger than {FILE_BYTES_MAX // 1024**2} MB", "split it into years")
    bound_parquet(path)
    raw = pl.read_parquet(path, glob=False)
    raw = raw.with_columns(cs.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    odd = [name for name, kind in raw.schema.items() if kind.is_nested() or kind in NO_CELLS]
    if odd:
        what = f"column {odd[0][:40]} holds {raw.schema[odd[0]]!s:.40}"
        raise bad(path, None, what, "write text, numbers and dates")
    texts = raw.select(pl.col(pl.String).str.len_bytes().cast(pl.UInt64).sum())
    # Of a text that comes often a file holds one copy; each step of reading may make one a row.
    if sum(texts.row(0) if texts.width else ()) > FILE_BYTES_MAX:
        what = f"its texts have more than {FILE_BYTES_MAX // 1024**2} MB, the limit"
        raise bad(path, None, what, "split it into years")
    columns = heads([raw.columns])[0] if heads and raw.width else raw.columns
    names = [heading(name) for name in columns]
    raw = raw.rename(dict(zip(raw.columns, _labels(names), strict=True)))
    return _tidy(FileTable(path, raw.with_columns(pl.col(pl.String).str.strip_chars())))


def _tidy(table: FileTable) -> FileTable:
    """Without columns that say nothing: empty ones without a heading, a copy of another one, a
    made-up index. Raises BadFile for those that say something else."""
    frame = table.frame
    first = frame.columns[0] if frame.width else "date"
    is_index = "date" not in frame.columns and _is_unnamed(first)
    if is_index and not _counts(frame[first].cast(pl.String, strict=False)):
        frame = frame.rename({first: "date"})  # the index of a pandas frame
    firsts: dict[str, str] = {}
    dropped = []
    for place, name in enumerate(frame.columns, 1):
        base = name.partition("\0")[0]
        first = firsts.setdefault(base, name)
        if base == name and not _is_unnamed(name):
            continue
        cells = frame[name].cast(pl.String, strict=False)
        if _is_unnamed(base):
            if cells.null_count() < len(cells) and not _counts(cells):
                raise table.fault(None, f"column {place} has no heading", "name it or remove it")
        elif name != first and not cells.equals(frame[first].cast(pl.String), null_equal=True):
            what = f"the column {base} comes twice, with different values"
            raise table.fault(None, what, "keep one of the two")
        if name != first or _is_unnamed(base):
            dropped.append(name)
    frame = frame.drop(dropped)
    frame = frame.rename({name: name.partition("\0")[0] for name in frame.columns})
    return replace(table, frame=frame)


def _is_unnamed(name: str) -> bool:
    base = name.partition("\0")[0]
    return not base or UNNAMED.fullmatch(base) is not None


def _counts(cells: pl.Series) -> bool:
    """Whether the cells count the rows, from 0 or 1."""
    numbers = cells.cast(pl.Int64, strict=False)
    rows = pl.Series(range(len(cells)), dtype=pl.Int64)
    return any(numbers.equals(rows + first, null_equal=False) for first in (0, 1))
