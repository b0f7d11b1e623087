"""Files of holdings as brokers export them: which rows are positions, and which cell means what.

A form is known by its headings. Text before the headings and below the table, rows of cash and
sums are no positions. Some exports list trades: see `trade_history`. Interactive Brokers'
statement, Schwab and Trading 212 were tried on small files in their form; the others are built from
public documentation.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Final

from contracts.types import spelled
from libs.files.finding import bad
from libs.files.numbers import NoNumber, has_decimal_comma, number_of
from libs.files.text import separator_of, text_of
from libs.market.symbols import no_share

FILE_BYTES_MAX = 256_000
PREAMBLE_ROWS_MAX = 40
"""Rows above the headings that are looked through."""
COST_STEP = Decimal("0.000001")
CENT = Decimal("0.01")
MEANINGS: Final[Mapping[str, frozenset[str]]] = {
    "ticker": frozenset({"ticker", "symbol", "symbol/isin", "instrument"}),
    "quantity": frozenset(
        {
            "quantity",
            "qty",
            "shares",
            "no. of shares",
            "qty (quantity)",
            "amount",
            "units",
            "position",
            "number of shares",
        }
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
            "costbasisprice",
            "cost per share",
            "avg. cost",
            "avg cost basis",
        }
    ),
    "basis": frozenset(
        {"cost basis", "cost basis total", "total cost", "book value", "costbasismoney"}
    ),
    "opened_on": frozenset(
        {
            "opened_on",
            "opened on",
            "date acquired",
            "acquired",
            "purchase date",
            "open date",
            "opendatetime",
            "date",
        }
    ),
    "currency": frozenset({"currency", "ccy", "currency (price / share)", "currencyprimary"}),
    "value": frozenset(
        {
            "mkt val (market value)",
            "market value",
            "current value",
            "value",
            "value in eur",
            "positionvalue",
            "total value",
        }
    ),
    "action": frozenset({"action"}),
    "time": frozenset({"time"}),
    "name": frozenset({"description", "name", "product", "security description"}),
    "kind": frozenset(
        {"asset category", "assetclass", "asset class", "security type", "asset type", "type"}
    ),
    "account": frozenset({"account number", "account", "clientaccountid"}),
    "side": frozenset({"side", "direction", "long/short", "position side", "buy/sell"}),
    "order": frozenset({"order id", "order-id"}),
    "detail": frozenset({"levelofdetail", "datadiscriminator"}),
}
"""The headings of each cell that is read, in lower case."""
CASH: Final = re.compile(r"cash\b.*|(fcash|core)\*{0,2}|[a-z]{3}xx\*{0,2}", re.IGNORECASE)
"""Cash and money-market funds, whose symbols in the US end in XX: one share is one dollar."""
_SUM: Final = r"(((account|positions|grand|sub)[ -]?)?totals?|(gesamt|zwischen|depot)?summe|gesamt)"
SUM: Final = re.compile(rf"{_SUM}\b.*", re.IGNORECASE)
"""A sum, where nothing but a value stands beside it: shares may be called so too."""
SUM_ALONE: Final = re.compile(rf"{_SUM}( (usd|eur|gbp|chf|cad|aud|jpy))?:?", re.IGNORECASE)
"""A sum that may have a cost, and below the tickers a quantity."""
SHORT: Final = re.compile(r"s|short|sell|sold|sell short|short sell|sld|sto", re.IGNORECASE)
PENDING: Final = "pending activity"
SHARES: Final = re.compile(
    r"-*|stocks?|stk|equit(y|ies)|common stocks?|etfs?\b.*|adrs?|shares?|cash|margin|reits?"
    r"|(mutual |closed end )?funds?\b.*|exchange traded funds?.*",
    re.IGNORECASE,
)
"""Kinds of positions that are shares, or are bought and sold as they are."""
OPTION: Final = re.compile(
    r"-?[A-Z.]{1,6} *\d{6}[CP]\d+(\.\d+)?|[A-Z.]{1,6} \d{1,2}/\d{1,2}/\d{2,4} \$?[\d.,]+ "
    r"(C|P|CALL|PUT)|[A-Z.]{1,6} \d{1,2}[A-Z]{3}\d{2} [\d.,]+ [CP]|.* (call|put) \$[\d.,]+",
    re.IGNORECASE,
)
"""Symbols of options, and Robinhood's description of one."""
OF_OPTIONS: Final = re.compile(r"bto|stc|sto|btc|oexp", re.IGNORECASE)
"""Robinhood's codes of trades of options, and of one that expired."""
SYMBOL: Final = re.compile(r"[A-Za-z0-9.^=/-]{1,15}")
ISIN: Final = re.compile(r"[A-Z]{2}[A-Z0-9]{9}[0-9]")
IBKR_TABLE: Final = "open positions"


