"""A ticker as an account traded it: its trades by day, and prices with what was held and why."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby

import polars as pl

from contracts.account import OpenOrder, Portfolio, Position, Side
from contracts.performance import TickerChart, TickerDay, TickerFill
from contracts.types import Money
from libs.facts import amounts
from libs.market.errors import NoHistory
from libs.postgres.pool import Record
from libs.quant.indicators import averages
from libs.quant.returns import ONE
from libs.quant.ticks import places_of
from libs.report import performance as words
from services.console.market_history import MarketHistory
from services.console.store import Store
from services.console.views.standings import closing_of

ENTRIES_MAX = 5_000
"""Entries of the ledger in one ticker: twenty years of one a session."""
WHY_CHARS = 200

Line = tuple[float | None, ...]


@dataclass(frozen=True)
class Lot:
    """The holding from a session's close on, and what a share of it cost, as it trades."""

    since: date
    quantity: Decimal
    cost: Decimal

    @property
    def average(self) -> Decimal:
        """The average cost of a share."""
        return self.cost / self.quantity


@dataclass(frozen=True)
class StopDistance:
    """The stop order that waits, as the ticker trades: how far below the price it is, as a part of
    it, and what would be lost down to there of the shares that it sells, in the account's currency.
    """

    order: OpenOrder
    below: Decimal
    risk: Decimal


async def history(account: str, ticker: str, *, store: Store) -> tuple[TickerDay, ...]:
    """The account's trades in the ticker, a session each, oldest first."""
    return _days(await store.ticker_entries(account, ticker, ENTRIES_MAX))


def position_of(books: Portfolio, ticker: str) -> Position | None:
    """The holding of the ticker; None where there is none."""
    return next((held for held in books.positions if held.ticker == ticker), None)


def stop_of(books: Portfolio, ticker: str) -> StopDistance | None:
    """The stop order on the ticker; None where none waits or nothing is held."""
    held = position_of(books, ticker)
    order = next(
        (it for it in books.open_orders if it.asset == ticker and it.stop_price is not None), None
    )
    if held is None or order is None or order.stop_price is None:
        return None
    price = held.foreign.price.amount if held.foreign else held.price.amount
    below = ONE - order.stop_price.amount / price
    return StopDistance(order, below, below * held.price.amount * order.quantity)


async def chart(
    account: str,
    ticker: str,
    sessions: int,
    adjusted_to: date | None = None,
    *,
    store: Store,
    prices: MarketHistory,
) -> TickerChart | None:
    """The ticker as the account has seen it: nothing is newer than the account's clock. Prices are
    adjusted up to it, or up to an earlier session, `adjusted_to`. None where there is no such
    account. Raises `MarketError`."""
    row = await store.account(account)
    if row is None:
        return None
    as_of = row["clock"]
    entries = await store.ticker_entries(account, ticker, ENTRIES_MAX)
    closes = await store.ticker_closes(account, ticker)
    seen = as_of
    try:
        bars = await prices.frame(ticker, seen, sessions)
    except NoHistory:
        # A share that trades no more is shown up to the last close that the account valued it at.
        if not closes:
            raise
        seen = closes[-1]["session"]
        bars = await prices.frame(ticker, seen, sessions)
    adjusted_to = min(adjusted_to or seen, seen)
    if adjusted_to < seen:
        bars = _continued(await prices.frame(ticker, adjusted_to, sessions), bars).tail(sessions)
    places = places_of(bars["close"][-1])
    columns = {name: tuple(bars[name].round(places).to_list()) for name in _PRICES}
    own = bars["date"].to_list()
    cost, stop = _levels(closes, _lots(entries), dict(zip(own, bars["close"], strict=True)), places)
    return TickerChart(
        account=account,
        ticker=ticker,
        currency=await prices.currency(ticker, own[-1]),
        source=prices.described,
        as_of=as_of,
        adjusted_to=adjusted_to,
        sessions=tuple(own),
        **columns,
        volume=tuple(bars["volume"]),
        averages={
            name: tuple(
                None if math.isnan(value) else value for value in line.round(places).tolist()
            )
            for name, line in averages(bars).items()
        },
        average_cost=tuple(cost.get(day) for day in own),
        stop=tuple(stop.get(day) for day in own),
        days=_days(entries),
    )


