"""A file of holdings as a person has it, and every line of it that cannot be used as it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

from pydantic import ValidationError

from contracts.capital import HOLDINGS_MAX, PRICE_MAX, SHARES_MAX, HeldLine, ImportFinding
from contracts.types import spelled
from libs.facts.amounts import cut, plain
from libs.files.dates import NoDate, months_first, stamp_of
from libs.files.finding import BadFile, bad
from libs.files.numbers import CURRENCIES, NoNumber, is_amount, number_of, sign_of
from libs.market.symbols import UnknownCurrency, currency
from libs.quant.sizing import kept_shares
from libs.runtime.wording import describe
from services.cli.shell.problem import CliProblem, WrongUsage
from services.cli.trading.broker_exports import (
    BROKERS,
    COST_STEP,
    FILE_BYTES_MAX,
    IBKR,
    ISIN,
    Export,
    ExportRow,
    decimal_comma,
    is_short,
    merged_lots,
    other_kind,
    read_export,
    stated_cash,
)
from services.cli.trading.trade_history import days_of, is_history, left_out, netted, way_out

__all__ = ["FILE_BYTES_MAX", "HoldingsFile", "read_holdings"]

CELL_CHARS_MAX = 40
"""Of a cell that is quoted in a finding."""
EXAMPLE = "ticker,quantity,cost,opened_on\nAAPL,10,51.25,2009-03-02"
WHAT = {
    "ticker": "the share's ticker",
    "quantity": "how many shares",
    "cost": "cost per share",
    "opened_on": "purchase date, YYYY-MM-DD",
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
    cash_currency: str = ""
    """Of `cash`; "" where the file does not say it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read: whose export it is, the headings of the desk's columns, other names of
    tickers, whether months come first in dates, whether numbers have decimal commas, whether rows
    that are no shares are left out, whether its cash is left out, and since when shares are held
    that have no date; each None or empty where the file says it."""

    opened_on: date | None = None
    broker: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    tickers: Mapping[str, str] = field(default_factory=dict)
    month_first: bool | None = None
    decimal_comma: bool | None = None
    is_shares_only: bool = False
    is_without_cash: bool = False


@dataclass(frozen=True, slots=True)
class _Lot:
    """One row, read."""

    line: int
    quantity: Decimal
    cost: Decimal
    opened_on: date
    currency: str


def read_holdings(path: Path, reading: Reading = Reading()) -> HoldingsFile:
    """The file's positions, the lots of a ticker as one. Raises `CliProblem` where it is no such
    file at all."""
    export, comma, month_first = _export(path, reading)
    opened_on = reading.opened_on
    lines: list[HeldLine] = []
    findings: list[ImportFinding] = []
    if "opened_on" not in export.meanings and opened_on is None:
        text = "the file has no purchase dates; give one with --opened-on YYYY-MM-DD"
        findings.append(ImportFinding(field="opened_on", message=text))
        opened_on = date.min
    notes = export.notes
    for ticker, rows in merged_lots(export.rows):
        lots, wrong = [], []
        for row in rows:
            faults = [*_wrong(row, export, opened_on, comma=comma, month_first=month_first)]
            wrong += faults
            if not faults:
                lots.append(_lot(row, opened_on, comma=comma, month_first=month_first))
        if not wrong and not kept_shares(_shares_of(lots)):
            notes.append(left_out(ticker, _shares_of(lots)))
        elif not wrong:
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
                    places = "the books use six decimals"
                    notes.append(f"{ticker}: {exact.normalize():f} shares as {kept:f}: {places}")
        findings += wrong
    if opened_on == date.min:
        lines = []  # nothing can be shown without a date
    cash, money = (None, "") if reading.is_without_cash else stated_cash(export, comma=comma)
    return HoldingsFile(lines, findings, export.unused, cash, notes, money)


def _export(path: Path, reading: Reading) -> tuple[Export, bool, bool | None]:
    """The positions of the file, whether its numbers have decimal commas, and whether months come
    first in its dates. Raises `CliProblem`."""
    try:
        export = read_export(path, reading.columns)
        _require_broker(path, export, reading.broker)
        _leave_out(export, reading)
        comma = reading.decimal_comma
        if comma is None:
            comma = decimal_comma(export)
        month_first = _order(export, reading)
        if is_history(export):
            export = netted(path, export, comma=comma, month_first=month_first)
            comma, month_first = False, None
    except BadFile as error:
        where = f"line {error.finding.line}: " if (error.finding.line or 1) > 1 else ""
        raise _unreadable(path, f"{where}{error.finding.what}", error.finding.remedy) from None
    except NoNumber as error:
        raise _unreadable(path, str(error), "use --decimal comma or --decimal point") from None
    if not {"cost", "basis"} & {*export.meanings}:
        remedy = "name it with --columns cost=..., or add it"
        if export.broker.key == "degiro":
            remedy = "Degiro's portfolio has no cost per share: export the transactions"
        raise _unreadable(path, "its first line has no column cost", remedy)
    if not export.rows:
        raise _unreadable(path, "it has a header and no line below it")
    if len(export.rows) > HOLDINGS_MAX:
        many = len(export.rows)
        raise _unreadable(path, f"it has {many} lines, at most {HOLDINGS_MAX} can be read")
    export.rows = [_renamed(row, reading.tickers) for row in export.rows]
    if export.broker.key:
        untested = "" if export.broker.is_tried else ", untested: built from documentation"
        export.notes.insert(0, f"read as {export.broker.name}{untested}")
    return export, comma, month_first


def _require_broker(path: Path, export: Export, key: str | None) -> None:
    """Raise BadFile where the file is another broker's than was named."""
    if key is not None and export.broker.key not in {"", key}:
        named = next(it.name for it in (IBKR, *BROKERS) if it.key == key)
        what = f"its headings are from {export.broker.name}, not from {named}"
        raise bad(path, 1, what, "leave --from out, or name the right one")


