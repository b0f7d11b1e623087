"""What an account was worth at the close of each session that its clock passed. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from libs.quant.exchange import Mark
from services.execution.books import Book, Books

_ZERO = Decimal(0)


class StaleQuotes(Exception):
    """The account changed between the reading of quotes and its lock."""


Closes = Mapping[tuple[str, date], Mark | None]
"""Closes by ticker and session; None where there is none."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What is held, at market and at cost. All of it is long: the desk never sells short."""

    value: Decimal
    cost: Decimal

    @property
    def gain(self) -> Decimal:
        """What selling all of it would bring over its cost, before fees."""
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
    """An account at a session's close, in its currency; gains and fees since the opening.

    `worth` is None where `unpriced` holds tickers: they had no close, or no exchange rate.
    """

    session: date
    cash: Decimal
    realised: Decimal
    dividends: Decimal
    fees: Decimal
    worth: Worth | None
    unpriced: tuple[str, ...] = ()
    stops: tuple[OpenStop, ...] = ()

    @property
    def equity(self) -> Decimal | None:
        """Cash and what is held; None where nobody can say."""
        return None if self.worth is None else self.cash + self.worth.value


def snapshots(books: Books, sessions: Sequence[date], closes: Closes) -> tuple[Snapshot, ...]:
    """One for each of the sessions. Raises StaleQuotes where a close was not read."""
    return tuple(_snapshot(books.as_of(session), session, closes) for session in sessions)


def _snapshot(books: Books, session: date, closes: Closes) -> Snapshot:
    value = cost = _ZERO
    unpriced = []
    for ticker, held in sorted(books.holdings.items()):
        if held.quantity <= 0:
            continue
        amount = amount_of(ticker, session, closes)
        cost += held.cost
        if amount is None:
            unpriced.append(ticker)
        else:
            value += held.quantity * amount
    return Snapshot(
        session=session,
        cash=books.cash,
        realised=books.credited(Book.REALISED),
        dividends=books.credited(Book.DIVIDENDS),
        fees=-books.credited(Book.FEES),
        worth=None if unpriced else Worth(value, cost),
        unpriced=tuple(unpriced),
    )


def amount_of(ticker: str, session: date, closes: Closes) -> Decimal | None:
    """A close in the account's currency; None where there is none. Raises StaleQuotes."""
    if (ticker, session) not in closes:
        raise StaleQuotes
    mark = closes[ticker, session]
    return None if mark is None else mark.amount
