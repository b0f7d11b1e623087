"""Double entry, pure: what happened becomes lines that sum to zero, and books are their sum.

Debit is positive, credit negative. Amounts are whole cents of the account's currency; shares move
in the book `position` only, at what they cost.

What is traded in another currency stands in the ledger in both: a line's `foreign` is the amount as
it was traded, `amount` the same at the rate of that moment. The account keeps no foreign cash. Each
such entry is paid through the book `exchange`, so that its lines sum to zero in every currency.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from contracts.account import Side
from contracts.types import ExchangeRate, Money, plain_shares
from libs.broker.broker import Filled
from libs.quant import ticks
from libs.quant.exchange import cents_in
from libs.quant.sizing import CENT, after_split, fill_value, kept_shares, trade_value

_ZERO = Decimal(0)


class Book(StrEnum):
    """Where a line is posted."""

    CASH = "cash"
    POSITION = "position"
    FEES = "fees"
    REALISED = "realised"
    DIVIDENDS = "dividends"
    CAPITAL = "capital"
    EXCHANGE = "exchange"


class EntryKind(StrEnum):
    """The kind of an entry."""

    OPEN = "open"
    FILL = "fill"
    SPLIT = "split"
    DIVIDEND = "dividend"
    DEPOSIT = "deposit"
    WITHDRAWAL = "withdrawal"
    ADJUSTMENT = "adjustment"


@dataclass(frozen=True, slots=True)
class Posting:
    """One line of an entry; `quantity` is shares, in `position` only.

    `currency` None is the account's own; `foreign` is then 0.
    """

    book: Book
    amount: Decimal
    ticker: str | None = None
    quantity: Decimal = _ZERO
    currency: str | None = None
    foreign: Decimal = _ZERO


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One thing that happened, effective at `session`. An account has one entry of each `key`."""

    key: str
    kind: EntryKind
    session: date
    lines: tuple[Posting, ...]
    ticker: str | None = None
    memo: str = ""
    sector: str | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """Shares of one ticker and what they cost in all, also in the currency they trade in.

    `opened_on` is the session since which some were held without a break.
    """

    quantity: Decimal = _ZERO
    cost: Decimal = _ZERO
    currency: str | None = None
    foreign_cost: Decimal = _ZERO
    opened_on: date | None = field(default=None, compare=False)

    @property
    def average_cost(self) -> Decimal:
        """Cost of one share; 0 where nothing is held."""
        return self.cost / self.quantity if self.quantity else _ZERO


@dataclass(frozen=True)
class Books:
    """Every book's sum and the holdings with all that was posted, and the newest entries.

    `recent` holds every entry after some session, so that the books can be read as of any session
    from that one on, and no entry is posted twice. `currency` is the account's.
    """

    currency: str
    sums: Mapping[Book, Decimal] = field(default_factory=dict)
    holdings: Mapping[str, Holding] = field(default_factory=dict)
    recent: tuple[LedgerEntry, ...] = ()

    @property
    def cash(self) -> Decimal:
        """The cash that the account can pay with."""
        return self.sums.get(Book.CASH, _ZERO)

    @property
    def paid_in(self) -> Decimal:
        """The owner's deposits less withdrawals: cash, and holdings at cost."""
        return self.credited(Book.CAPITAL)

    def priced(self, price: Decimal, rate: ExchangeRate | None) -> Money:
        """A price of what is traded at `rate`, or in the account's currency."""
        return ticks.priced(price, self.currency if rate is None else rate.currency)

    def credited(self, book: Book) -> Decimal:
        """The sum of a book of gains; a loss is negative."""
        return -self.sums.get(book, _ZERO)

    def posted(self, entry: LedgerEntry) -> "Books":
        """The books after one more entry."""
        return replace(_moved(self, entry, sign=1), recent=(*self.recent, entry))

    def as_of(self, session: date) -> "Books":
        """The books as they stood at the close of `session`."""
        books = self
        for entry in self.recent:
            if entry.session > session:
                books = _moved(books, entry, sign=-1)
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
        return plain_shares(self.quantity(ticker) - sum(later, _ZERO))


def _moved(books: Books, entry: LedgerEntry, sign: int) -> Books:
    sums, holdings = dict(books.sums), dict(books.holdings)
    for line in entry.lines:
        sums[line.book] = sums.get(line.book, _ZERO) + sign * line.amount
        if line.ticker is not None:
            old = holdings.get(line.ticker, Holding())
            opens = sign > 0 and old.quantity == 0 and line.quantity > 0
            holdings[line.ticker] = Holding(
                plain_shares(old.quantity + sign * line.quantity),
                old.cost + sign * line.amount,
                line.currency,
                old.foreign_cost + sign * line.foreign,
                entry.session if opens else _opened_before(old, entry.session, sign),
            )
    return replace(books, sums=sums, holdings=holdings)


def _opened_before(held: Holding, session: date, sign: int) -> date | None:
    """The day that a position was opened; None where an entry taken back may have closed it and
    opened it again.
    """
    later = held.opened_on is not None and held.opened_on >= session
    return None if sign < 0 and later else held.opened_on


