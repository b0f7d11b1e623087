"""An account as execution sees it, what it needs from the market, and how it is shown. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from uuid import UUID

from contracts.account import AccountLimits, OpenOrder, Portfolio, Position, SessionBefore, Side
from contracts.execution import Fill, Order, OrderStatus
from contracts.halt import Halt
from contracts.types import Money
from libs.broker.broker import Filled, Opening
from libs.quant.sizing import CENT
from libs.runtime.errors import DeskError
from services.execution.books import Books, Holding

AMOUNT_STEP = Decimal("0.000001")  # contracts.types.Amount keeps six places
_ZERO = Decimal(0)


class ClockBack(DeskError):
    """The account has already seen a later session."""

    code = "clock_back"

    def __init__(self, account: str, clock: date, as_of: date) -> None:
        super().__init__(
            f"account {account} has seen {clock}; going back to {as_of} would let it trade on what "
            f"it knows of the days between: use an as_of from {clock} on, or another account name"
        )


class CurrencyMismatch(DeskError):
    """An amount in another currency than the account's."""

    code = "currency_mismatch"

    def __init__(self, account: str, currency: str, given: str) -> None:
        super().__init__(
            f"account {account} is in {currency}, the budget in {given}; there are no exchange "
            f"rates here: state the budget in {currency}"
        )


class BooksNotOpen(DeskError):
    """The account does not exist, or was not brought to this session."""

    code = "books_not_open"

    def __init__(self, account: str, as_of: date) -> None:
        super().__init__(
            f"account {account} was not opened for {as_of}; a cycle opens the books before it "
            "executes: request a cycle for this account and session"
        )


class NoPrice(DeskError):
    """A held ticker has no close at as_of, so the account cannot be valued."""

    code = "no_price"


class StaleQuotes(Exception):
    """The account changed between the reading of quotes and its lock."""


@dataclass(frozen=True, slots=True)
class Action:
    """A split or dividend of a session, with that session's open (for fractions paid out)."""

    session: date
    split_ratio: Decimal
    dividend_per_share: Decimal
    open_price: Decimal


@dataclass(frozen=True, slots=True)
class BookedOrder:
    """An order as it stands in the books. `fill` where it has one."""

    order_id: UUID
    account: str
    cycle_id: UUID
    started_on: date
    op_id: UUID
    pipeline: str
    ticker: str
    sector: str
    side: Side
    quantity: Decimal
    hold: Decimal
    status: OrderStatus
    reason: str
    as_of: date
    fill: Filled | None = None

    @property
    def key(self) -> tuple[str, date]:
        """What its opening is read by."""
        return (self.ticker, self.as_of)


@dataclass(frozen=True)
class Account:
    """An account under its lock: books, limits, open orders and the sectors of what it holds.

    `orders` are those that were open at the session that is looked at: still working, or filled
    after it.
    """

    name: str
    currency: str
    clock: date
    limits: AccountLimits
    books: Books
    orders: tuple[BookedOrder, ...] = ()
    sectors: Mapping[str, str] = field(default_factory=dict)
    halt: Halt | None = None

    @property
    def working(self) -> tuple[BookedOrder, ...]:
        """Orders that still wait."""
        return tuple(order for order in self.orders if order.status is OrderStatus.WORKING)

    @property
    def cash_free(self) -> Decimal:
        """Cash with everything posted, without what working orders hold back."""
        return self.books.cash - sum((order.hold for order in self.working), _ZERO)

    def held(self, as_of: date) -> list[str]:
        """Tickers held at the close of `as_of`."""
        holdings = self.books.as_of(as_of).holdings
        return sorted(ticker for ticker, holding in holdings.items() if holding.quantity > 0)

    @property
    def touched(self) -> list[str]:
        """Tickers held now, moved lately or waiting: those whose splits and dividends matter."""
        lines = (line for entry in self.books.recent for line in entry.lines)
        moved = {line.ticker for line in lines if line.ticker is not None}
        held = {ticker for ticker, holding in self.books.holdings.items() if holding.quantity > 0}
        return sorted(moved | held | {order.ticker for order in self.working})


@dataclass(frozen=True)
class ClosesBefore:
    """Closes of the session before as_of (None: it has none), for what was held then."""

    session: date
    closes: Mapping[str, Decimal | None]


