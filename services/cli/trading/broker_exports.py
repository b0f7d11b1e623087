"""Files of holdings as brokers export them: which rows are positions, and which cell means what.

A form is known by its headings. Text before the headings and below the table, rows of cash and
sums are no positions. Interactive Brokers, Schwab and Trading 212 were tried on small files in
their form; Fidelity and Degiro are built from public documentation.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Final

from libs.files.dates import NoDate, stamp_of
from libs.files.finding import bad
from libs.files.numbers import NoNumber, has_decimal_comma, number_of
from libs.files.text import separator_of, text_of
from libs.market.symbols import spelled

FILE_BYTES_MAX = 256_000
PREAMBLE_ROWS_MAX = 40
"""Rows above the headings that are looked through."""
COST_STEP = Decimal("0.000001")
MEANINGS: Final[Mapping[str, frozenset[str]]] = {
    "ticker": frozenset({"ticker", "symbol", "symbol/isin", "instrument"}),
    "quantity": frozenset(
        {"quantity", "qty", "shares", "no. of shares", "qty (quantity)", "amount", "units"}
    ),
    "cost": frozenset(
        {
            "cost",
            "avg cost",
            "average cost",
            "cost price",
            "avg price",
            "average price",
            "price paid",
            "purchase price",
            "unit cost",
            "cost/share",
            "average cost basis",
            "price / share",
        }
    ),
    "basis": frozenset({"cost basis", "cost basis total", "total cost", "book value"}),
    "opened_on": frozenset(
        {"opened_on", "opened on", "date acquired", "acquired", "purchase date", "open date"}
    ),
    "currency": frozenset({"currency", "ccy", "currency (price / share)"}),
    "value": frozenset({"mkt val (market value)", "market value", "current value", "value"}),
    "action": frozenset({"action"}),
    "time": frozenset({"time"}),
}
"""The headings of each cell that is read, in lower case."""
CASH: Final = re.compile(r"cash\b.*|(spaxx|fdrxx|fzfxx|fcash|core)\*{0,2}", re.IGNORECASE)
SUM: Final = re.compile(r"(account |grand |sub)?total.*", re.IGNORECASE)
IBKR_TABLE: Final = "open positions"
TRADE: Final = re.compile(r"(market|limit|stop|stop limit) (buy|sell)", re.IGNORECASE)
NO_TRADE: Final = re.compile(
    r"(deposit|withdrawal|dividend|(lending )?interest|currency conversion|(new )?card|"
    r"spending cashback|result adjustment|fee).*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Row:
    """One position of a file: cells by their meaning, at the line where it begins."""

    line: int
    cells: Mapping[str, str]


@dataclass
class Export:
    """The positions of a file, its cash where it says so, and the headings that are not read."""

    rows: list[Row] = field(default_factory=list)
    meanings: Sequence[str] = ()
    cash_texts: list[str] = field(default_factory=list)
    """The amounts in the rows of cash."""
    separator: str = ","
    unused: Sequence[str] = ()
    notes: list[str] = field(default_factory=list)


def read_export(path: Path) -> Export:
    """The positions in a file. Raises BadFile where nothing in it looks like a table of them."""
    text = text_of(path, FILE_BYTES_MAX)
    separator = _separator(text)
    reader = csv.reader(
        io.StringIO(text.decode(), newline=""), delimiter=separator.decode(), strict=True
    )
    try:
        numbered = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise bad(path, reader.line_num, f"no CSV: {error}", "write it again") from None
    filled = [(line, cells) for line, cells in numbered if any(cells)]
    ours = _open_positions(filled)
    at = 0 if ours else _heading_row(filled)
    if at is None:
        first = {_heading(cell) for cell in filled[0][1]} if filled else set()
        missing = [name for name in ("ticker", "quantity") if not first & MEANINGS[name]]
        what = f"its first line has no column {' and no column '.join(missing)}"
        raise bad(path, 1, what, "name the columns")
    table = ours or filled[at:]
    heads = [_heading(cell) for cell in table[0][1]]
    by_meaning = _meanings(path, heads)
    export = Export(meanings=list(by_meaning), separator=separator.decode())
    export.unused = [head for n, head in enumerate(heads) if head and n not in by_meaning.values()]
    _fill(export, table[1:], heads, by_meaning)
    if "action" in by_meaning:
        export = _netted(path, export)
    return export


def _separator(text: bytes) -> bytes:
    """The separator of the widest line: a preamble has few."""
    lines = text.split(b"\n")[:PREAMBLE_ROWS_MAX]
    return separator_of(
        max(lines, key=lambda line: max(line.count(b) for b in (b",", b";", b"\t")))
    )


def _heading(cell: str) -> str:
    return " ".join(cell.replace("_", " ").split()).casefold().replace("opened on", "opened_on")


def _heading_row(rows: Sequence[tuple[int, list[str]]]) -> int | None:
    for at, (_, cells) in enumerate(rows[:PREAMBLE_ROWS_MAX]):
        heads = {_heading(cell) for cell in cells}
        if heads & MEANINGS["ticker"] and heads & MEANINGS["quantity"]:
            return at
    return None


def _open_positions(rows: Sequence[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """The table of positions in a statement of Interactive Brokers, without its sums and lots."""
    own = [
        (line, cells)
        for line, cells in rows
        if len(cells) > 2 and cells[0].casefold() == IBKR_TABLE
    ]
    return [
        (line, cells[2:])
        for line, cells in own
        if cells[1].casefold() == "header"
        or (cells[1].casefold(), cells[2].casefold()) == ("data", "summary")
    ]


def _meanings(path: Path, heads: Sequence[str]) -> dict[str, int]:
    columns: dict[str, int] = {}
    for meaning, names in MEANINGS.items():
        at = [n for n, head in enumerate(heads) if head in names]
        if meaning == "quantity" and len(at) > 1:
            at = [n for n in at if heads[n] != "amount"]
        is_doubled = len({heads[n] for n in at}) < len(at)
        if len(at) > 1 and (is_doubled or meaning in {"quantity", "cost"}):
            raise bad(path, 1, f"the column {meaning} stands in it twice", "keep one of the two")
        if at:
            columns[meaning] = at[0]
    return columns


def _fill(
    export: Export,
    rows: Sequence[tuple[int, list[str]]],
    heads: Sequence[str],
    by_meaning: Mapping[str, int],
) -> None:
    for line, cells in rows:
        meant = {name: cells[n] for name, n in by_meaning.items() if n < len(cells)}
        ticker = meant.get("ticker", "")
        has_cost = any(char.isdigit() for name in ("cost", "basis") for char in meant.get(name, ""))
        texts = [cell for cell in cells if cell]
        if CASH.fullmatch(ticker) and not has_cost:
            export.cash_texts.append(meant.get("value") or meant.get("quantity", ""))
        elif SUM.fullmatch(ticker) or (len(texts) == 1 and " " in texts[0]):
            continue  # a sum, or a line of text below the table
        elif len(cells) > len(heads) and any(cells[len(heads) :]):
            meant["too many"] = f"{len(cells)} cells under a header of {len(heads)}"
            export.rows.append(Row(line, meant))
        elif len(cells) < len(heads):
            meant["too few"] = f"{len(cells)} cells under a header of {len(heads)}"
            export.rows.append(Row(line, meant))
        else:
            export.rows.append(Row(line, meant))


def stated_cash(export: Export, *, comma: bool) -> Decimal | None:
    """The cash that the file states; None, so that it is asked for, where it states none, or one
    amount of it cannot be read."""
    try:
        amounts = [number_of(text, comma=comma) for text in export.cash_texts]
    except NoNumber:
        return None
    if not amounts or None in amounts:
        return None
    return sum((amount for amount in amounts if amount is not None), Decimal(0))


def decimal_comma(export: Export) -> bool:
    """Whether the file's numbers have decimal commas. Raises NoNumber where nobody can say."""
    texts = [
        row.cells[name]
        for row in export.rows
        for name in ("quantity", "cost", "basis")
        if row.cells.get(name)
    ]
    return has_decimal_comma(texts, is_comma_between=export.separator == ",")