def opening(cash: Decimal, session: date, key: str = "open") -> LedgerEntry:
    """The account's starting cash, from its owner's capital."""
    lines = (Posting(Book.CASH, cash), Posting(Book.CAPITAL, -cash))
    return LedgerEntry(key, EntryKind.OPEN, session, lines, memo="account opened")


def brought_in(
    ticker: str,
    quantity: Decimal,
    cost: Money,
    opened_on: date,
    rate: ExchangeRate | None = None,
    sector: str | None = None,
) -> LedgerEntry:
    """Shares that the owner held before the account opened, at their `cost` of one, against the
    owner's capital. They count as held since `opened_on`. `sector` is None where the market source
    has none."""
    shares = _line(Book.POSITION, trade_value(cost.amount, quantity), rate, ticker, quantity)
    lines: tuple[Posting, ...] = (shares, Posting(Book.CAPITAL, -shares.amount))
    if rate is not None:
        # No cash moves, so the exchange is with the owner: it sums to zero in each currency.
        exchanged = Posting(
            Book.EXCHANGE, -shares.amount, currency=shares.currency, foreign=-shares.foreign
        )
        lines = (shares, exchanged, Posting(Book.EXCHANGE, shares.amount), lines[1])
    memo = f"brought in: {quantity:f} {ticker} at {_quoted(cost, rate)}"
    return LedgerEntry(f"open/{ticker}", EntryKind.OPEN, opened_on, lines, ticker, memo, sector)


def cash_moved(amount: Decimal, session: date, key: str) -> LedgerEntry:
    """Cash that the owner pays in, or takes out where it is negative."""
    lines = (Posting(Book.CASH, amount), Posting(Book.CAPITAL, -amount))
    kind = EntryKind.DEPOSIT if amount > 0 else EntryKind.WITHDRAWAL
    return LedgerEntry(key, kind, session, lines, memo=kind.value)


def filled(order_id: UUID, ticker: str, side: Side, fill: Filled, books: Books) -> LedgerEntry:
    """A fill: shares against cash, with its fee, and for a sale the gain over average cost."""
    value, rate = fill_value(fill.price, fill.quantity, buying=side is Side.BUY), fill.rate
    lines: tuple[Posting, ...]
    if side is Side.BUY:
        bought = _line(Book.POSITION, value, rate, ticker, fill.quantity)
        lines = (bought, _line(Book.FEES, fill.fee, rate))
    else:
        sold = _sold(ticker, fill.quantity, books.holdings[ticker])
        gain = _gain(_line(Book.REALISED, -value, rate), sold)
        lines = (sold, _line(Book.FEES, fill.fee, rate), gain)
    price = _quoted(books.priced(fill.price, rate), rate)
    memo = f"{side.value} {fill.quantity:f} {ticker} at {price}"
    return LedgerEntry(fill_key(order_id), EntryKind.FILL, fill.session, _paid(lines), ticker, memo)


def filled_at_broker(
    fill_id: str, ticker: str, side: Side, fill: Filled, books: Books
) -> LedgerEntry:
    """A fill that a broker made, under the broker's own id; in the account's currency, to the
    nearest cent. It is true, so it is booked, also where more is sold than was held."""
    value = trade_value(fill.price, fill.quantity)
    lines: tuple[Posting, ...]
    if side is Side.BUY:
        lines = (Posting(Book.POSITION, value, ticker, fill.quantity),)
    else:
        sold = _sold(ticker, fill.quantity, books.holdings.get(ticker, Holding()))
        lines = (sold, _gain(Posting(Book.REALISED, -value), sold))
    price = _quoted(books.priced(fill.price, None), None)
    memo = f"{side.value} {fill.quantity:f} {ticker} at {price}"
    key = broker_fill_key(fill_id)
    return LedgerEntry(key, EntryKind.FILL, fill.session, _paid(lines), ticker, memo)


def moved_at_broker(
    move_id: str, kind: EntryKind, book: Book, amount: Decimal, session: date, memo: str
) -> LedgerEntry:
    """Cash that came (or went, below zero) at a broker without a trade, against `book`."""
    lines = (Posting(book, -amount), Posting(Book.CASH, amount))
    return LedgerEntry(f"move/{move_id}", kind, session, lines, memo=memo)


def adjusted(
    key: str,
    session: date,
    shares: Mapping[str, Decimal],
    cash: Decimal,
    prices: Mapping[str, Decimal],
    books: Books,
    memo: str,
) -> tuple[LedgerEntry, ...]:
    """The entries that take over a broker's shares and cash, by how much they differ: shares leave
    at their cost and come at `prices`; what is left is gain, and of cash alone the owner's.
    """
    moved = []
    for ticker, quantity in sorted(shares.items()):
        if quantity < 0:
            line = _sold(ticker, -quantity, books.holdings.get(ticker, Holding()))
        else:
            line = Posting(Book.POSITION, trade_value(prices[ticker], quantity), ticker, quantity)
        moved.append(line)
    entries = [
        LedgerEntry(
            f"{key}/{line.ticker}",
            EntryKind.ADJUSTMENT,
            session,
            (line, Posting(Book.REALISED, -line.amount)),
            line.ticker,
            memo,
        )
        for line in moved
    ]
    if cash:
        against = Book.REALISED if moved else Book.CAPITAL
        lines = (Posting(against, -cash), Posting(Book.CASH, cash))
        kind = EntryKind.ADJUSTMENT
        entries.append(LedgerEntry(f"{key}/cash", kind, session, lines, memo=memo))
    return tuple(entries)


