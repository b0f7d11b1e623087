"""An account as execution sees it, what it needs from the market, and how it is shown. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from contracts.account import (
    AccountLimits,
    ActedExit,
    EntryPlan,
    ExitAct,
    HeldPlan,
    OpenOrder,
    OrderStatus,
    OrderType,
    Portfolio,
    Position,
    SessionBefore,
    Side,
)
from contracts.exit_signal import Holdings
from contracts.facts import UNKNOWN_SECTOR, Moves, TickerFacts
from contracts.halt import Halt
from contracts.types import ExchangeRate, Foreign, Money, shortened
from contracts.venue import BoundTo, LookVerdict, VenueTerms
from libs.broker.broker import DayPrices, Filled, Opening, OrderRefused, Working
from libs.quant.exchange import price_in
from libs.quant.sizing import CENT
from libs.quant.ticks import PRICE_STEP
from libs.runtime.errors import ClockBack
from services.execution.books import Books, EntryKind, Holding
from services.execution.errors import CurrencyMismatch
from services.execution.exits import SplitOf, cooling_off, exits_at
from services.execution.snapshots import Closes, Valued, valued_at

_ZERO = Decimal(0)


OpenFound = Opening | OrderRefused | Working | None
"""The open that an order was due at, or why it does not fill there; None without an open."""


@dataclass(frozen=True, slots=True)
class Action:
    """A split or dividend of a session, with that session's open (for fractions paid out).

    In `currency`, with the `rate` known at that open; None where there is none, or none is needed.
    """

    session: date
    split_ratio: Decimal
    dividend_per_share: Decimal
    open_price: Decimal
    currency: str
    rate: ExchangeRate | None = None


@dataclass(frozen=True, slots=True)
class SendWindow:
    """The session that orders decided now are for, and until when they may be sent."""

    session: date
    send_by: datetime


@dataclass(frozen=True, slots=True)
class BrokerBinding:
    """The broker's account that an account is bound to, and the newest look at it that had an
    answer: when it began, what it found, the broker's shares, and tickers that it blocks.

    `window` is for orders decided now; None where none may be.
    """

    bound: BoundTo
    looked_at: datetime | None = None
    verdict: LookVerdict = LookVerdict.UNKNOWN
    positions: Mapping[str, Decimal] = field(default_factory=dict)
    blocked: frozenset[str] = frozenset()
    window: SendWindow | None = None


@dataclass(frozen=True, slots=True)
class BookedOrder:
    """An order as it stands in the books. `fill` where it has one.

    `stop_price` triggers a stop order; of a buy or an `exit`, it is the price of the stop order
    that follows its fill. It is in the currency that the ticker trades in. `acts` is what an
    exit acts on, where rules proposed it. A buy has a `plan` and a `thesis`. `terms` are what a
    broker is sent, by `window`; None where the simulated one fills it. Such an order may be filled
    in part and work on: `fill` is then the sum so far.
    """

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
    foreign: Foreign | None = None
    fill: Filled | None = None
    type: OrderType = OrderType.MARKET
    stop_price: Decimal | None = None
    exit: bool = False
    acts: ExitAct | None = None
    plan: EntryPlan | None = None
    thesis: str = ""
    terms: VenueTerms | None = None
    window: SendWindow | None = None

    @property
    def is_working(self) -> bool:
        """Whether it still waits."""
        return self.status is OrderStatus.WORKING

    @property
    def key(self) -> tuple[str, date]:
        """The key that its opening is read by."""
        return (self.ticker, self.as_of)


@dataclass(frozen=True)
class Account:
    """An account under its lock: books, limits, open orders and the sectors of what it holds, as
    the source had them when they were ordered last.

    `orders` are those that were open at the session that is looked at: still working, or filled
    after it. `snapped` is the newest session that has a snapshot (the day before the opening where
    none has), `before` the equity of the newest one before the session that is looked at, `known`
    what the positions were last valued at, at or before it, `plans` those that the tickers were
    bought with last, `actions` the sessions of their newest split and dividend up to the clock.
    `broker` is what it is bound to; None where the simulated broker fills it.

    Where they were loaded: `acted` are the exits of what is held at that session, as they were
    ordered and filled, `splits` those of their tickers since, `sales` the last sales by ticker.
    """

    name: str
    currency: str
    clock: date
    limits: AccountLimits
    books: Books
    orders: tuple[BookedOrder, ...] = ()
    sectors: Mapping[str, str] = field(default_factory=dict)
    halt: Halt | None = None
    snapped: date = date.min
    before: SessionBefore | None = None
    known: Mapping[str, Valued] = field(default_factory=dict)
    acted: tuple[ActedExit, ...] = ()
    splits: tuple[SplitOf, ...] = ()
    sales: Mapping[str, date] = field(default_factory=dict)
    plans: Mapping[str, HeldPlan] = field(default_factory=dict)
    actions: Mapping[tuple[str, EntryKind], date] = field(default_factory=dict)
    broker: BrokerBinding | None = None

    @property
    def working(self) -> tuple[BookedOrder, ...]:
        """Market orders that still wait, for the open after their session."""
        return tuple(o for o in self.orders if o.is_working and o.type is OrderType.MARKET)

    @property
    def stops(self) -> tuple[BookedOrder, ...]:
        """Stop orders that still wait, for their price."""
        return tuple(o for o in self.orders if o.is_working and o.type is OrderType.STOP)

    @property
    def guarded(self) -> list[str]:
        """Tickers with a stop order, or with a sale that a stop order follows."""
        waiting = {order.ticker for order in self.stops}
        return sorted(waiting | {o.ticker for o in self.working if o.stop_price is not None})

    @property
    def cash_free(self) -> Decimal:
        """Cash with everything posted, without what working orders hold back."""
        return self.books.cash - sum((order.hold for order in self.working), _ZERO)

    def exposed(self, as_of: date) -> set[str]:
        """Tickers held at the close of `as_of`, or in a buy that is open there."""
        return {*self.held(as_of), *(o.ticker for o in self.orders if o.side is Side.BUY)}

    def held(self, as_of: date) -> list[str]:
        """Tickers held at the close of `as_of`."""
        holdings = self.books.as_of(as_of).holdings
        return sorted(ticker for ticker, holding in holdings.items() if holding.quantity > 0)

    def held_in(self, ticker: str) -> str | None:
        """The currency that a position stands in; None where nothing is held."""
        held = self.books.holdings.get(ticker)
        if held is None or held.quantity <= 0:
            return None
        return held.currency or self.currency

    @property
    def touched(self) -> list[str]:
        """Tickers held now, moved lately or waiting: those whose splits and dividends matter."""
        lines = (line for entry in self.books.recent for line in entry.lines)
        moved = {line.ticker for line in lines if line.ticker is not None}
        held = {ticker for ticker, holding in self.books.holdings.items() if holding.quantity > 0}
        return sorted(moved | held | {order.ticker for order in (*self.working, *self.stops)})


INCOMPLETE_CHARS_MAX = 300
"""Of the reasons why an account's equity is incomplete."""