def _netted(path: Path, export: Export) -> Export:
    """Positions from a history of trades: bought and sold shares at average cost, oldest first."""
    held: dict[str, list[Decimal]] = {}
    first: dict[str, Row] = {}
    since: dict[str, str] = {}
    for row in sorted(export.rows, key=lambda row: row.cells.get("time", "")):
        action = row.cells.get("action", "")
        if NO_TRADE.fullmatch(action):
            continue
        trade = TRADE.fullmatch(action)
        if trade is None:
            what = f"the action {action[:40]!r} may change what is held, and is not known"
            raise bad(path, row.line, what, "write the positions instead of the trades")
        if wrong := row.cells.get("too many") or row.cells.get("too few"):
            raise bad(path, row.line, wrong, "correct the row")
        ticker, (quantity, cost) = row.cells["ticker"], _trade(path, row)
        shares, spent = held.setdefault(ticker, [Decimal(0), Decimal(0)])
        if shares and first[ticker].cells.get("currency") != row.cells.get("currency"):
            what = f"a trade of {ticker} in another currency than the one before"
            raise bad(path, row.line, what, "write the positions instead of the trades")
        if trade[2].casefold() == "sell":
            if quantity > shares:
                what = f"more of {ticker} is sold than was bought: trades are missing"
                raise bad(path, row.line, what, "write the positions instead of the trades")
            quantity, cost = -quantity, spent / shares
        if not shares:
            first[ticker], since[ticker] = row, row.cells.get("time", "")[:10]
        held[ticker] = [shares + quantity, spent + quantity * cost]
    rows = []
    for ticker, (shares, spent) in held.items():
        if shares:
            cells = {
                **{name: first[ticker].cells.get(name, "") for name in ("currency",)},
                "ticker": ticker,
                "quantity": f"{shares.normalize():f}",
                "cost": f"{(spent / shares).quantize(COST_STEP, ROUND_HALF_EVEN).normalize():f}",
                "opened_on": since[ticker],
            }
            rows.append(Row(first[ticker].line, cells))
    note = (
        "positions are made of the file's trades, at average cost; the file must have all of them"
    )
    return Export(
        rows,
        meanings=["ticker", "quantity", "cost", "opened_on", "currency"],
        unused=export.unused,
        notes=[note],
        cash_texts=export.cash_texts,
    )


def _trade(path: Path, row: Row) -> tuple[Decimal, Decimal]:
    try:
        quantity, cost = (number_of(row.cells.get(name, "")) for name in ("quantity", "cost"))
        stamp_of(row.cells.get("time", "")[:10])
    except (NoNumber, NoDate) as error:
        raise bad(path, row.line, f"a trade that cannot be read ({error})", "correct it") from None
    if quantity is None or cost is None or quantity <= 0:
        raise bad(path, row.line, "a trade without quantity or price", "correct it")
    return quantity, cost


def merged_lots(rows: Sequence[Row]) -> Iterator[tuple[str, Sequence[Row]]]:
    """The rows of each ticker, in the file's order."""
    by_ticker: dict[str, list[Row]] = {}
    for row in rows:
        by_ticker.setdefault(spelled(row.cells.get("ticker", "")), []).append(row)
    yield from by_ticker.items()
