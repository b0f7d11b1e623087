"""The backtest: what holding given sides of many tickers would have come to, after costs.

A side is decided at a session's close and filled at the next open. The capital is split evenly
over the tickers and each part is an account of its own: none borrows from another, so the order of
the tickers changes nothing. The k-th fills of all tickers are computed at once, which makes a run
of 500 tickers over ten years about a hundred steps on arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
import numpy.typing as npt

from libs.quant.arrays import Array, Mask
from libs.quant.strategy.fills import FillTerms
from libs.quant.strategy.panel import Panel

Places = npt.NDArray[np.int64]
Sides = npt.NDArray[np.int8]

OPEN = -1
"""The exit of a trade that is still open at the last close."""
ALL_IN = inf
"""A position of all that the cash pays for at the open."""
TICKERS_AT_ONCE = 16
"""As many tickers as let ten years of their curves stay in a processor's cache."""
_TINY = 1e-300  # infinity times zero is not a number


class BadTargets(ValueError):
    """Sides that do not fit the panel, or are none of -1, 0 and 1."""


@dataclass(frozen=True, slots=True)
class EntrySizing:
    """How many shares an entry asks for, decided with what is known at the close.

    `position` is the part of the ticker's own equity at that close; `shares` asks for a fixed
    number instead. Neither is ever more than the cash pays with its fee at the open, nor for a
    short more than the cash would pay: nothing is borrowed. An account that has lost all is done.
    """

    capital: float = 100_000.0
    position: float = ALL_IN
    shares: float | None = None

    def wanted(self, equity: Array, closes: Array) -> Array:
        """The shares asked for by accounts of this equity at these closes."""
        if self.shares is not None:
            return np.full_like(equity, self.shares)
        return self.position * np.maximum(equity, _TINY) / closes


@dataclass(frozen=True, slots=True, eq=False)
class Trades:
    """Round trips, by ticker and then by time; one array a figure, one value a trade.

    `row` is the ticker's place in the panel, `entry` and `exit` the places of the sessions at whose
    open it was filled (`OPEN`: not yet; then the last close stands for the exit price, without its
    costs). Prices are after slippage, `fees` are of both fills, `profit` is after all costs.
    """

    row: Places
    side: Sides
    entry: Places
    exit: Places
    quantity: Array
    entry_price: Array
    exit_price: Array
    fees: Array
    profit: Array

    def __len__(self) -> int:
        """The number of trades."""
        return len(self.row)

    @property
    def closed(self) -> Mask:
        """A mask of the trades that are closed."""
        return np.not_equal(self.exit, OPEN)

    @property
    def won(self) -> Mask:
        """A mask of the trades that closed with a profit."""
        return self.closed & (self.profit > 0)

    @property
    def return_(self) -> Array:
        """Profit as a part of what was paid or got at the entry."""
        return self.profit / (self.quantity * self.entry_price)


@dataclass(frozen=True, slots=True, eq=False)
class EquityCurves:
    """Some tickers' accounts at each close: equity, and the value of what is held (short: < 0)."""

    rows: slice
    equity: Array
    held: Array


@dataclass(frozen=True, eq=False)
class Backtest:
    """The result of a run. Curves are made when asked for, a few tickers at a time: they then stay
    in the processor's cache, and a run of many tickers needs little memory.

    Between two fills of a ticker cash and shares stand still: `stretches` holds both, with the
    number of sessions that each lasts.
    """

    prices: Panel
    capital: float
    trades: Trades
    stretches: "Stretches"

    def curves(self) -> Iterator[EquityCurves]:
        """The accounts of all tickers, in the panel's order."""
        for first in range(0, len(self.prices.tickers), TICKERS_AT_ONCE):
            rows = slice(first, first + TICKERS_AT_ONCE)
            close = self.prices.close[rows]
            cash, held = self.stretches.spread(rows, close.shape)
            held *= close
            yield EquityCurves(rows, np.add(cash, held, out=cash), held)

    @cached_property
    def account(self) -> tuple[Array, Array]:
        """Equity of the whole account at each close, and what is held, long or short, in all."""
        equity, held = np.zeros(len(self.prices)), np.zeros(len(self.prices))
        for part in self.curves():
            equity += part.equity.sum(axis=0)
            held += np.abs(part.held).sum(axis=0)
        return equity, held

    @property
    def equity(self) -> Array:
        """The whole account at each close."""
        return self.account[0]


def backtest(prices: Panel, sides: Sides, sizing: EntrySizing, terms: FillTerms) -> Backtest:
    """Run `sides` (-1 short, 0 flat, 1 long; one row a ticker, one column a close) over `prices`.

    The sides of the last close are never filled. Raises BadTargets.
    """
    _require_sides(prices, sides)
    fills = _fills(prices, sides, terms)
    start_cash = sizing.capital / len(prices.tickers)
    account = _account(fills, len(prices.tickers), start_cash, sizing, terms)
    stretches = _stretches(fills, account, start_cash, *prices.close.shape)
    trades = _trades(fills, account, prices.close[:, -1])
    return Backtest(prices, sizing.capital, trades, stretches)


def _require_sides(prices: Panel, sides: Sides) -> None:
    if sides.shape != prices.close.shape:
        raise BadTargets(
            f"sides are {sides.shape}, the panel is {prices.close.shape}: one a ticker and session"
        )
    if sides.size and (sides.min() < -1 or sides.max() > 1):
        raise BadTargets("a side is -1, 0 or 1")


