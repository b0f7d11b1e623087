"""A fault of a file that a person brought: where it stands, and what would be right."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from libs.runtime.errors import DeskError

VALUE_CHARS_MAX = 40
"""Of a value that is quoted."""


@dataclass(frozen=True, slots=True)
class FileFinding:
    """One fault. `line` is counted as an editor counts (a row of a Parquet file from 1); `column`
    is the heading; `value` is what stands there; `remedy` is what to do."""

    file: str
    what: str
    remedy: str
    line: int | None = None
    column: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        place = self.file
        if self.line is not None:
            place += f", {'row' if is_parquet(Path(self.file)) else 'line'} {self.line}"
        what = self.what
        if self.value == "":
            what = f"{self.column} is empty"
        elif self.value is not None:
            what = f"{self.column} is {self.value[:VALUE_CHARS_MAX]!r}: {what}"
        return f"{place}: {what}; {self.remedy}"


class BadFile(DeskError):
    """A file is invalid; `finding` says where and why. `row` is the row of the table that was read,
    where it is the fault of one."""

    code = "bad_file"

    def __init__(self, finding: FileFinding, row: int | None = None) -> None:
        super().__init__(str(finding))
        self.finding = finding
        self.row = row


@contextmanager
def only_bad_files(path: Path) -> Iterator[None]:
    """Turn any other error that a file brings a library to into BadFile; `from` keeps it."""
    import polars as pl  # noqa: PLC0415 - whoever reads tables has loaded it

    try:
        yield
    except BadFile:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        what = f"not readable ({type(error).__name__}: {' '.join(str(error).split())[:120]})"
        raise bad(path, None, what, "write it again as plain CSV") from error


def bad(path: Path, line: int | None, what: str, remedy: str) -> BadFile:
    """A fault of the file at a path."""
    return BadFile(FileFinding(path.name, what, remedy, line))


def is_parquet(path: Path) -> bool:
    """Whether a file is read as Parquet; all others are text."""
    return path.suffix.lower() == ".parquet"