@dataclass(frozen=True, slots=True)
class BrokerExport:
    """An export of a broker, known by its headings. `columns` are headings that mean something else
    in it than elsewhere; `is_trades` where it lists trades, `is_tried` where a file was read."""

    key: str
    name: str
    marks: frozenset[str]
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    is_trades: bool = False
    is_tried: bool = False
    month_first: bool | None = None


def _one(**columns: str) -> Mapping[str, frozenset[str]]:
    return {meaning: frozenset(heads.split("|")) for meaning, heads in columns.items()}


NOBODY: Final = BrokerExport("", "", frozenset())
"""For a file in no broker's form."""
IBKR: Final = BrokerExport("ibkr", "Interactive Brokers' statement", frozenset(), is_tried=True)
BROKERS: Final = (
    BrokerExport(
        "ibkr", "Interactive Brokers' Flex query", frozenset({"symbol", "costbasisprice"})
    ),
    BrokerExport(
        "schwab", "Schwab's positions", frozenset({"symbol", "qty (quantity)"}), is_tried=True
    ),
    BrokerExport("schwab", "Schwab's positions", frozenset({"symbol", "quantity", "day change %"})),
    BrokerExport(
        "fidelity",
        "Fidelity's positions",
        frozenset({"symbol", "current value", "cost basis total"}),
        month_first=True,
    ),
    BrokerExport(
        "robinhood",
        "Robinhood's account activity",
        frozenset({"activity date", "instrument", "trans code"}),
        _one(
            ticker="instrument",
            quantity="quantity",
            cost="price",
            action="trans code",
            time="activity date",
        ),
        is_trades=True,
        month_first=True,
    ),
    BrokerExport(
        "trading212",
        "Trading 212's history",
        frozenset({"action", "no. of shares"}),
        is_trades=True,
        is_tried=True,
    ),
    BrokerExport("degiro", "Degiro's portfolio", frozenset({"product", "symbol/isin"})),
    *(
        BrokerExport(
            "degiro",
            "Degiro's transactions",
            frozenset(columns["quantity"] | {"isin"}),
            {**columns, "ticker": frozenset({"isin"})},
            is_trades=True,
            month_first=False,
        )
        for columns in (
            _one(quantity="quantity", cost="price", time="date", clock="time", name="product"),
            _one(quantity="number", cost="price", time="date", clock="time", name="product"),
            _one(quantity="aantal", cost="koers", time="datum", clock="tijd", name="product"),
            _one(quantity="anzahl", cost="kurs", time="datum", clock="uhrzeit", name="produkt"),
        )
    ),
)


@dataclass(frozen=True, slots=True)
class ExportRow:
    """One position or trade of a file: cells by their meaning, at the line where it begins."""

    line: int
    cells: Mapping[str, str]


@dataclass
class Export:
    """The positions of a file, its cash where it says so, and the headings that are not read."""

    rows: list[ExportRow] = field(default_factory=list)
    meanings: Sequence[str] = ()
    cash: list[tuple[str, str]] = field(default_factory=list)
    """The amounts in the rows of cash, each with its currency, "" where it has none."""
    unused: Sequence[str] = ()
    notes: list[str] = field(default_factory=list)
    cash_notes: list[str] = field(default_factory=list)
    """How the file's cash is read."""
    beside: list[str] = field(default_factory=list)
    """All cells of the table, which show how its numbers are written."""
    broker: BrokerExport = NOBODY


def read_export(path: Path, columns: Mapping[str, str] | None = None) -> Export:
    """The rows of a file; `columns` names the heading of a meaning. Raises BadFile where nothing in
    it looks like a table of positions or trades."""
    text = text_of(path, FILE_BYTES_MAX, is_windows_allowed=True)
    reader = csv.reader(
        io.StringIO(text.decode(), newline=""), delimiter=_separator(text), strict=True
    )
    try:
        numbered = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        raise bad(path, reader.line_num, f"no CSV: {error}", "write it again") from None
    filled = [(line, cells) for line, cells in numbered if any(cells)]
    if statement := _statement(path, filled):
        return statement
    at, broker, named = _heading_row(filled, columns or {})
    if at is None:
        first = {_heading(cell) for cell in filled[0][1]} if filled else set()
        missing = [name for name in ("ticker", "quantity") if not first & named[name]]
        what = f"its first line has no column {' and no column '.join(missing)}"
        raise bad(path, 1, what, "name the columns (--columns ticker=...,quantity=...)")
    heads = _without_copies([_heading(cell) for cell in filled[at][1]], filled[at + 1 :])
    by_meaning = _meanings(path, filled[at][0], heads, named)
    export = Export(meanings=[*by_meaning], broker=broker)
    if broker.is_trades and "currency" not in by_meaning:
        beside = by_meaning.get("cost", len(heads)) + 1
        if beside < len(heads) and not heads[beside]:  # Degiro's currency has no heading
            by_meaning["currency"] = beside
    export.unused = [head for n, head in enumerate(heads) if head and n not in by_meaning.values()]
    _fill(export, filled[at + 1 :], heads, by_meaning)
    details = {row.cells.get("detail", "").casefold() for row in export.rows}
    if "summary" in details:  # its lots stand below each position again
        export.rows = [r for r in export.rows if "lot" not in r.cells.get("detail", "").casefold()]
    _note_accounts(export)
    return export