@dataclass(frozen=True)
class Quotes:
    """The market data that was read before the lock was taken.

    `closes` at as_of and at `sessions`, those after `snapped` up to as_of; `openings` by ticker and
    the session they come after (None: no such open; Refused: one that nothing can be filled at;
    Working: one at which nothing could be exchanged);
    `due` is the session after each of those; `actions` by ticker, of the sessions after `since`;
    `rates` into the account's currency, as known at as_of's close; `days` the opens and lows, by
    ticker and session, that may trigger a stop order (None: it had no value); `sectors` what the
    source says at as_of of what is held or asked for, where it says anything, the `lots` that
    their shares are traded in, and `issuers` of that and of what was sold lately; `facts` what it
    says at as_of of what is asked for: the measured risk, the range, the reports and the dated
    events; `moves` how all that is exposed or was researched moved together;
    `synthetic` whether the source's prices are made up; `past` the sessions up to as_of that a
    cooling-off is counted in; `unreadable` why something held has no value at as_of, by
    ticker;
    `no_rates` why exchange rates cannot be read.
    """

    closes: Closes = field(default_factory=dict)
    openings: Mapping[tuple[str, date], OpenFound] = field(default_factory=dict)
    due: Mapping[date, date] = field(default_factory=dict)
    actions: Mapping[str, Sequence[Action]] = field(default_factory=dict)
    since: date | None = None
    snapped: date = date.max
    sessions: Sequence[date] = ()
    rates: Mapping[str, ExchangeRate] = field(default_factory=dict)
    days: Mapping[tuple[str, date], DayPrices | None] = field(default_factory=dict)
    sectors: Mapping[str, str] = field(default_factory=dict)
    lots: Mapping[str, int] = field(default_factory=dict)
    issuers: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, TickerFacts] = field(default_factory=dict)
    moves: Moves = Moves()
    synthetic: bool = False
    past: Sequence[date] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    no_rates: str = ""

    def prices(self, as_of: date) -> Mapping[str, Decimal]:
        """The closes of as_of in the account's currency, where there are any."""
        return {
            ticker: mark.amount
            for (ticker, session), mark in self.closes.items()
            if session == as_of and mark is not None and mark.amount is not None
        }


