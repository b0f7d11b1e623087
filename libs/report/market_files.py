"""Market files that cannot be used as they stand: where each is wrong, and what to do."""

from collections.abc import Iterable

from libs.files.finding import VALUE_CHARS_MAX, FileFinding
from libs.report import view as cells
from libs.report.view import Column, Row, Table

FILES_SHOWN_MAX = 50
"""Rows of the table; `deskbus check` shows all files."""
_COLUMNS = (
    "File",
    "Line",
    "Column",
    "Value",
    Column("What is wrong", wraps=True),
    Column("What to do", wraps=True),
    "Until then",
)


def bad_files(
    unused: Iterable[FileFinding], earlier: Iterable[FileFinding], bad_rows: Iterable[FileFinding]
) -> Table:
    """The files of which nothing is used, those of which the earlier content is used, and those of
    which bad rows are left out, with the first of them."""
    rows = [_row(one, "not used") for one in unused]
    rows += [_row(one, "used as it was before") for one in earlier]
    rows += [_row(one, "used without such rows") for one in bad_rows]
    more = len(rows) - FILES_SHOWN_MAX
    note = f"{more:,} more are not shown here: `deskbus check` shows all files" if more > 0 else ""
    shown = tuple(rows[:FILES_SHOWN_MAX])
    return cells.table(_COLUMNS, shown, "Market files that cannot be used", notes=cells.notes(note))


def _row(one: FileFinding, until_then: str) -> Row:
    value = cells.BLANK if one.value is None else cells.say(one.value[:VALUE_CHARS_MAX] or "empty")
    return cells.row(
        one.file,
        cells.BLANK if one.line is None else cells.count(one.line),
        one.column or "",
        value,
        one.what,
        one.remedy,
        until_then,
    )
