"""Snapshots of an account at the close of each session that its clock passed. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal

from libs.quant.exchange import PriceMark
from libs.quant.ticks import PRICE_STEP
from services.execution.books import Book, Books, Holding

_ZERO = Decimal(0)


class StaleQuotes(Exception):
    """The account changed between the reading of quotes and its lock."""


Closes = Mapping[tuple[str, date], PriceMark | None]
"""Closes by ticker and session; None where there is none."""


@dataclass(frozen=True, slots=True)
class Valued:
    """The value of a position. `priced_on` is None at the session's own close; else the session of
    the last known one, or of the purchase where there was none since.
    """

    mark: PriceMark
    priced_on: date | None = None


@dataclass(frozen=True, slots=True)
class HoldingsWorth:
    """The holdings, at market and at cost. All of it is long: the desk never sells short."""

    value: Decimal
    cost: Decimal

    @property
    def gain(self) -> Decimal:
        """The gain of selling all of it over its cost, before fees."""
        return self.value - self.cost


@dataclass(frozen=True, slots=True)
class OpenStop:
    """A stop order as it stood at a close, its price in the `currency` that the ticker trades in;
    decided at `as_of`."""

    ticker: str
    quantity: Decimal
    stop_price: Decimal
    currency: str
    as_of: date


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An account at a session's close, in its currency; gains, fees and what the owner `paid_in`
    since the opening.

    `worth` is None where `unpriced` holds tickers: they had no exchange rate. `closes` are what the
    positions were valued at, by ticker.
    """

    session: date
    cash: Decimal
    realised: Decimal
    dividends: Decimal
    fees: Decimal
    worth: HoldingsWorth | None
    paid_in: Decimal = _ZERO
    unpriced: tuple[str, ...] = ()
    closes: Mapping[str, Valued] = field(default_factory=dict)
    stops: tuple[OpenStop, ...] = ()

    @property
    def equity(self) -> Decimal | None:
        """Cash and what is held; None where nobody can say."""
        return None if self.worth is None else self.cash + self.worth.value


def snapshots(
    books: Books,
    sessions: Sequence[date],
    closes: Closes,
    known: Mapping[str, Valued],
    currency: str,
) -> tuple[Snapshot, ...]:
    """One for each of the sessions, ascending. `known` is what the positions were last valued at
    before them. Raises StaleQuotes where a close was not read."""
    taken: list[Snapshot] = []
    for session in sessions:
        taken.append(_snapshot(books.as_of(session), session, closes, known, currency))
        known = known_from(taken[-1].closes, session)
    return tuple(taken)


def known_from(closes: Mapping[str, Valued], session: date) -> Mapping[str, Valued]:
    """A snapshot's `closes` as known to a later session."""
    return {
        ticker: replace(valued, priced_on=valued.priced_on or session)
        for ticker, valued in closes.items()
        if valued.mark.amount is not None
    }


def _snapshot(
    books: Books, session: date, closes: Closes, known: Mapping[str, Valued], currency: str
) -> Snapshot:
    held = {ticker: lot for ticker, lot in sorted(books.holdings.items()) if lot.quantity > 0}
    valued = {
        ticker: valued_at(ticker, lot, session, closes, known, currency)
        for ticker, lot in held.items()
    }
    unpriced = tuple(ticker for ticker in held if _has_no_rate(closes[ticker, session]))
    amounts = {ticker: value.mark.amount for ticker, value in valued.items()}
    value = sum((held[t].quantity * amount for t, amount in amounts.items() if amount), _ZERO)
    cost = sum((lot.cost for lot in held.values()), _ZERO)
    return Snapshot(
        session=session,
        cash=books.cash,
        realised=books.credited(Book.REALISED),
        dividends=books.credited(Book.DIVIDENDS),
        fees=-books.credited(Book.FEES),
        worth=None if unpriced else HoldingsWorth(value, cost),
        paid_in=books.paid_in,
        unpriced=unpriced,
        closes=valued,
    )


def _has_no_rate(close: PriceMark | None) -> bool:
    return close is not None and close.amount is None


def valued_at(
    ticker: str,
    held: Holding,
    session: date,
    closes: Closes,
    known: Mapping[str, Valued],
    currency: str,
) -> Valued:
    """The close of `session`; where there is none, or no exchange rate, the last one known, or what
    was paid.

    A last known close is exchanged at the rate of its own day. Raises StaleQuotes.
    """
    if (ticker, session) not in closes:
        raise StaleQuotes
    close = closes[ticker, session]
    if close is not None and not _has_no_rate(close):
        return Valued(close)
    if ticker in known:
        return known[ticker]
    paid = held.average_cost.quantize(PRICE_STEP)
    return Valued(PriceMark(paid, currency, paid), held.opened_on or session)
