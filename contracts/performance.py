"""How an account did: its return beside a benchmark, its risk, and its round trips."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from contracts.account import OrderType, Side
from contracts.account_query import NotCounted
from contracts.message import MAIN_ACCOUNT, PAGE_MAX, Message
from contracts.types import Currency, Money, Name, Quantity, ShortText, Text, Ticker, Value, is_none

CANDIDATES, CASH = "candidates", "cash"
BENCHMARK_PATTERN = rf"^({CANDIDATES}|{CASH}|[A-Za-z0-9][A-Za-z0-9.^=/-]{{0,14}})$"
Benchmark = Annotated[str, StringConstraints(pattern=BENCHMARK_PATTERN)]
"""What an account is compared with: `candidates`, equal parts of the candidates of its first
decision, bought then and left alone; `cash`; or one ticker, bought then and left alone."""


class PerformanceQuery(Message):
    """An account's performance. `benchmark` None is the one in the settings; `trips` is how many of
    the newest round trips to list, `points` how many sessions of its curves."""

    account: Name = MAIN_ACCOUNT
    benchmark: Benchmark | None = None
    trips: int = Field(default=50, ge=0, le=PAGE_MAX)
    points: int = Field(default=120, ge=2, le=PAGE_MAX)


class PerformancePoint(Value):
    """A session's close: time-weighted returns since the opening, how far the account is below its
    highest so far, and what it held, all in percent. `benchmark_pct` is None where the benchmark
    had not begun."""

    session: date
    return_pct: Decimal
    benchmark_pct: Decimal | None = None
    drawdown_pct: Decimal
    exposure_pct: Decimal


class MonthReturn(Value):
    """The return of a calendar month, `2012-06`, in percent, as far as the account saw it."""

    month: ShortText
    return_pct: Decimal
    benchmark_pct: Decimal | None = None


class YearReturn(Value):
    """The return of a calendar year, `2012`, in percent, as far as the account saw it."""

    year: ShortText
    return_pct: Decimal


class RoundTrip(Value):
    """A position from its first share to its last, as of the close of `as_of`; without `closed`
    something of it is held.

    `quantity` shares were bought, `sold` of them were sold, `held` are left; they are counted as
    after the splits since, without what a split paid in cash. Prices are averages
    of what was bought and sold, in the account's currency. `gain` is its P&L, with dividends, with
    the `unrealised` part of what is held, and after fees; `gain_pct` the same of what was paid.
    `sold_by` says what sold last, with the exit rules that fired: all of it where it is `closed`,
    else a part. The ids are those of the cycles that decided.
    """

    ticker: Ticker
    as_of: date
    opened: date
    closed: date | None = None
    sessions: int | None = None
    quantity: Quantity
    sold: Quantity = Decimal(0)
    held: Quantity = Decimal(0)
    entry_price: Decimal | None = None
    exit_price: Decimal | None = None
    gain: Decimal
    gain_pct: Decimal | None = None
    unrealised: Decimal = Decimal(0)
    dividends: Decimal = Decimal(0)
    fees: Decimal = Decimal(0)
    sold_by: Literal["stop", "signal", "by_hand", "decision", "split"] | None = None
    rules: tuple[ShortText, ...] = ()
    entry_cycle_id: UUID | None = None
    entry_pipeline: Name | None = None
    exit_cycle_id: UUID | None = None
    exit_pipeline: Name | None = None


class OrderResult(Value):
    """The result of one order of a decision, as of the account's newest valued close `as_of`.

    Of a buy the `trip` that it opened, and its P&L as `gain`, open ones included; of a sale the
    trip that it ended or made smaller, and its part of the trip's P&L as `gain`: its shares' with
    the fees of both sides and the dividends. A stop order, which sells at `stop_price`, is a sale.
    A buy that added to a position has its trip and no gain. Both are None where nothing is known
    yet: it was not filled, or has no close yet. `status` is the order's own now, `filled_on` the
    session of its fill, and `reason` says why it was not filled, or why nothing is known of it yet.
    """

    order_id: UUID
    ticker: Ticker
    side: Side
    type: OrderType = OrderType.MARKET
    stop_price: Money | None = Field(default=None, exclude_if=is_none)
    status: ShortText
    reason: Text = ""
    filled_on: date | None = None
    as_of: date | None = None
    gain: Money | None = None
    trip: RoundTrip | None = None


class TickerReturn(Value):
    """The gain of all round trips of a ticker, as in `RoundTrip.gain`."""

    ticker: Ticker
    trips: int
    gain: Decimal


class PerformanceFigures(Value):
    """An account, or what it is compared with, over the same sessions.

    Percentages; a year is 252 sessions, the risk-free rate 0. Sharpe and Sortino are of daily
    returns. What is not defined is None: a ratio without variation, a year of one session.
    """

    return_pct: Decimal
    annual_pct: Decimal | None = None
    volatility_pct: Decimal | None = None
    sharpe: Decimal | None = None
    sortino: Decimal | None = None
    max_drawdown_pct: Decimal
    max_drawdown_on: date | None = None


class TradeFigures(Value):
    """The account's closed round trips. `turnover` is what was traded in a year over the mean
    equity, `profit_factor` what winners brought over what losers lost, `sessions_held` the mean.
    `exposure_pct` is the mean over sessions of what is held over equity. A round trip is won where
    it brought more than its fees."""

    closed: int = 0
    open: int = 0
    won: int = 0
    win_rate_pct: Decimal | None = None
    mean_win: Decimal | None = None
    mean_loss: Decimal | None = None
    best: Decimal | None = None
    worst: Decimal | None = None
    profit_factor: Decimal | None = None
    sessions_held: Decimal | None = None
    fees: Decimal = Decimal(0)
    turnover: Decimal | None = None
    exposure_pct: Decimal | None = None


class PerformanceView(Message):
    """The account's performance from its opening at `first` to `last`, the newest close at which it
    could be valued. Later fills are not included; `not_counted` counts them.

    `benchmark` is what was asked for or is set, `benchmark_tickers` what it holds; without
    `compared` `benchmark_message` says why there is no line of it. `exposed` are the figures of the
    benchmark held, over each session, as much as the account was invested at the close before.
    Trips are the newest first, open ones before closed ones; `trips_more` where there are more than
    were asked for, `tickers_more` how many tickers are left out. The gains of all trips are
    together the account's P&L: `equity` less `paid_in`.
    """

    found: bool = True
    accounts: tuple[Name, ...] = ()
    currency: Currency | None = None
    first: date | None = None
    last: date | None = None
    sessions: int = 0
    not_counted: NotCounted = NotCounted()
    equity: Decimal = Decimal(0)
    paid_in: Decimal = Decimal(0)
    account: PerformanceFigures | None = None
    benchmark: ShortText = ""
    benchmark_tickers: tuple[Ticker, ...] = ()
    benchmark_message: Text = ""
    compared: PerformanceFigures | None = None
    exposed: PerformanceFigures | None = None
    months: tuple[MonthReturn, ...] = ()
    years: tuple[YearReturn, ...] = ()
    trades: TradeFigures = TradeFigures()
    tickers: tuple[TickerReturn, ...] = ()
    tickers_more: int = 0
    trips: tuple[RoundTrip, ...] = ()
    trips_more: bool = False
    points: tuple[PerformancePoint, ...] = ()
    message: Text = ""


class TickerFill(Value):
    """The fill of one order, at the `price` as the ticker trades.

    `gain` is what it has brought the account: of a sale with its fee, of a buy the fee alone.
    `decided_on` is the session of the decision, and `why` its reason; the ids lead to it.
    """

    side: Literal["buy", "sell"]
    quantity: Decimal
    price: Money
    gain: Money
    why: ShortText = ""
    decided_on: date
    cycle_id: UUID
    pipeline: Name


class TickerDay(Value):
    """All that an account traded of a ticker at one session, shares as they were counted then."""

    session: date
    bought: Decimal = Decimal(0)
    sold: Decimal = Decimal(0)
    gain: Decimal = Decimal(0)
    fills: tuple[TickerFill, ...] = ()


class TickerChart(Value):
    """A ticker's prices as of an account's session, `as_of`, with what the account did in it.

    Lists of one length, a value a session, oldest first: prices in `currency`, in which the ticker
    trades, adjusted for splits and dividends up to `adjusted_to` (up to that session they are what
    was known at it); `averages` as the technical indicators have them, null while there are too few
    bars; the `average_cost` of what was held at the close, and the stop order that waited, both on
    the scale of these prices. `days` has the account's trades; those after `as_of`, at an open
    whose close is not known yet, have no bar.
    """

    account: Name
    ticker: Ticker
    currency: Currency
    source: Text
    as_of: date
    adjusted_to: date
    sessions: tuple[date, ...]
    open: tuple[float, ...]
    high: tuple[float, ...]
    low: tuple[float, ...]
    close: tuple[float, ...]
    volume: tuple[float, ...]
    averages: dict[str, tuple[float | None, ...]]
    average_cost: tuple[float | None, ...]
    stop: tuple[float | None, ...]
    days: tuple[TickerDay, ...] = ()


class AccountSummary(Value):
    """An account in a line, as of its newest valued close. Amounts in its currency.

    `day_gain` is since the close before, without what was paid in or out: None where there is no
    such close. `total_gain` is what it is worth more than was paid in, `return_pct` the
    time-weighted return, `curve` what 1 at the opening has become, oldest first. Of its books now
    are `positions`, their number, `risk`, what is lost if every stop order fills at its price, and
    `unprotected`, the value of what no stop order sells.
    """

    account: Name
    currency: Currency
    as_of: date
    equity: Decimal
    day_gain: Decimal | None = None
    day_gain_pct: Decimal | None = None
    total_gain: Decimal
    return_pct: Decimal
    exposure_pct: Decimal
    positions: int
    risk: Decimal
    unprotected: Decimal
    curve: tuple[Decimal, ...] = ()


class AccountSummaries(Value):
    """Accounts, the main one first, then those that hold something; `more` are not listed.

    Those that `deskbus run` opened for one look are left out where there are others.
    """

    accounts: tuple[AccountSummary, ...] = ()
    more: int = 0