@dataclass(frozen=True)
class Quotes:
    """What was read from the market before the lock was taken.

    `closes` at as_of (None: it has none then); `openings` by ticker and the session they come after
    (None: no such open); `due` is the session after each of those; `actions` by ticker, of the
    sessions after `since`.
    """

    closes: Mapping[str, Decimal | None] = field(default_factory=dict)
    openings: Mapping[tuple[str, date], Opening | None] = field(default_factory=dict)
    due: Mapping[date, date] = field(default_factory=dict)
    actions: Mapping[str, Sequence[Action]] = field(default_factory=dict)
    since: date | None = None
    before: ClosesBefore | None = None


def require_clock(account: Account, as_of: date) -> None:
    """Raise ClockBack where the account has seen a later session."""
    if as_of < account.clock:
        raise ClockBack(account.name, account.clock, as_of)


def require_currency(account: Account, budget: Money | None) -> None:
    """Raise CurrencyMismatch where the budget is not in the account's currency."""
    if budget is not None and budget.currency != account.currency:
        raise CurrencyMismatch(account.name, account.currency, budget.currency)


@dataclass(frozen=True, slots=True)
class Ids:
    """What a Portfolio is named by."""

    cycle_id: UUID
    op_id: UUID
    as_of: date


def portfolio(
    account: Account,
    named: Ids,
    closes: Mapping[str, Decimal | None],
    before: ClosesBefore | None = None,
) -> Portfolio:
    """The account at as_of's close, marked at `closes`. Fills of later sessions are not known yet:
    their orders stand among the open ones.

    Raises StaleQuotes where a close was not read, NoPrice where there is none.
    """
    books = account.books.as_of(named.as_of)
    positions = [
        _position(account, ticker, books.holdings[ticker], _mark(ticker, named.as_of, closes))
        for ticker in account.held(named.as_of)
    ]
    value = sum((position.value for position in positions), _ZERO)
    return Portfolio(
        cycle_id=named.cycle_id,
        op_id=named.op_id,
        as_of=named.as_of,
        account=account.name,
        cash=money(books.cash, account),
        equity=money(books.cash + value, account),
        positions=tuple(positions),
        open_orders=tuple(_open_order(order, account) for order in account.orders),
        limits=account.limits,
        before=None if before is None else session_before(account, before),
        halt=account.halt,
    )


def session_before(account: Account, before: ClosesBefore) -> SessionBefore | None:
    """What the account was worth at the close of the session before; None where it was not open.

    Raises StaleQuotes where a close was not read.
    """
    books = account.books.as_of(before.session)
    held = {ticker: holding.quantity for ticker, holding in books.holdings.items()}
    if books.cash == 0 and not any(held.values()):
        return None
    value = books.cash
    for ticker, quantity in held.items():
        if quantity > 0:
            if ticker not in before.closes:
                raise StaleQuotes
            close = before.closes[ticker]
            if close is None:
                return SessionBefore(session=before.session)
            value += quantity * close
    return SessionBefore(session=before.session, equity=money(value, account))


def _mark(ticker: str, as_of: date, closes: Mapping[str, Decimal | None]) -> Decimal:
    if ticker not in closes:
        raise StaleQuotes
    close = closes[ticker]
    if close is None:
        raise NoPrice(
            f"{ticker} is held and has no close on {as_of}: the account cannot be valued then; "
            "use a session at which it traded, or another account"
        )
    return close


def _position(account: Account, ticker: str, holding: Holding, close: Decimal) -> Position:
    return Position(
        ticker=ticker,
        quantity=holding.quantity,
        average_cost=money(holding.average_cost, account),
        price=money(close, account),
        sector=account.sectors.get(ticker, "unknown"),
    )


def _open_order(order: BookedOrder, account: Account) -> OpenOrder:
    return OpenOrder(
        order_id=order.order_id,
        asset=order.ticker,
        side=order.side,
        quantity=order.quantity,
        hold=money(order.hold, account),
    )


def money(amount: Decimal, account: Account) -> Money:
    """An amount in the account's currency, with the places that contracts carry."""
    exact = amount.quantize(AMOUNT_STEP)
    cents = exact.quantize(CENT)
    # 12.50 and not 12.500000: the amounts are read by people too.
    return Money(amount=cents if cents == exact else exact, currency=account.currency)


def order_view(order: BookedOrder) -> Order:
    """The order as it is told."""
    return Order(
        order_id=order.order_id,
        asset=order.ticker,
        side=order.side,
        quantity=order.quantity,
        status=order.status,
        reason=order.reason,
    )


def fill_view(order: BookedOrder, fill: Filled, account: Account) -> Fill:
    """The fill as it is told."""
    return Fill(
        order_id=order.order_id,
        asset=order.ticker,
        side=order.side,
        price=money(fill.price, account),
        quantity=fill.quantity,
        fee=money(fill.fee, account),
        session=fill.session,
    )