def _leave_out(export: Export, reading: Reading) -> None:
    """Leave out what is no share, where that was asked for, and note it."""
    if not reading.is_shares_only:
        return
    others = [row for row in export.rows if other_kind(row)]
    export.rows = [row for row in export.rows if row not in others]
    for row in others:
        label = row.cells.get("ticker") or row.cells.get("name", "")
        export.notes.append(f"left out: {_quoted(label)}, {other_kind(row)} (line {row.line})")


def _order(export: Export, reading: Reading) -> bool | None:
    """Whether months come first in the file's dates: as was said, else as the dates themselves say,
    else as the broker writes them. Notes what the dates alone leave open."""
    texts = [row.cells.get("opened_on", "") for row in export.rows]
    if is_history(export):
        texts = [*days_of(export.rows)]
    texts = [text for text in texts if "/" in text or text[2:3] == "-"]
    if not texts:
        return None
    by_dates = months_first(texts)
    order = next(
        (it for it in (reading.month_first, by_dates, export.broker.month_first) if it is not None),
        None,
    )
    if order is not None:
        export.notes.append(f"dates are read {'month' if order else 'day'} first, as {texts[0]}")
    return order


def _renamed(row: ExportRow, tickers: Mapping[str, str]) -> ExportRow:
    ticker = row.cells.get("ticker", "")
    other = tickers.get(ticker.upper())
    return row if other is None else ExportRow(row.line, {**row.cells, "ticker": other})


def _unreadable(path: Path, why: str, remedy: str = "") -> CliProblem:
    shown = EXAMPLE.replace("\n", "\n    ")
    first = f"{remedy}, or " if remedy else ""
    return WrongUsage(f"{path}: {why}", f"{first}write it like this:\n    {shown}")


def _wrong(
    row: ExportRow, export: Export, opened_on: date | None, *, comma: bool, month_first: bool | None
) -> Iterator[ImportFinding]:
    """The missing values, those that are no number or date, and what is no share."""
    cells = row.cells
    if fault := _no_share(row):
        field, text = fault
        yield ImportFinding(line=row.line, field=field, message=text)
        return
    cost = "cost" if cells.get("cost") or "cost" in export.meanings else "basis"
    if not cells.get("cost") and cells.get("basis"):
        cost = "basis"
    for head in ("ticker", "quantity", cost, "opened_on"):
        text = cells.get(head, "")
        name = "cost" if head == "basis" else head
        why = ""
        if not text:
            if head != "opened_on" or opened_on is None:
                why = f"{name} is missing: {WHAT[name]}"
        elif head == "opened_on":
            why = _no_date(text, month_first=month_first)
        elif head != "ticker":
            why = _no_number(name, text, comma=comma)
            stated = cells.get("currency", "").upper()
            if not why and stated and stated not in CURRENCIES.get(sign_of(text), {stated}):
                why = f"{name} is {_quoted(text)}, which is not {stated}: correct one of the two"
        if why:
            yield ImportFinding(line=row.line, field=name, message=why)