@dataclass(frozen=True, slots=True, eq=False)
class _Fills:
    """Changes of side, by row and then by session: `at` fills what the close before decided.

    `was` is the side that is left, `closes` are of the session of the decision.
    """

    row: Places
    at: Places
    side: Array
    was: Array
    closes: Array
    in_price: Array
    out_price: Array


def _fills(prices: Panel, sides: Sides, terms: FillTerms) -> _Fills:
    decided = sides[:, :-1]
    changed = np.empty(decided.shape, dtype=bool)
    changed[:, :1] = decided[:, :1] != 0
    np.not_equal(decided[:, 1:], decided[:, :-1], out=changed[:, 1:])
    row, place = np.divmod(np.flatnonzero(changed), decided.shape[1])
    side = decided[row, place].astype(np.float64)
    was = np.where(place > 0, decided[row, place - 1], 0).astype(np.float64)
    opens = prices.open[row, place + 1]
    in_price, out_price = terms.price(opens, side), terms.price(opens, -was)
    return _Fills(row, place + 1, side, was, prices.close[row, place], in_price, out_price)


@dataclass(slots=True, eq=False)
class _Account:
    """Cash and shares of a ticker after each fill, and the fees paid for leaving and entering."""

    cash: Array
    shares: Array
    in_fee: Array
    out_fee: Array


def _account(
    fills: _Fills, tickers: int, start_cash: float, sizing: EntrySizing, terms: FillTerms
) -> _Account:
    account = _Account(*(np.empty(len(fills.row)) for _ in range(4)))
    cash, shares = np.full(tickers, start_cash), np.zeros(tickers)
    count = np.bincount(fills.row, minlength=tickers)
    first = np.cumsum(count) - count
    most_first = np.argsort(-count, kind="stable")
    for k in range(int(count.max(initial=0))):
        rows = most_first[: np.count_nonzero(count > k)]
        at = first[rows] + k
        _fill(account, at, fills, (cash[rows], shares[rows]), sizing, terms)
        cash[rows], shares[rows] = account.cash[at], account.shares[at]
    return account


def _fill(
    account: _Account,
    at: Places,
    fills: _Fills,
    before: tuple[Array, Array],
    sizing: EntrySizing,
    terms: FillTerms,
) -> None:
    """Leave what is held, then enter what is wanted, at the same open."""
    cash, held = before
    side, was, closes, price = fills.side[at], fills.was[at], fills.closes[at], fills.in_price[at]
    equity = np.maximum(cash + held * closes, 0.0)
    # Leave. Where the entry had come to nothing, nothing is held and nothing is paid.
    value = np.abs(held) * fills.out_price[at]
    fee = terms.fee(value, -was)
    cash = cash + was * value - fee
    # Enter: a part of what the close knew, and no more than the cash pays at the open.
    room = np.where(equity > 0, terms.affordable(np.maximum(cash, 0.0), price), 0.0)
    quantity = np.abs(side) * np.minimum(sizing.wanted(equity, closes), room)
    value = quantity * price
    account.out_fee[at], account.in_fee[at] = fee, terms.fee(value, side)
    account.cash[at] = cash - side * value - account.in_fee[at]
    account.shares[at] = side * quantity


@dataclass(frozen=True, slots=True, eq=False)
class Stretches:
    """Cash and shares of each stretch between fills; `first` is the place of each ticker's first
    stretch, and one more for the end.
    """

    first: Places
    sessions: Places
    cash: Array
    shares: Array

    def spread(self, rows: slice, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Cash and shares of these tickers, one value a session."""
        part = slice(self.first[rows.start], self.first[rows.start + shape[0]])
        lengths = self.sessions[part]
        cash = np.repeat(self.cash[part], lengths).reshape(shape)
        return cash, np.repeat(self.shares[part], lengths).reshape(shape)


def _stretches(
    fills: _Fills, account: _Account, start_cash: float, tickers: int, sessions: int
) -> Stretches:
    # One before each ticker's first fill, and one from each fill to the next.
    before_fills = np.searchsorted(fills.row, np.arange(tickers + 1))
    first = before_fills + np.arange(tickers + 1)
    filled = np.arange(len(fills.row)) + fills.row + 1
    begins = np.empty(len(fills.row) + tickers, dtype=np.int64)
    cash, shares = np.empty(len(begins)), np.zeros(len(begins))
    begins[first[:-1]], cash[first[:-1]] = np.arange(tickers) * sessions, start_cash
    begins[filled] = fills.row * sessions + fills.at
    cash[filled], shares[filled] = account.cash, account.shares
    return Stretches(first, np.diff(begins, append=tickers * sessions), cash, shares)


def _trades(fills: _Fills, account: _Account, last_closes: Array) -> Trades:
    entry = np.flatnonzero(account.shares)
    nearby = np.minimum(entry + 1, len(fills.row) - 1)
    # The next change of the same ticker always ends the trade.
    ended = (nearby > entry) & (fills.row[nearby] == fills.row[entry])
    row, side, quantity = fills.row[entry], fills.side[entry], np.abs(account.shares[entry])
    exit_price = np.where(ended, fills.out_price[nearby], last_closes[row])
    fees = account.in_fee[entry] + np.where(ended, account.out_fee[nearby], 0.0)
    entry_price = fills.in_price[entry]
    return Trades(
        row=row,
        side=side.astype(np.int8),
        entry=fills.at[entry],
        exit=np.where(ended, fills.at[nearby], OPEN),
        quantity=quantity,
        entry_price=entry_price,
        exit_price=exit_price,
        fees=fees,
        profit=side * (exit_price - entry_price) * quantity - fees,
    )