def split(
    ticker: str,
    session: date,
    ratio: Decimal,
    open_price: Decimal,
    books: Books,
    rate: ExchangeRate | None = None,
) -> LedgerEntry:
    """A split of what was held when the session began. What is left over below the smallest part of
    a share that is kept is paid out at the open.

    The cost stays as it is, but for what is paid out: that is sold.
    """
    before = books.quantity_before(ticker, session)
    exact = after_split(before, ratio)
    kept = kept_shares(exact)
    value = fill_value(open_price, exact - kept, buying=False)
    part = _sold(ticker, exact - kept, replace(books.holdings[ticker], quantity=exact))
    moved = replace(part, quantity=kept - before)
    lines = (moved, _gain(_line(Book.REALISED, -value, rate), part))
    memo = f"{ratio.normalize():f} new shares for one: {before:f} became {kept:f}"
    if exact != kept:
        paid_at = books.priced(open_price.quantize(ticks.PRICE_STEP), rate)
        memo += f", the rest of {exact - kept:.12f} paid at {_quoted(paid_at, rate)}"
    key = split_key(ticker, session)
    return LedgerEntry(key, EntryKind.SPLIT, session, _paid(lines), ticker, memo)


def dividend(
    ticker: str,
    session: date,
    per_share: Decimal,
    books: Books,
    rate: ExchangeRate | None = None,
) -> LedgerEntry:
    """A dividend on the shares held when the ex-date began, paid in cash that day."""
    shares = books.quantity_before(ticker, session, with_split=True)
    lines = (_line(Book.DIVIDENDS, -trade_value(per_share, shares), rate),)
    paid = books.priced(per_share.normalize(), rate)
    memo = f"{shares:f} shares at {_quoted(paid, rate)}"
    key = dividend_key(ticker, session)
    return LedgerEntry(key, EntryKind.DIVIDEND, session, _paid(lines), ticker, memo)


def _line(
    book: Book,
    traded: Decimal,
    rate: ExchangeRate | None,
    ticker: str | None = None,
    quantity: Decimal = _ZERO,
) -> Posting:
    """A line of what was `traded`, in the account's currency at `rate`."""
    if rate is None:
        return Posting(book, traded, ticker, quantity)
    return Posting(book, cents_in(traded, rate), ticker, quantity, rate.currency, traded)


def _sold(ticker: str, quantity: Decimal, holding: Holding) -> Posting:
    """The cost that leaves a position with `quantity` shares: their part of its cost, in both
    currencies.
    """
    cost = _part(holding.cost, quantity, holding.quantity)
    foreign = _part(holding.foreign_cost, quantity, holding.quantity)
    return Posting(Book.POSITION, -cost, ticker, -quantity, holding.currency, -foreign)


def _gain(proceeds: Posting, sold: Posting) -> Posting:
    """The proceeds less what was sold had cost; what the rate did since is part of it."""
    return replace(
        proceeds, amount=proceeds.amount - sold.amount, foreign=proceeds.foreign - sold.foreign
    )


def _paid(lines: tuple[Posting, ...]) -> tuple[Posting, ...]:
    """The lines with the cash that settles them, through the exchange where they are foreign."""
    amount = -sum((line.amount for line in lines), _ZERO)
    currency = lines[0].currency
    if currency is None:
        return (*lines, Posting(Book.CASH, amount))
    foreign = -sum((line.foreign for line in lines), _ZERO)
    exchanged = Posting(Book.EXCHANGE, amount, currency=currency, foreign=foreign)
    return (*lines, exchanged, Posting(Book.EXCHANGE, -amount), Posting(Book.CASH, amount))


def _quoted(price: Money, rate: ExchangeRate | None) -> str:
    """`10.00 USD`, and abroad `10.00 EUR, EURUSD 1.25 of 2012-06-29`: every digit, no rounding."""
    exact = f"{price.amount:f} {price.currency}"
    return exact if rate is None else f"{exact}, {rate}"


def fill_key(order_id: UUID) -> str:
    """The key of an order's fill."""
    return f"fill/{order_id}"


def broker_fill_key(fill_id: str) -> str:
    """The key of a broker's fill: its own id, so that it is posted once, however often it comes."""
    return f"fill/{fill_id}"


def split_key(ticker: str, session: date) -> str:
    """The key of a split."""
    return f"split/{ticker}/{session}"


def dividend_key(ticker: str, session: date) -> str:
    """The key of a dividend."""
    return f"dividend/{ticker}/{session}"


def _part(cost: Decimal, quantity: Decimal, held: Decimal) -> Decimal:
    """The part of a cost that leaves with `quantity` shares; with the last share, all of it."""
    if quantity >= held:
        return cost
    return (cost * quantity / held).quantize(CENT)