def require_clock(account: Account, as_of: date) -> None:
    """Raise ClockBack where the account has seen a later session."""
    if as_of < account.clock:
        raise ClockBack(account.name, account.clock, as_of)


def require_currency(account: Account, budget: Money | None) -> None:
    """Raise CurrencyMismatch where the budget is not in the account's currency."""
    if budget is not None and budget.currency != account.currency:
        raise CurrencyMismatch(account.name, account.currency, budget.currency)


@dataclass(frozen=True, slots=True)
class PortfolioIds:
    """The ids of a Portfolio."""

    cycle_id: UUID
    op_id: UUID
    as_of: date


def portfolio(account: Account, named: PortfolioIds, quotes: Quotes) -> Portfolio:
    """The account at as_of's close, marked at the closes, or at the last known ones. Fills of later
    sessions are not known yet: their orders stand among the open ones.

    Raises StaleQuotes where a close was not read.
    """
    positions = positions_of(account, named.as_of, quotes)
    cash = account.books.as_of(named.as_of).cash
    value = sum((position.value for position in positions), _ZERO)
    return Portfolio(
        cycle_id=named.cycle_id,
        op_id=named.op_id,
        as_of=named.as_of,
        account=account.name,
        cash=money(cash, account),
        equity=money(cash + value, account),
        positions=positions,
        open_orders=open_orders_of(account),
        limits=account.limits,
        before=account.before,
        halt=account.halt,
        rates=tuple(quotes.rates[currency] for currency in sorted(quotes.rates)),
        synthetic=quotes.synthetic,
        exits=exits_at(account.acted, account.splits, named.as_of),
        cooling_off=cooling_off(account.sales, quotes.past, account.limits.cooling_off_sessions),
        issuers={ticker: name for ticker, name in sorted(quotes.issuers.items()) if name},
        incomplete=shortened("; ".join(quotes.unreadable.values()), INCOMPLETE_CHARS_MAX),
        venue=account.broker.bound if account.broker else None,
    )


def positions_of(account: Account, as_of: date, quotes: Quotes) -> tuple[Position, ...]:
    """The positions at as_of's close, by ticker. Raises as `portfolio` does."""
    holdings = account.books.as_of(as_of).holdings

    def one(ticker: str) -> Position:
        held = holdings[ticker]
        valued = valued_at(ticker, held, as_of, quotes.closes, account.known, account.currency)
        mark = valued.mark
        priced = _Priced(mark.amount or _ZERO, mark.foreign, valued.priced_on)
        return _position(account, ticker, held, priced, quotes)

    return tuple(map(one, account.held(as_of)))


def open_orders_of(account: Account) -> tuple[OpenOrder, ...]:
    """The orders that are open at the session that is looked at."""
    return tuple(_open_order(order, account) for order in account.orders)