def _without_copies(heads: Sequence[str], rows: Sequence[tuple[int, list[str]]]) -> list[str]:
    """The headings, "" for each whose column is a copy of one before it under the same heading."""
    kept: list[str] = []
    for n, head in enumerate(heads):
        first = heads.index(head)
        is_copy = (
            first < n
            and bool(rows)
            and all(cells[n : n + 1] == cells[first : first + 1] for _, cells in rows)
        )
        kept.append("" if is_copy else head)
    return kept


def _statement(path: Path, rows: Sequence[tuple[int, list[str]]]) -> Export | None:
    """The positions and the cash in a statement of Interactive Brokers, whose lines begin with the
    name of their table; None for another file."""
    export = Export(broker=IBKR)
    heads: list[str] = []
    by_meaning: dict[str, int] = {}
    base = ""
    sums: dict[str, str] = {}
    for line, cells in rows:
        match [cell.casefold() for cell in cells[:3]]:
            case [table, "header", *_] if table == IBKR_TABLE:
                heads = [_heading(cell) for cell in cells[2:]]
                by_meaning = _meanings(path, line, heads, MEANINGS)
                export.meanings = [*by_meaning]
            case [table, "data", "summary"] if table == IBKR_TABLE:
                _fill(export, [(line, cells[2:])], heads, by_meaning)
            case ["account information", "data", "base currency"] if len(cells) > 3:
                base = cells[3]
            case ["cash report", "data", "ending cash"] if len(cells) > 4:
                sums[cells[3].casefold()] = cells[4]
    if not heads:
        return None
    whole = sums.pop("base currency summary", None)
    if whole is not None and (base or len(sums) == 1):
        export.cash = [(whole, base or next(iter(sums)).upper())]
        if len(sums) > 1:
            export.cash_notes.append(
                f"cash in {len(sums)} currencies counts at the statement's rates"
            )
    return export


def _separator(text: bytes) -> str:
    """The separator of the widest line: a preamble has few."""
    lines = text.split(b"\n")[:PREAMBLE_ROWS_MAX]
    widest = max(lines, key=lambda line: max(line.count(b) for b in (b",", b";", b"\t")))
    return separator_of(widest).decode()


def _heading(cell: str) -> str:
    return " ".join(cell.replace("_", " ").split()).casefold().replace("opened on", "opened_on")


def _heading_row(
    rows: Sequence[tuple[int, list[str]]], columns: Mapping[str, str]
) -> tuple[int | None, BrokerExport, Mapping[str, frozenset[str]]]:
    """Where the headings stand, whose they are, and what each heading means there."""
    chosen = {name: frozenset({_heading(head)}) for name, head in columns.items()}
    for at, (_, cells) in enumerate(rows[:PREAMBLE_ROWS_MAX]):
        heads = {_heading(cell) for cell in cells}
        broker = next((known for known in BROKERS if known.marks <= heads), NOBODY)
        named = {**MEANINGS, **broker.columns, **chosen}
        if heads & named["ticker"] and heads & named["quantity"]:
            return at, broker, named
    return None, NOBODY, {**MEANINGS, **chosen}


def _meanings(
    path: Path, line: int, heads: Sequence[str], named: Mapping[str, frozenset[str]]
) -> dict[str, int]:
    columns: dict[str, int] = {}
    for meaning, names in named.items():
        at = [n for n, head in enumerate(heads) if head in names]
        if meaning == "quantity" and len(at) > 1:
            at = [n for n in at if heads[n] != "amount"]
        is_doubled = len({heads[n] for n in at}) < len(at)
        if len(at) > 1 and (is_doubled or meaning in {"quantity", "cost"}):
            what = f"the column {meaning} appears twice"
            raise bad(path, line, what, f"keep one, or name it: --columns {meaning}=...")
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
        export.beside += cells
        meant = {name: cells[n] for name, n in by_meaning.items() if n < len(cells)}
        label = meant.get("ticker", "").strip("-") or meant.get("name", "")
        texts = [cell for cell in cells if cell]
        if [_heading(cell) for cell in cells if cell] == [head for head in heads if head]:
            continue  # the table of another account
        if not export.broker.is_trades and _is_cash(label, meant):
            amount = meant.get("value") or meant.get("quantity", "")
            export.cash.append((amount, meant.get("currency", "")))
        elif label.casefold() == PENDING:
            amount = meant.get("value", "")
            export.notes.append(f"{label} {amount} is not counted".replace("  ", " "))
        elif _is_sum(label, meant):
            export.notes.append(f"left out: {label[:40]!r}, a sum (line {line})")
        elif len(texts) == 1 and " " in texts[0]:
            continue  # a line of text below the table
        else:
            if len(cells) < len(heads) or any(cells[len(heads) :]):
                meant["other width"] = f"{len(cells)} cells under a header of {len(heads)}"
            export.rows.append(ExportRow(line, meant))


