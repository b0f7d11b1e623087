"""Positions from a broker's history of trades: average cost, the oldest trade first.

A sale takes its part of the average cost. Splits and transfers between the trades are not in such a
history, or cannot be told from it: what may change the number of shares is refused by name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Final

from contracts.types import spelled
from libs.files.dates import NoDate, stamp_of
from libs.files.finding import BadFile, bad
from libs.files.numbers import NoNumber, is_amount, number_of
from libs.quant.sizing import kept_shares
from services.cli.trading.broker_exports import COST_STEP, Export, ExportRow, other_kind

TRADE: Final = re.compile(r"((market|limit|stop|stop limit) )?(?P<side>buy|sell)", re.IGNORECASE)
NO_TRADE: Final = re.compile(
    r"(deposit|withdrawal|dividend|(lending )?interest|currency conversion|(new )?card|"
    r"spending cashback|result adjustment|fee).*"
    r"|cdiv|mdiv|ach|rtp|int|slip|gold|[adm]fee|dtax|mint|misc|gmpc|jnlc|cfir|xent(_cc)?",
    re.IGNORECASE,
)
"""What moves cash alone: Trading 212's words, and Robinhood's codes."""
EXAMPLES: Final = {"time": "Date", "cost": "Price"}
INSTEAD: Final = "write the positions instead of the trades"
NOTE: Final = (
    "positions come from the file's trades, at average cost. It must have all trades, and splits "
    "are not known (compare the shares with your broker's)"
)


@dataclass(frozen=True, slots=True)
class _Trade:
    row: ExportRow
    day: date
    clock: str
    quantity: Decimal
    """Below zero where they are sold."""
    price: Decimal


@dataclass
class _Position:
    first: ExportRow
    since: date
    shares: Decimal = Decimal(0)
    spent: Decimal = Decimal(0)


def is_history(export: Export) -> bool:
    """Whether the rows of a file are trades."""
    return export.broker.is_trades or "action" in export.meanings


def netted(path: Path, export: Export, *, comma: bool, month_first: bool | None = None) -> Export:
    """The positions that the trades of a file leave. Raises BadFile."""
    missing = [name for name in ("time", "cost") if name not in export.meanings]
    if missing:
        what = f"it lists trades, and has no column {' and no column '.join(missing)}"
        example = ",".join(f"{name}={EXAMPLES[name]}" for name in missing)
        raise bad(path, 1, what, f"name the columns (--columns {example})")
    trades = [
        trade
        for row in export.rows
        if (trade := _trade(path, row, comma=comma, month_first=month_first)) is not None
    ]
    if trades and trades[0].day > trades[-1].day:
        trades.reverse()  # newest first
    _require_orders(path, trades)
    notes: list[str] = []
    try:
        held = _held(path, trades, notes)
    except BadFile as error:
        # Trades of one day do not show whether the newest stands first.
        notes = []
        try:
            held = _held(path, trades[::-1], notes)
        except BadFile:
            raise error from None
    rows = [ExportRow(it.first.line, _cells(it)) for it in held.values() if it.shares]
    return replace(
        export,
        rows=rows,
        meanings=["ticker", "quantity", "cost", "opened_on", "currency"],
        notes=[*export.notes, NOTE, *notes],
    )


def way_out(error: NoDate) -> str:
    """The remedy for a date of a broker's file."""
    is_open = "could be" in str(error)
    return f"{error.remedy}{', or use --dates day-first or month-first' if is_open else ''}"


def left_out(ticker: str, shares: Decimal) -> str:
    """The note on less of a share than the books can keep."""
    return f"{ticker}: {shares.normalize():f} shares are left out: the books use six decimals"


def _require_orders(path: Path, trades: Sequence[_Trade]) -> None:
    """Raise BadFile for two opposite trades at one time, of one value and without an order: Degiro
    books a split so, and the exchange of a share for another."""
    alone = [it for it in trades if it.row.cells.get("order") == ""]
    for first, second in combinations(alone, 2):
        values = first.quantity * first.price, second.quantity * second.price
        is_other = first.quantity != -second.quantity or _isin(first) != _isin(second)
        if (
            (first.day, first.clock) == (second.day, second.clock)
            and is_other
            and values[0] * values[1] < 0
            and abs(values[0] + values[1]) <= abs(values[0]) / 100
        ):
            old, new = (first, second) if first.quantity < 0 else (second, first)
            label = old.row.cells.get("name") or _isin(old)
            what = (
                f"{-old.quantity.normalize():f} shares of {label[:40]!r} were exchanged for"
                f" {new.quantity.normalize():f} without an order: a split"
            )
            raise bad(path, max(first.row.line, second.row.line), what, INSTEAD)


