"""A file of holdings as a person has it, and every line of it that cannot be used as it is."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pydantic import ValidationError

from contracts.capital import HOLDINGS_MAX, HeldLine, ImportFinding
from libs.facts.amounts import cut, plain
from libs.runtime.wording import describe
from services.cli.shell.problem import ExitCode, Problem

FILE_BYTES_MAX = 256_000
CELL_CHARS_MAX = 40
"""Of a cell that is quoted in a finding."""
NEEDED = ("ticker", "quantity", "cost", "opened_on")
OPTIONAL = ("currency",)
EXAMPLE = "ticker,quantity,cost,opened_on\nAAPL,10,51.25,2009-03-02"
WHAT = {
    "ticker": "which share it is",
    "quantity": "how many shares",
    "cost": "what one share cost",
    "opened_on": "since when it is held, YYYY-MM-DD",
}


@dataclass(frozen=True)
class HoldingsFile:
    """The lines that could be read, those that could not, and the columns that nobody looks at."""

    lines: Sequence[HeldLine]
    findings: Sequence[ImportFinding]
    unused: Sequence[str] = ()


def read_holdings(path: Path) -> HoldingsFile:
    """The file's lines. Raises `Problem` where it is no such file at all."""
    rows = csv.reader(_text(path).splitlines(), strict=True)
    try:
        heads = [_head(cell) for cell in next(rows, [])]
        numbered = [(rows.line_num, row) for row in rows if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise _unreadable(path, f"line {rows.line_num} is no CSV: {error}") from None
    _require_heads(path, heads)
    if not numbered:
        raise _unreadable(path, "it has a header and no line below it")
    if len(numbered) > HOLDINGS_MAX:
        raise _unreadable(path, f"it has {len(numbered)} lines, at most {HOLDINGS_MAX} can be read")
    lines: list[HeldLine] = []
    findings: list[ImportFinding] = []
    for number, row in numbered:
        if len(row) != len(heads):
            text = f"{len(row)} cells under a header of {len(heads)}; write numbers without commas"
            findings.append(ImportFinding(line=number, message=text))
            continue
        cells = {head: cell.strip() for head, cell in zip(heads, row, strict=True)}
        wrong = list(_wrong(number, cells))
        if not wrong:
            try:
                lines.append(_line(number, cells))
            except ValidationError as error:
                wrong.append(ImportFinding(line=number, message=cut(describe(error), 400)))
        findings += wrong
    known = {*NEEDED, *OPTIONAL}
    return HoldingsFile(lines, findings, [head for head in heads if head and head not in known])


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            read = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise _unreadable(path, f"it cannot be read ({error.strerror})") from None
    if len(read) > FILE_BYTES_MAX:
        raise _unreadable(path, f"it is larger than {FILE_BYTES_MAX:,} bytes")
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable(path, "it is not UTF-8 text; save it as CSV (UTF-8)") from None


def _head(cell: str) -> str:
    return "_".join(cell.strip().lower().split())


def _require_heads(path: Path, heads: Sequence[str]) -> None:
    missing = [head for head in NEEDED if head not in heads]
    if not missing:
        twice = sorted({head for head in heads if head in NEEDED and heads.count(head) > 1})
        if twice:
            raise _unreadable(path, f"the column {twice[0]} stands in it twice")
        return
    if len(heads) == 1 and ";" in heads[0]:
        raise _unreadable(path, "its columns are separated by ; instead of by commas")
    raise _unreadable(path, f"its first line has no column {' and no column '.join(missing)}")


def _unreadable(path: Path, why: str) -> Problem:
    shown = EXAMPLE.replace("\n", "\n    ")
    return Problem(ExitCode.USAGE, f"{path}: {why}", f"write it like this:\n    {shown}")


def _wrong(number: int, cells: Mapping[str, str]) -> Iterator[ImportFinding]:
    """The missing values, and those that are no number or date."""
    for head in NEEDED:
        text = cells[head]
        why = ""
        if not text:
            why = f"{head} is missing: {WHAT[head]}"
        elif head in {"quantity", "cost"}:
            why = _no_number(head, text)
        elif head == "opened_on" and not _is_date(text):
            why = f"opened_on is {_quoted(text)}, no date: write YYYY-MM-DD"
        if why:
            yield ImportFinding(line=number, field=head, message=why)


def _no_number(head: str, text: str) -> str:
    try:
        number = Decimal(text)
    except InvalidOperation:
        example = "10" if head == "quantity" else "51.25"
        return f"{head} is {_quoted(text)}, no number: write it like {example}"
    if not number.is_finite() or number <= 0:
        short = " (the desk holds no short positions)" if head == "quantity" else ""
        return f"{head} is {_quoted(text)}: it must be more than 0{short}"
    return ""


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _quoted(text: str) -> str:
    return repr(cut(plain(text), CELL_CHARS_MAX))


def _line(number: int, cells: Mapping[str, str]) -> HeldLine:
    return HeldLine.model_validate(
        {
            "line": number,
            **{head: cells[head] for head in NEEDED},
            "currency": cells.get("currency", "").upper() or None,
        }
    )