def _has_number(cells: Mapping[str, str], *names: str) -> bool:
    return any(char.isdigit() for name in names for char in cells.get(name, ""))


def _is_sum(label: str, cells: Mapping[str, str]) -> bool:
    """Whether a row is a sum. With a quantity or a cost it is one only where its label says nothing
    else, and with a quantity only where that stands below the tickers."""
    if SUM_ALONE.fullmatch(label):
        return bool(cells.get("ticker", "").strip("-")) or not _has_number(cells, "quantity")
    return SUM.fullmatch(label) is not None and not _has_number(cells, "quantity", "cost", "basis")


def is_short(row: ExportRow) -> bool:
    """Whether the row says in words that it is a short position."""
    return SHORT.fullmatch(row.cells.get("side", "")) is not None


def _is_cash(label: str, cells: Mapping[str, str]) -> bool:
    """Whether a row is cash. A share may have the ticker CASH: then it has a cost."""
    has_cost = _has_number(cells, "cost", "basis")
    if label and label.casefold() == cells.get("currency", "").casefold():
        # Money as a row of its own costs 1; the share that is called USD does not.
        is_one = re.fullmatch(r"1([.,]0*)?", cells.get("cost", ""))
        return is_one is not None or not has_cost
    is_fund = label.strip("*").upper().endswith("XX")
    return CASH.fullmatch(label) is not None and (is_fund or not has_cost)


def _note_accounts(export: Export) -> None:
    accounts = {row.cells.get("account", "") for row in export.rows} - {""}
    if len(accounts) > 1:
        export.notes.append(f"{len(accounts)} accounts of the file are combined")


def other_kind(row: ExportRow) -> str:
    """The kind of thing that a row is where it is no share; "" for a share."""
    ticker, kind = row.cells.get("ticker", ""), row.cells.get("kind", "")
    if OF_OPTIONS.fullmatch(row.cells.get("action", "")):
        return "an option"
    if OPTION.fullmatch(ticker) or OPTION.fullmatch(row.cells.get("name", "")):
        return "an option"
    if not SHARES.fullmatch(kind):
        return kind
    return no_share(spelled(ticker)) if SYMBOL.fullmatch(ticker) else ""


def stated_cash(export: Export, *, comma: bool) -> tuple[Decimal | None, str]:
    """The cash that the file states, and its currency ("" where it states none). None, so that it
    is asked for, where there is no such row, one of them cannot be read, or they have several
    currencies."""
    export.notes += export.cash_notes
    currencies = {money.upper() for _, money in export.cash}
    try:
        amounts = [number_of(text, comma=comma) for text, _ in export.cash]
    except NoNumber:
        return None, ""
    if len(currencies) > 1:
        text = ", ".join(f"{amount} {money}" for amount, money in export.cash)
        export.notes.append(f"cash in several currencies is not used: {text}")
        return None, ""
    if not amounts or None in amounts:
        return None, ""
    whole = sum((amount for amount in amounts if amount is not None), Decimal(0))
    kept = whole.quantize(CENT, ROUND_HALF_EVEN)
    if kept != whole:
        export.notes.append(f"cash {whole:f} counts as {kept:f}: the books use cents")
    return kept, next(iter(currencies))


def decimal_comma(export: Export) -> bool:
    """Whether the file's numbers have decimal commas. Raises NoNumber where nothing shows it."""
    texts = [
        row.cells[name]
        for row in export.rows
        for name in ("quantity", "cost", "basis")
        if any(char.isdigit() for char in row.cells.get(name, ""))
    ]
    return has_decimal_comma([*texts, *(amount for amount, _ in export.cash)], export.beside)


def merged_lots(rows: Sequence[ExportRow]) -> Iterator[tuple[str, Sequence[ExportRow]]]:
    """The rows of each ticker, in the file's order."""
    by_ticker: dict[str, list[ExportRow]] = {}
    for row in rows:
        by_ticker.setdefault(spelled(row.cells.get("ticker", "")), []).append(row)
    yield from by_ticker.items()