def _isin(trade: _Trade) -> str:
    return trade.row.cells["ticker"]


def _held(path: Path, trades: Sequence[_Trade], notes: list[str]) -> dict[str, _Position]:
    """The positions after the trades, those of one moment in their order. Raises BadFile."""
    held: dict[str, _Position] = {}
    for trade in sorted(trades, key=lambda it: (it.day, it.clock)):
        _post(path, held, trade, notes)
    return held


def _trade(path: Path, row: ExportRow, *, comma: bool, month_first: bool | None) -> _Trade | None:
    """The trade in a row; None where it moves cash alone. Raises BadFile."""
    cells, wrong = row.cells, partial(bad, path, row.line)
    action = cells.get("action", "")
    if "action" in cells and NO_TRADE.fullmatch(action):
        return None
    if kind := other_kind(row):
        label = cells.get("name") or cells.get("ticker", "")
        what = f"{label[:40]!r} is {kind}, and the desk holds only shares"
        raise wrong(what, "leave it out (--shares-only)")
    trade = TRADE.fullmatch(action) if "action" in cells else None
    if "action" in cells and trade is None:
        what = f"the action {action[:40]!r} is unknown and may change the holdings"
        raise wrong(what, INSTEAD)
    if width := cells.get("other width"):
        raise wrong(width, "correct the row")
    text, _, clock = cells.get("time", "").replace("T", " ").partition(" ")
    try:
        quantity = number_of(cells.get("quantity", ""), comma=comma)
        price = number_of(cells.get("cost", ""), comma=comma)
        day = stamp_of(text, month_first=month_first).day
    except NoDate as error:
        what = f"the time {text[:40]!r} cannot be read ({error})"
        raise wrong(what, way_out(error)) from None
    except NoNumber as error:
        raise wrong(f"a trade that cannot be read ({error})", "correct it") from None
    if is_amount(cells.get("quantity", "")):
        what = f"the quantity {cells['quantity'][:40]!r} is an amount of money"
        raise wrong(what, "write how many shares")
    if not cells.get("ticker") or not quantity or price is None or price < 0:
        raise wrong("a trade without ticker, quantity or price", "correct it")
    if trade is not None:
        if quantity < 0 and trade["side"].casefold() == "buy":
            raise wrong("a purchase with a negative quantity", "correct it")
        quantity = abs(quantity) if trade["side"].casefold() == "buy" else -abs(quantity)
    return _Trade(row, day, cells.get("clock", clock), quantity, price)


def _post(path: Path, held: dict[str, _Position], trade: _Trade, notes: list[str]) -> None:
    """Add a trade to what is held; less than the books keep is nothing. Raises BadFile."""
    ticker, row = spelled(trade.row.cells["ticker"]), trade.row
    wrong = partial(bad, path, row.line)
    position = held.setdefault(ticker, _Position(row, trade.day))
    if not position.shares:
        position.first, position.since = row, trade.day
    elif position.first.cells.get("currency") != row.cells.get("currency"):
        what = f"a trade of {ticker} in another currency than the previous one"
        raise wrong(what, INSTEAD)
    price = trade.price
    if trade.quantity < 0:
        rest = position.shares + trade.quantity
        if position.shares and not kept_shares(abs(rest)):
            if rest:
                notes.append(left_out(ticker, abs(rest)))
            position.shares = position.spent = Decimal(0)
            return
        if rest < 0:
            what = f"more of {ticker} is sold than was bought: trades are missing, or it was split"
            raise wrong(what, INSTEAD)
        price = position.spent / position.shares
    position.shares += trade.quantity
    position.spent = position.spent + trade.quantity * price if position.shares else Decimal(0)


def _cells(position: _Position) -> Mapping[str, str]:
    cost = (position.spent / position.shares).quantize(COST_STEP, ROUND_HALF_EVEN)
    cells = position.first.cells
    return {
        **{name: cells.get(name, "") for name in ("ticker", "currency", "name")},
        "quantity": f"{position.shares.normalize():f}",
        "cost": f"{cost.normalize():f}",
        "opened_on": position.since.isoformat(),
    }


def days_of(rows: Sequence[ExportRow]) -> Sequence[str]:
    """The texts of the days of trades, without their times."""
    return [row.cells.get("time", "").replace("T", " ").partition(" ")[0] for row in rows]
