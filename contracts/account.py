"""Accounts as the desk sees them: limits, positions, and the books of one session."""

import operator
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from enum import StrEnum
from uuid import UUID

from pydantic import Field

from contracts.cycle import CycleRequest
from contracts.halt import Halt
from contracts.message import Command, Contract, Message
from contracts.types import (
    Amount,
    CycleId,
    ExchangeRate,
    Foreign,
    Lot,
    Money,
    Month,
    Name,
    Percent,
    Quantity,
    ShortText,
    Text,
    Ticker,
    Value,
    is_none,
    is_single,
)
from contracts.venue import BoundTo

RATES_MAX = 50
RULES_MAX = 10
"""Exit rules that one position can have."""
COOLING_OFF_SESSIONS_MAX = 60
"""About a quarter: who wants longer should not buy the ticker at all."""
HORIZON_SESSIONS_MAX = 252
"""A year of sessions."""
_CENT = Decimal("0.01")


class OrderStatus(StrEnum):
    """Where an order is."""

    WORKING = "working"
    FILLED = "filled"
    REJECTED = "rejected"
    CANCELLED = "cancelled"


class Side(StrEnum):
    """Which way an order trades."""

    BUY = "buy"
    SELL = "sell"


class OrderType(StrEnum):
    """How an order is filled: `market` at the next open, `stop` once the price is reached."""

    MARKET = "market"
    STOP = "stop"


POSITION_SHARES_MIN = 5
"""The fewest shares that a buy begins, or an exit leaves, a position with: of fewer no whole number
is within 10 points of a half for sure."""
POSITION_VALUE_MIN = Decimal(500)
"""The same of its value: half a percent of the 100,000 that an account starts with. Whatever
becomes of less is not seen."""


class AccountLimits(Value):
    """The limits that the rules in code enforce for one account. Percentages are of equity unless
    said.

    `daily_loss_pct_max` is of the equity at the close of the exchange session before as_of. Beyond
    it, measured at as_of's closes, the account buys nothing more at that session; sales pass.
    `cooling_off_sessions` are whole sessions that lie between a sale and the next buy of a ticker.
    `volatility_pct_max` is a year's, of the whole account. In the `report_sessions` before a report
    nothing of the company is bought; 0 switches that off. With `exits_veto_buys` nothing is bought
    that the account's own exit rules would sell at the same close. Nothing is bought that comes to
    fewer than `position_shares_min` shares, or to less than `position_value_min` in the account's
    currency; 0 switches either off.
    """

    sector_pct_max: Percent = Decimal(50)
    position_pct_max: Percent = Decimal(40)
    gross_exposure_pct_max: Percent = Decimal(100)
    order_pct_max: Percent = Decimal(40)
    risk_score_max: float = Field(default=7.0, ge=0, le=10)
    price_move_pct_max: Percent = Decimal(5)
    daily_loss_pct_max: Percent = Decimal(5)
    cooling_off_sessions: int = Field(default=10, ge=0, le=COOLING_OFF_SESSIONS_MAX)
    risk_per_trade_pct_max: Percent = Decimal(1)
    volatility_pct_max: Percent = Decimal(15)
    cluster_pct_max: Percent = Decimal(40)
    report_sessions: int = Field(default=3, ge=0, le=20)
    exits_veto_buys: bool = True
    position_shares_min: int = Field(default=POSITION_SHARES_MIN, ge=0, le=1_000_000)
    position_value_min: Amount = Field(default=POSITION_VALUE_MIN, ge=0)


class EntryPlan(Value):
    """A buy's plan: what would prove it wrong, and when it is looked at again.

    `stop_price` is in the currency that the ticker trades in; None: there is no stop, and all of it
    is at risk. `risk` is what is lost from the price it was sized at down to there, with fees and
    a small gap, in the account's currency; `risk_pct` the same of its equity. `review_by` is the
    session at which the horizon ends, or an earlier dated event's, which `review_event` tells.
    """

    horizon_sessions: int = Field(ge=1, le=HORIZON_SESSIONS_MAX)
    stop_price: Money | None = None
    risk: Money
    risk_pct: Decimal = Field(ge=0, max_digits=9, decimal_places=4)
    review_by: date | None = None
    review_event: ShortText = ""


class HeldPlan(EntryPlan):
    """The plan that a position was entered with, `since` the session of its fill: its thesis, and
    the cycle that decided it.

    Its stop as it is now stands among the open orders.
    """

    thesis: Text = ""
    since: date
    cycle_id: UUID

    def is_of(self, opened_on: date | None) -> bool:
        """Whether the position that is held since then was entered with it, not an older one."""
        return opened_on is not None and self.since >= opened_on

    def is_due(self, as_of: date) -> bool:
        """Whether the session has come at which the position was to be looked at again."""
        return self.review_by is not None and as_of >= self.review_by


class Position(Value):
    """The holding of one ticker, at average cost, marked at as_of's close.

    All in the account's currency; `foreign` says what it trades at elsewhere, and the rate.
    `opened_on` is the session since which something of it was held without a break, `plan` what it
    was bought for and with which stop, where the buy had one. `priced_on` is
    only there where as_of has no close of it: the session of the last known one, or the one that it
    was bought at where there is none since. Nothing of it can be sold until it has a price again.
    `lot` is how many of its shares are traded together.
    """

    ticker: Ticker
    quantity: Quantity
    average_cost: Money
    price: Money
    sector: ShortText = "unknown"
    foreign: Foreign | None = None
    opened_on: date | None = Field(default=None, exclude_if=is_none)
    plan: HeldPlan | None = Field(default=None, exclude_if=is_none)
    priced_on: date | None = Field(default=None, exclude_if=is_none)
    lot: Lot = Field(default=1, exclude_if=is_single)

    @property
    def value(self) -> Decimal:
        """Market value in the account's currency."""
        return self.quantity * self.price.amount


