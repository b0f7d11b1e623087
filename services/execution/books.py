"""Double entry, pure: what happened becomes lines that sum to zero, and books are their sum.

Debit is positive, credit negative. Amounts are whole cents of the account's currency; shares move
in the book `position` only, at what they cost.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum
from uuid import UUID

from contracts.account import Side
from libs.broker.broker import Filled
from libs.quant.sizing import CENT, trade_value

_ZERO = Decimal(0)


class Book(StrEnum):
    """Where a line is posted."""

    CASH = "cash"
    POSITION = "position"
    FEES = "fees"
    REALISED = "realised"
    DIVIDENDS = "dividends"
    CAPITAL = "capital"


class EntryKind(StrEnum):
    """What happened."""

    OPEN = "open"
    FILL = "fill"
    SPLIT = "split"
    DIVIDEND = "dividend"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an entry; `quantity` is shares, in `position` only."""

    book: Book
    amount: Decimal
    ticker: str | None = None
    quantity: Decimal = _ZERO


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened, effective at `session`. An account has one entry of each `key`."""

    key: str
    kind: EntryKind
    session: date
    lines: tuple[Line, ...]
    ticker: str | None = None
    memo: str = ""


@dataclass(frozen=True, slots=True)
class Holding:
    """Shares of one ticker and what they cost in all."""

    quantity: Decimal = _ZERO
    cost: Decimal = _ZERO

    @property
    def average_cost(self) -> Decimal:
        """Cost of one share; 0 where nothing is held."""
        return self.cost / self.quantity if self.quantity else _ZERO


@dataclass(frozen=True)
class Books:
    """Cash and holdings with all that was posted, and the newest entries by themselves.

    `recent` holds every entry after some session, so that the books can be read as of any session
    from that one on, and no entry is posted twice.
    """

    cash: Decimal = _ZERO
    holdings: Mapping[str, Holding] = field(default_factory=dict)
    recent: tuple[Entry, ...] = ()

    def posted(self, entry: Entry) -> "Books":
        """The books after one more entry."""
        return replace(_moved(self, entry.lines, sign=1), recent=(*self.recent, entry))

    def as_of(self, session: date) -> "Books":
        """The books as they stood at the close of `session`."""
        books = self
        for entry in self.recent:
            if entry.session > session:
                books = _moved(books, entry.lines, sign=-1)
        return replace(books, recent=tuple(e for e in self.recent if e.session <= session))

    def has(self, key: str) -> bool:
        """Whether an entry of that key is among the recent ones."""
        return any(entry.key == key for entry in self.recent)

    def quantity(self, ticker: str) -> Decimal:
        """Shares held now."""
        return self.holdings.get(ticker, Holding()).quantity

    def quantity_before(self, ticker: str, session: date, *, with_split: bool = False) -> Decimal:
        """Shares held when `session` began, counted after that day's split where asked."""
        later = (
            line.quantity
            for entry in self.recent
            if entry.session >= session
            and not (with_split and entry.kind is EntryKind.SPLIT and entry.session == session)
            for line in entry.lines
            if line.ticker == ticker
        )
        return self.quantity(ticker) - sum(later, _ZERO)


def _moved(books: Books, lines: Iterable[Line], sign: int) -> Books:
    cash, holdings = books.cash, dict(books.holdings)
    for line in lines:
        if line.book is Book.CASH:
            cash += sign * line.amount
        if line.ticker is not None:
            old = holdings.get(line.ticker, Holding())
            holdings[line.ticker] = Holding(
                old.quantity + sign * line.quantity, old.cost + sign * line.amount
            )
    return replace(books, cash=cash, holdings=holdings)


def opening(cash: Decimal, session: date) -> Entry:
    """The account's starting cash, from its owner's capital."""
    lines = (Line(Book.CASH, cash), Line(Book.CAPITAL, -cash))
    return Entry("open", EntryKind.OPEN, session, lines, memo="account opened")


def filled(order_id: UUID, ticker: str, side: Side, fill: Filled, books: Books) -> Entry:
    """A fill: shares against cash, with its fee, and for a sale the gain over average cost."""
    value = trade_value(fill.price, fill.quantity)
    lines: tuple[Line, ...]
    if side is Side.BUY:
        lines = (
            Line(Book.POSITION, value, ticker, fill.quantity),
            Line(Book.FEES, fill.fee),
            Line(Book.CASH, -value - fill.fee),
        )
    else:
        cost = _cost_of(fill.quantity, books.holdings[ticker])
        lines = (
            Line(Book.POSITION, -cost, ticker, -fill.quantity),
            Line(Book.FEES, fill.fee),
            Line(Book.REALISED, cost - value),
            Line(Book.CASH, value - fill.fee),
        )
    memo = f"{side.value} {fill.quantity:f} {ticker} at {fill.price}"
    return Entry(fill_key(order_id), EntryKind.FILL, fill.session, lines, ticker, memo)


def split(ticker: str, session: date, ratio: Decimal, open_price: Decimal, books: Books) -> Entry:
    """A split of what was held when the session began: whole shares, the rest paid out at open."""
    before = books.quantity_before(ticker, session)
    exact = before * ratio
    whole = exact.to_integral_value(ROUND_FLOOR)
    paid = trade_value(open_price, exact - whole)
    holding = books.holdings[ticker]
    cost = _cost_of(exact - whole, replace(holding, quantity=exact)) if whole else holding.cost
    lines = (
        Line(Book.POSITION, -cost, ticker, whole - before),
        Line(Book.CASH, paid),
        Line(Book.REALISED, cost - paid),
    )
    memo = f"{ratio.normalize():f} new shares for one: {before:f} became {whole:f}"
    return Entry(split_key(ticker, session), EntryKind.SPLIT, session, lines, ticker, memo)


def dividend(ticker: str, session: date, per_share: Decimal, books: Books) -> Entry:
    """A dividend on the shares held when the ex-date began, paid in cash that day."""
    shares = books.quantity_before(ticker, session, with_split=True)
    paid = trade_value(per_share, shares)
    lines = (Line(Book.CASH, paid), Line(Book.DIVIDENDS, -paid))
    memo = f"{per_share.normalize():f} a share on {shares:f}"
    return Entry(dividend_key(ticker, session), EntryKind.DIVIDEND, session, lines, ticker, memo)


def fill_key(order_id: UUID) -> str:
    """The key of an order's fill."""
    return f"fill/{order_id}"


def split_key(ticker: str, session: date) -> str:
    """The key of a split."""
    return f"split/{ticker}/{session}"


def dividend_key(ticker: str, session: date) -> str:
    """The key of a dividend."""
    return f"dividend/{ticker}/{session}"


def _cost_of(quantity: Decimal, holding: Holding) -> Decimal:
    """The part of the cost that leaves with `quantity` shares; with the last share, all of it."""
    if quantity >= holding.quantity:
        return holding.cost
    return (holding.cost * quantity / holding.quantity).quantize(CENT)
