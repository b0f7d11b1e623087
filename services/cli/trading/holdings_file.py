"""A file of holdings as a person has it, and every line of it that cannot be used as it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

from pydantic import ValidationError

from contracts.capital import HOLDINGS_MAX, PRICE_MAX, SHARES_MAX, HeldLine, ImportFinding
from libs.facts.amounts import cut, plain
from libs.files.dates import NoDate, stamp_of
from libs.files.finding import BadFile
from libs.files.numbers import NoNumber, number_of
from libs.market.symbols import UnknownCurrency, currency, spelled
from libs.quant.sizing import kept_shares
from libs.runtime.wording import describe
from services.cli.shell.problem import ExitCode, Problem
from services.cli.trading.broker_exports import (
    COST_STEP,
    FILE_BYTES_MAX,
    Export,
    Row,
    decimal_comma,
    merged_lots,
    read_export,
    stated_cash,
)

__all__ = ["FILE_BYTES_MAX", "HoldingsFile", "read_holdings"]

CELL_CHARS_MAX = 40
"""Of a cell that is quoted in a finding."""
EXAMPLE = "ticker,quantity,cost,opened_on\nAAPL,10,51.25,2009-03-02"
WHAT = {
    "ticker": "which share it is",
    "quantity": "how many shares",
    "cost": "what one share cost",
    "opened_on": "since when it is held, YYYY-MM-DD",
}


@dataclass(frozen=True)
class HoldingsFile:
    """The lines that could be read, those that could not, the columns that are not used, the cash
    that the file states, and what was made of its rows."""

    lines: Sequence[HeldLine]
    findings: Sequence[ImportFinding]
    unused: Sequence[str] = ()
    cash: Decimal | None = None
    notes: Sequence[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Lot:
    """One row, read."""

    line: int
    quantity: Decimal
    cost: Decimal
    opened_on: date
    currency: str


def read_holdings(path: Path, opened_on: date | None = None) -> HoldingsFile:
    """The file's positions, the lots of a ticker as one; `opened_on` is for rows without a date.
    Raises `Problem` where it is no such file at all."""
    export, comma = _export(path)
    lines: list[HeldLine] = []
    findings: list[ImportFinding] = []
    if "opened_on" not in export.meanings and opened_on is None:
        text = "the file does not say since when they are held; say it with --opened-on YYYY-MM-DD"
        findings.append(ImportFinding(field="opened_on", message=text))
        opened_on = date.min
    notes = list(export.notes)
    for ticker, rows in merged_lots(export.rows):
        lots, wrong = [], []
        for row in rows:
            faults = [*_wrong(row, export, opened_on, comma=comma)]
            wrong += faults
            if not faults:
                lots.append(_lot(row, opened_on, comma=comma))
        if not wrong:
            try:
                lines.append(_line(ticker, lots))
            except (ValidationError, ValueError, UnknownCurrency) as error:
                text = describe(error) if isinstance(error, ValidationError) else str(error)
                wrong = [ImportFinding(line=lots[0].line, message=cut(text, 400))]
            else:
                if len(lots) > 1:
                    notes.append(f"{ticker}: {len(lots)} lots as one, at average cost")
                exact, kept = _shares_of(lots), lines[-1].quantity
                if exact != kept:
                    places = "the books keep six places"
                    notes.append(f"{ticker}: {exact.normalize():f} shares as {kept:f}: {places}")
        findings += wrong
    if opened_on == date.min:
        lines = []  # nothing can be shown without a date
    cash = stated_cash(export, comma=comma)
    return HoldingsFile(lines, findings, export.unused, cash, notes)


def _export(path: Path) -> tuple[Export, bool]:
    """The positions of the file, and whether its numbers have decimal commas. Raises `Problem`."""
    try:
        export = read_export(path)
        comma = decimal_comma(export)
    except BadFile as error:
        where = f"line {error.finding.line}: " if (error.finding.line or 1) > 1 else ""
        raise _unreadable(path, f"{where}{error.finding.what}") from None
    except NoNumber as error:
        raise _unreadable(path, str(error)) from None
    if not {"cost", "basis"} & {*export.meanings}:
        raise _unreadable(path, "its first line has no column cost")
    if not export.rows:
        raise _unreadable(path, "it has a header and no line below it")
    if len(export.rows) > HOLDINGS_MAX:
        many = len(export.rows)
        raise _unreadable(path, f"it has {many} lines, at most {HOLDINGS_MAX} can be read")
    return export, comma


def _unreadable(path: Path, why: str) -> Problem:
    shown = EXAMPLE.replace("\n", "\n    ")
    return Problem(ExitCode.USAGE, f"{path}: {why}", f"write it like this:\n    {shown}")


def _wrong(
    row: Row, export: Export, opened_on: date | None, *, comma: bool
) -> Iterator[ImportFinding]:
    """The missing values, and those that are no number or date."""
    cells = row.cells
    if many := cells.get("too many") or cells.get("too few"):
        text = f"{many}; write numbers without commas"
        yield ImportFinding(line=row.line, message=text)
        return
    cost = "basis" if "cost" not in export.meanings else "cost"
    for head in ("ticker", "quantity", cost, "opened_on"):
        text = cells.get(head, "")
        name = "cost" if head == "basis" else head
        why = ""
        if not text:
            if head != "opened_on" or opened_on is None:
                why = f"{name} is missing: {WHAT[name]}"
        elif head == "opened_on":
            why = _no_date(text)
        elif head != "ticker":
            why = _no_number(name, text, comma=comma)
        if why:
            yield ImportFinding(line=row.line, field=name, message=why)


def _no_number(head: str, text: str, *, comma: bool) -> str:
    example = "10" if head == "quantity" else "51.25"
    try:
        number = number_of(text, comma=comma)
    except NoNumber:
        return f"{head} is {_quoted(text)}, no number: write it like {example}"
    if number is None:
        return f"{head} is {_quoted(text)}, no number: write it like {example}"
    if number > (SHARES_MAX if head == "quantity" else SHARES_MAX * PRICE_MAX):
        return f"{head} is {_quoted(text)}: too large"
    if number <= 0:
        short = " (the desk holds no short positions)" if head == "quantity" else ""
        return f"{head} is {_quoted(text)}: it must be more than 0{short}"
    return ""


def _no_date(text: str) -> str:
    try:
        stamp_of(text)
    except NoDate as error:
        return f"opened_on is {_quoted(text)}, no date ({error}): write YYYY-MM-DD"
    return ""


def _quoted(text: str) -> str:
    return repr(cut(plain(text), CELL_CHARS_MAX))


def _lot(row: Row, opened_on: date | None, *, comma: bool) -> _Lot:
    cells: Mapping[str, str] = row.cells
    quantity = number_of(cells["quantity"], comma=comma) or Decimal(0)
    cost = number_of(cells.get("cost") or cells["basis"], comma=comma) or Decimal(0)
    if not cells.get("cost"):
        cost = cost / quantity
    if cost != cost.quantize(COST_STEP, ROUND_HALF_EVEN):
        cost = cost.quantize(COST_STEP, ROUND_HALF_EVEN)
    cost = Decimal(f"{cost.normalize():f}")  # 20, not 2E+1
    day = stamp_of(cells["opened_on"]).day if cells.get("opened_on") else opened_on
    return _Lot(row.line, quantity, cost, day or date.min, cells.get("currency", ""))


def _shares_of(lots: Sequence[_Lot]) -> Decimal:
    return sum((lot.quantity for lot in lots), Decimal(0))


def _line(ticker: str, lots: Sequence[_Lot]) -> HeldLine:
    """One position of its lots. Raises ValidationError, ValueError for two currencies, and
    UnknownCurrency."""
    if len({lot.currency for lot in lots}) > 1:
        raise ValueError("its lots are in several currencies: keep those of one")
    quantity = _shares_of(lots)
    cost = lots[0].cost
    if len(lots) > 1:
        paid = sum((lot.quantity * lot.cost for lot in lots), Decimal(0))
        cost = (paid / quantity).quantize(COST_STEP, ROUND_HALF_EVEN)
    return HeldLine.model_validate(
        {
            "line": lots[0].line,
            "ticker": spelled(ticker),
            "quantity": kept_shares(quantity),
            "cost": cost,
            "opened_on": min(lot.opened_on for lot in lots),
            "currency": currency(lots[0].currency) if lots[0].currency else None,
        }
    )