def holdings_now(account: Account, as_of: date, quotes: Quotes) -> Holdings:
    """The positions after the open that follows as_of: of those bought or sold there, at the price
    of that fill, as nobody has seen a later one.

    Raises as `portfolio` does.
    """
    positions = {position.ticker: position for position in positions_of(account, as_of, quotes)}
    open_orders, sold = [], set[str]()
    for order in account.orders:
        fill, ticker = order.fill, order.ticker
        if fill is None:
            open_orders.append(_open_order(order, account))
            continue
        if order.side is Side.SELL:
            sold.add(ticker)
        held = account.books.holdings[ticker]
        if held.quantity > 0:
            priced = _Priced(price_in(fill.price, fill.rate), foreign(fill))
            positions[ticker] = _position(account, ticker, held, priced, quotes)
        else:
            positions.pop(ticker, None)
    return Holdings(
        account=account.name,
        as_of=as_of,
        positions=tuple(positions[ticker] for ticker in sorted(positions)),
        open_orders=tuple(open_orders),
        sold=tuple(sorted(sold)),
        exits=exits_at([act for act in account.acted if act.ticker in positions], account.splits),
        venue=account.broker.bound if account.broker else None,
    )


def session_before(
    session: date, equity: Decimal | None, paid_in: Decimal, account: Account
) -> SessionBefore:
    """A snapshot as the next session's loss is measured from it; `paid_in` since."""
    known = None if equity is None else money(equity, account)
    since = money(paid_in, account) if paid_in else None
    return SessionBefore(session=session, equity=known, paid_in=since)


@dataclass(frozen=True, slots=True)
class _Priced:
    """A position's price and value, in the account's currency; the others as in `Position`."""

    amount: Decimal
    foreign: Foreign | None
    priced_on: date | None = None


def _position(
    account: Account, ticker: str, holding: Holding, priced: _Priced, quotes: Quotes
) -> Position:
    return Position(
        ticker=ticker,
        quantity=holding.quantity,
        average_cost=money(holding.average_cost, account),
        price=money(priced.amount, account),
        sector=sector_of(account, ticker, quotes),
        foreign=priced.foreign,
        opened_on=holding.opened_on,
        plan=_plan_of(account.plans.get(ticker), holding.opened_on),
        priced_on=priced.priced_on,
        lot=quotes.lots.get(ticker, 1),
    )


def _plan_of(plan: HeldPlan | None, opened_on: date | None) -> HeldPlan | None:
    """The plan, where it is the one that this position was entered with."""
    return plan if plan is not None and plan.is_of(opened_on) else None


def sector_of(account: Account, ticker: str, quotes: Quotes) -> str:
    """The ticker's sector as the source has it at as_of. Where it says none there, such as of a
    share that does not trade that day: as it had it when the account ordered it last."""
    return quotes.sectors.get(ticker) or account.sectors.get(ticker) or UNKNOWN_SECTOR


def _open_order(order: BookedOrder, account: Account) -> OpenOrder:
    return OpenOrder(
        order_id=order.order_id,
        asset=order.ticker,
        side=order.side,
        quantity=order.quantity,
        hold=money(order.hold, account),
        stop_price=stop_money(order, account.currency) if order.type is OrderType.STOP else None,
        as_of=order.as_of,
    )


def stop_money(order: BookedOrder, currency: str) -> Money | None:
    """The order's stop price; in `currency`, the account's, unless it trades in another."""
    if order.stop_price is None:
        return None
    traded = currency if order.foreign is None else order.foreign.price.currency
    return Money(amount=_short(order.stop_price), currency=traded)


def money(amount: Decimal, account: Account) -> Money:
    """An amount in the account's currency, with the places that contracts carry."""
    return Money(amount=_short(amount), currency=account.currency)


def _short(amount: Decimal) -> Decimal:
    """12.50 and not 12.500000: the amounts are read by people too."""
    exact = amount.quantize(PRICE_STEP)
    cents = exact.quantize(CENT)
    return cents if cents == exact else exact


def foreign(fill: Filled) -> Foreign | None:
    """The price of a fill before the exchange; None where there was none."""
    if fill.rate is None:
        return None
    return Foreign(price=Money(amount=fill.price, currency=fill.rate.currency), rate=fill.rate)