def _no_share(row: ExportRow) -> tuple[str, str] | None:
    """Why a whole row is none of a share that the desk can hold, and the field that says so."""
    cells = row.cells
    ticker = cells.get("ticker", "")
    if kind := other_kind(row):
        why = f"is {kind}, and the desk holds only shares: leave it out (--shares-only)"
        return "ticker", f"{_quoted(ticker)} {why}"
    if ISIN.fullmatch(ticker):
        name = f" ({_quoted(cells['name'])})" if cells.get("name") else ""
        return "ticker", f"{ticker}{name} is an ISIN: say its ticker with --ticker {ticker}=TICKER"
    if is_short(row):
        why = f"is a short position ({_quoted(cells['side'])}), which the desk does not support"
        return "quantity", f"{_quoted(ticker)} {why}: leave the row out"
    if width := cells.get("other width"):
        return "", f"{width}; write numbers without commas"
    return None


def _no_number(head: str, text: str, *, comma: bool) -> str:
    example = "10" if head == "quantity" else "51.25"
    if head == "quantity" and is_amount(text):
        return f"quantity is {_quoted(text)}, an amount of money: write how many shares"
    try:
        number = number_of(text, comma=comma)
    except NoNumber as error:
        return f"{head} is {_quoted(text)}, {error}: write it like {example}"
    if number is None:
        return f"{head} is {_quoted(text)}, not a number: write it like {example}"
    if number > (SHARES_MAX if head == "quantity" else SHARES_MAX * PRICE_MAX):
        return f"{head} is {_quoted(text)}: too large"
    if number < 0 or (number == 0 and head == "quantity"):
        short = " (the desk holds no short positions)" if head == "quantity" else ""
        least = "more than 0" if head == "quantity" else "0 or more"
        return f"{head} is {_quoted(text)}: it must be {least}{short}"
    return ""


def _no_date(text: str, *, month_first: bool | None) -> str:
    try:
        stamp_of(_day(text), month_first=month_first)
    except NoDate as error:
        return f"opened_on is {_quoted(text)}, no date ({error}): {way_out(error)}"
    return ""


def _day(text: str) -> str:
    """The day of a date with a time behind it."""
    return text.replace(";", " ").replace(",", " ").split(" ")[0] if text[:4].isdigit() else text


def _quoted(text: str) -> str:
    return repr(cut(plain(text), CELL_CHARS_MAX))


def _lot(row: ExportRow, opened_on: date | None, *, comma: bool, month_first: bool | None) -> _Lot:
    cells: Mapping[str, str] = row.cells
    quantity = number_of(cells["quantity"], comma=comma) or Decimal(0)
    paid = cells.get("cost") or cells["basis"]
    cost = number_of(paid, comma=comma) or Decimal(0)
    if not cells.get("cost"):
        cost = cost / quantity
    kept = cost.quantize(COST_STEP, ROUND_HALF_EVEN).normalize()
    cost = Decimal(f"{kept:f}")  # 20, not 2E+1
    day = opened_on
    if stated := cells.get("opened_on"):
        day = stamp_of(_day(stated), month_first=month_first).day
    meant = CURRENCIES.get(sign_of(paid), frozenset())
    money = cells.get("currency") or (next(iter(meant)) if len(meant) == 1 else "")
    return _Lot(row.line, quantity, cost, day or date.min, money)


def _shares_of(lots: Sequence[_Lot]) -> Decimal:
    return sum((lot.quantity for lot in lots), Decimal(0))


def _line(ticker: str, lots: Sequence[_Lot]) -> HeldLine:
    """One position of its lots. Raises ValidationError, ValueError for two currencies, and
    UnknownCurrency."""
    if len({lot.currency for lot in lots}) > 1:
        raise ValueError(f"the lots of {ticker} are in several currencies: keep one currency")
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
