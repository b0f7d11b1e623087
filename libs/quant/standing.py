"""How an account stands: the one computation of its P&L, returns, round trips and counts. Pure.

All figures are as of one moment, the *cut-off*: the newest close at which the account could be
valued. Entries of later sessions (a fill at the next open, cash paid in) are not counted until
their own close is written; `after` says what they are. The gain of a later sale alone is known at
once, and is among the results of orders (`by_order`). So the parts always add up to the cent:

    equity - paid in = realised + unrealised + dividends - fees = sum of the round trips' gains
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property
from uuid import UUID

from libs.quant.returns import ONE, AccountWorth, growth
from libs.quant.trades import Move, Tally, TickerGain, Trip, by_ticker, round_trips, tally

HUNDRED = Decimal(100)


@dataclass(frozen=True, slots=True)
class Close:
    """An account at the close of a session at which all that it held could be valued.

    Amounts in its currency; gains, fees and what its owner `paid_in` since the opening.
    `positions` is the market value of what it held.
    """

    session: date
    cash: Decimal
    positions: Decimal
    paid_in: Decimal
    realised: Decimal
    unrealised: Decimal
    dividends: Decimal
    fees: Decimal

    @property
    def equity(self) -> Decimal:
        """Cash and positions."""
        return self.cash + self.positions

    @property
    def gain(self) -> Decimal:
        """The P&L: what it is worth more than was paid in."""
        return self.equity - self.paid_in

    @property
    def exposure_pct(self) -> Decimal:
        """Positions in percent of equity; 0 of nothing."""
        return self.positions / self.equity * HUNDRED if self.equity > 0 else Decimal(0)

    @property
    def worth(self) -> AccountWorth:
        """The two values that a return is measured between."""
        return AccountWorth(self.equity, self.paid_in)


@dataclass(frozen=True, slots=True)
class After:
    """The entries of sessions after the cut-off: fills, and what the owner paid in, negative where
    more was taken out."""

    fills: int = 0
    paid_in: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class TradeResult:
    """The round trip of an order, and its gain: of a buy that opened the trip the whole trip's, of
    a sale its part of that with the fees of both, None of a buy that added to it."""

    trip: Trip
    gain: Decimal | None


@dataclass(frozen=True)
class AccountStanding:
    """An account as of its newest valued close, `closes[-1]`.

    `trips` are None where the ledger has too many entries to make them of; `fills` are the sessions
    of all fills, also of later ones; `traded` is what they came to up to the cut-off. `sold_later`
    are the results of the sales after it, whose trips have all entries.
    """

    closes: tuple[Close, ...]
    trips: tuple[Trip, ...] | None
    fills: tuple[date, ...]
    traded: Decimal
    paid_in_now: Decimal
    sold_later: Mapping[UUID, TradeResult] = field(default_factory=dict)

    @property
    def close(self) -> Close:
        """The cut-off."""
        return self.closes[-1]

    @property
    def after(self) -> After:
        """The entries that are not counted yet."""
        return After(self.fills_after(self.close.session), self.paid_in_now - self.close.paid_in)

    def fills_after(self, session: date) -> int:
        """The number of fills of sessions after this one."""
        return len(self.fills) - bisect_right(self.fills, session)

    @cached_property
    def grown(self) -> Mapping[date, Decimal]:
        """The growth of 1 by each close, time-weighted."""
        return growth({close.session: close.worth for close in self.closes})

    @property
    def return_pct(self) -> Decimal:
        """The time-weighted return since the first close, in percent."""
        return (self.grown[self.close.session] - ONE) * HUNDRED

    @cached_property
    def tally(self) -> Tally:
        """The sums of the closed round trips."""
        return tally(self.trips or ())

    @cached_property
    def by_ticker(self) -> Sequence[TickerGain]:
        """The gain of each ticker, the largest first."""
        return by_ticker(self.trips or ())

    @cached_property
    def by_order(self) -> Mapping[UUID, TradeResult]:
        """The result of each order that was filled up to the cut-off, and of each later sale."""
        results: dict[UUID, TradeResult] = dict(self.sold_later)
        for trip in self.trips or ():
            if trip.entry is not None:
                results[trip.entry.order_id] = TradeResult(trip, trip.gain)
            results |= {order_id: TradeResult(trip, None) for order_id in trip.adds}
            results |= {order_id: TradeResult(trip, gain) for order_id, gain in trip.sales.items()}
        return results

    def realised_of(self, ticker: str) -> Decimal | None:
        """The gain of a ticker without what is held of it: realised gains and dividends less
        fees; None where there are no round trips."""
        if self.trips is None:
            return None
        own = (trip for trip in self.trips if trip.ticker == ticker)
        return sum((trip.gain - trip.unrealised for trip in own), Decimal(0))


def standing(
    closes: Sequence[Close],
    prices: Mapping[str, Decimal],
    moves: Sequence[Move] | None,
    paid_in_now: Decimal,
) -> AccountStanding | None:
    """The account by its valued closes, oldest first, and its ledger in order; None without a
    close.

    `prices` are those that the newest close valued each position at, a share in the account's
    currency; `moves` None: too many to make round trips of.
    """
    if not closes:
        return None
    cut = closes[-1].session
    counted = [move for move in moves or () if move.session <= cut]
    later = [move for move in moves or () if move.session > cut]
    return AccountStanding(
        closes=tuple(closes),
        trips=None if moves is None else tuple(round_trips(counted, prices)),
        fills=tuple(sorted(move.session for move in moves or () if move.order is not None)),
        traded=sum((move.traded for move in counted), Decimal(0)),
        paid_in_now=paid_in_now,
        sold_later=_sold_later(moves or (), later, prices),
    )


def _sold_later(
    moves: Sequence[Move], later: Sequence[Move], prices: Mapping[str, Decimal]
) -> Mapping[UUID, TradeResult]:
    """The results of the sales among the `later` moves."""
    sales = {move.order.order_id for move in later if move.order and move.quantity < 0}
    if not sales:
        return {}
    # The prices are of shares as they were counted at the cut-off.
    split = {move.ticker for move in later if move.is_split}
    known = {ticker: price for ticker, price in prices.items() if ticker not in split}
    return {
        order_id: TradeResult(trip, gain)
        for trip in round_trips(moves, known)
        for order_id, gain in trip.sales.items()
        if order_id in sales
    }