class OpenOrder(Value):
    """An order that still waits for its fill.

    A stop order has a `stop_price`, in the currency that the ticker trades in; it promises no
    share away: a sale of the position makes it smaller. `as_of` is the session that it was decided
    at.
    """

    order_id: UUID
    asset: Ticker
    side: Side
    quantity: Quantity
    hold: Money
    stop_price: Money | None = Field(default=None, exclude_if=is_none)
    as_of: date

    @property
    def type(self) -> OrderType:
        """The type of the order."""
        return OrderType.MARKET if self.stop_price is None else OrderType.STOP


class Fill(Value):
    """One fill, in the account's currency; `session` is the day whose open it was, or on which a
    stop was reached.

    `foreign` is the price in the currency that it was traded in, and the rate it was exchanged at.
    """

    order_id: UUID
    asset: Ticker
    side: Side
    price: Money
    quantity: Quantity
    fee: Money
    session: date
    foreign: Foreign | None = None

    @property
    def value(self) -> Decimal:
        """The value of the shares in the account's currency, to the cent as the ledger has it."""
        price = self.price if self.foreign is None else self.foreign.price
        against_the_trader = ROUND_CEILING if self.side is Side.BUY else ROUND_FLOOR
        traded = (price.amount * self.quantity).quantize(_CENT, against_the_trader)
        return traded if self.foreign is None else (traded * self.foreign.rate.rate).quantize(_CENT)


class ExitAct(Value):
    """The cause of an exit's sale: the rules that fired, and how much they wanted sold.

    `month` is the calendar month that a signal of a month is of: the last complete one at the
    check. Of `held` shares `asked` were to be sold; what an order leaves unsold of that, a later
    one may ask for.
    """

    rules: tuple[Name, ...] = Field(min_length=1, max_length=RULES_MAX)
    month: Month
    held: Quantity
    asked: Quantity


class ActedExit(ExitAct):
    """An exit order in the ledger: decided at as_of's close, with what was `sold` of it, and at
    which session. All shares are counted as after the splits since.
    """

    ticker: Ticker
    as_of: date
    sold: Quantity = Decimal(0)
    sold_on: date | None = Field(default=None, exclude_if=is_none)


class CoolingOff(Value):
    """A ticker that was sold of less than `cooling_off_sessions` before: not to be bought yet.

    `sessions_ago` counts those after the sale's up to as_of: 0 at its own close.
    """

    ticker: Ticker
    sold_on: date
    sessions_ago: int = Field(ge=0)


class SessionBefore(Value):
    """The account at the close of the exchange session before as_of: what a day's loss is measured
    from. `equity` None: something held then could not be valued, so nobody can say. `paid_in` is
    what the owner has paid in since, negative where more was taken out: neither is gain or loss.
    """

    session: date
    equity: Money | None = None
    paid_in: Money | None = Field(default=None, exclude_if=is_none)


class Portfolio(Contract):
    """One account at as_of's close. `equity` is cash plus positions.

    `before` is None where the account was not open at the session before. `halt` stands when buys
    of the account are blocked now, whatever as_of is. `rates` into the account's currency are those
    known at as_of's close. `synthetic` says that the market source's prices are made up. `exits`
    are those that acted on what is held, oldest first; `cooling_off` what was sold lately.
    `issuers` are those of tickers that are held, ordered or were sold lately, as far as the market
    source knows them. `incomplete` says why nobody can say what the equity is: a file of something
    held cannot be read. Nothing is bought then. `venue` is the broker that fills its orders; None:
    the simulated one.
    """

    account: Name
    cash: Money
    equity: Money
    positions: tuple[Position, ...] = ()
    open_orders: tuple[OpenOrder, ...] = ()
    limits: AccountLimits = AccountLimits()
    before: SessionBefore | None = None
    halt: Halt | None = None
    rates: tuple[ExchangeRate, ...] = Field(default=(), max_length=RATES_MAX)
    synthetic: bool = False
    exits: tuple[ActedExit, ...] = Field(default=(), exclude_if=operator.not_)
    cooling_off: tuple[CoolingOff, ...] = Field(default=(), exclude_if=operator.not_)
    issuers: dict[Ticker, ShortText] = Field(default_factory=dict, exclude_if=operator.not_)
    incomplete: ShortText = Field(default="", exclude_if=operator.not_)
    venue: BoundTo | None = Field(default=None, exclude_if=is_none)

    @property
    def cash_free(self) -> Decimal:
        """The cash that no open order holds back."""
        holds = (order.hold.amount for order in self.open_orders if order.side is Side.BUY)
        return max(Decimal(0), self.cash.amount - sum(holds, Decimal(0)))

    @property
    def exposed(self) -> frozenset[str]:
        """The tickers that are held, or that an open order buys."""
        bought = (order.asset for order in self.open_orders if order.side is Side.BUY)
        return frozenset({*bought, *(held.ticker for held in self.positions if held.quantity)})


class OpenBooks(Command):
    """Bring the account to as_of (fill what was working) and say what it holds.

    An as_of before the account's clock is refused: `clock_back`.
    """

    request: CycleRequest


class PortfolioQuery(Message):
    """Ask for the account of this operation's pipeline; the desk takes it from its record."""

    cycle_id: CycleId
    pipeline: Name
    account: Name
    as_of: date