_PRICES = ("open", "high", "low", "close")


def _continued(known: pl.DataFrame, later: pl.DataFrame) -> pl.DataFrame:
    """The bars as they were known at a session, and after it later ones on the same scale: a split
    or a dividend since then does not move what was known."""
    last = known.row(-1, named=True)
    same_day = later.filter(pl.col("date") == last["date"])
    if same_day.is_empty():
        return later
    then = same_day.row(0, named=True)
    price = last["close"] / then["close"]
    volume = last["volume"] / then["volume"] if then["volume"] else 1.0
    since = later.filter(pl.col("date") > last["date"])
    scaled = since.with_columns(
        *(pl.col(name) * price for name in _PRICES), pl.col("volume") * volume
    )
    return pl.concat([known, scaled])


def _lots(entries: Sequence[Record]) -> Sequence[Lot]:
    """The holding after each session with an entry, oldest first."""
    lots: list[Lot] = []
    held, cost = Decimal(0), Decimal(0)
    for session, group in groupby(entries, key=lambda row: row["session"]):
        for row in group:
            held, cost = held + row["quantity"], cost + row["cost"]
        lots.append(Lot(session, held, cost))
    return lots


def _levels(
    closes: Sequence[Record], lots: Sequence[Lot], bars: Mapping[date, float], places: int
) -> tuple[Mapping[date, float], Mapping[date, float]]:
    """By session: the average cost and the waiting stop, scaled as the bar's close is to the close
    that the account was valued at: so a split or a dividend since moves all of them alike."""
    since = [lot.since for lot in lots]
    cost: dict[date, float] = {}
    stop: dict[date, float] = {}
    for row in closes:
        day, lot = row["session"], lots[bisect_right(since, row["session"]) - 1]
        if day not in bars or not row["price"] or lot.since > day or lot.quantity <= 0:
            continue
        scale = bars[day] / float(row["price"])
        cost[day] = round(float(lot.average) * scale, places)
        if row["stop_price"] is not None:
            stop[day] = round(float(row["stop_price"]) * scale, places)
    return cost, stop


def _days(entries: Sequence[Record]) -> tuple[TickerDay, ...]:
    traded = [row for row in entries if row["cycle_id"] is not None]
    return tuple(
        _day(session, list(rows)) for session, rows in groupby(traded, key=lambda r: r["session"])
    )


def _day(session: date, rows: Sequence[Record]) -> TickerDay:
    return TickerDay(
        session=session,
        bought=_sum(row["filled"] for row in rows if row["side"] == Side.BUY),
        sold=_sum(row["filled"] for row in rows if row["side"] == Side.SELL),
        gain=_sum(row["gain"] for row in rows),
        fills=tuple(map(_fill, rows)),
    )


def _sum(numbers: Iterable[Decimal]) -> Decimal:
    return sum(numbers, Decimal(0))


def _fill(row: Record) -> TickerFill:
    return TickerFill.model_validate(
        {
            **row,
            "quantity": row["filled"],
            "price": Money(amount=row["price"], currency=row["currency"]),
            "gain": Money(amount=row["gain"], currency=row["account_currency"]),
            "why": amounts.cut(_why(row), WHY_CHARS),
            "decided_on": row["as_of"],
        }
    )


def _why(row: Record) -> str:
    """The thesis of a buy; of a sale what sold: the stop, exit rules, the trader, a person."""
    rules = tuple(row["exit_rules"] or ())
    closing = closing_of(row, rules)
    return row["thesis"] if closing is None else words.sold_by(closing, rules)
