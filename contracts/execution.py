"""Execution: orders and fills. No model ever reaches this service."""

from datetime import date, datetime
from uuid import UUID

from pydantic import Field

from contracts.account import Fill, OrderStatus, OrderType, Side
from contracts.approval import Approval
from contracts.cycle import DECISION
from contracts.message import Command, Contract, Limit, Message
from contracts.performance import OrderResult
from contracts.risk import DecisionValidation, UnreadableDecision
from contracts.types import (
    CycleId,
    Foreign,
    IdDigits,
    Money,
    Name,
    OfAccount,
    Quantity,
    Text,
    Ticker,
    Value,
    is_none,
)
from contracts.venue import VenueTerms


class Order(Value):
    """One order; `reason` says why it was cut, rejected or still works.

    `foreign` is the close that it was sized at, where that is in another currency, and the rate.
    `stop_price` is what triggers a stop order, in the currency that the asset trades in; of a
    market order, the price of the stop order that follows its fill. `venue` is what the broker is
    sent; None: the simulated one fills it.
    """

    order_id: UUID
    asset: Ticker
    side: Side
    quantity: Quantity
    type: OrderType = OrderType.MARKET
    status: OrderStatus
    reason: Text = ""
    foreign: Foreign | None = None
    stop_price: Money | None = Field(default=None, exclude_if=is_none)
    venue: VenueTerms | None = Field(default=None, exclude_if=is_none)


class ExecutionResult(Contract):
    """Orders and fills, once: a repeated command gets the same result."""

    account: Name
    orders: tuple[Order, ...] = ()
    fills: tuple[Fill, ...] = ()
    cash_before: Money
    cash_after: Money


class ExecuteDecisions(Command):
    """Execute a validated proposal. The rules run again on the account now; they may only cut.

    Where a person was asked, `approval` says what may be executed, and until when.
    """

    decision_validation: DecisionValidation
    approval: Approval | None = None


class DecisionsQuery(Message):
    """The newest decisions first: of one cycle, of one account, or of all."""

    cycle_id: IdDigits | None = None
    account: OfAccount = None
    limit: Limit = 20


class DecisionView(Value):
    """One pipeline's decision: its picks after the rules, and the orders.

    `kind` is the cycle's: of an `exit` they are the sales that exit signals led to. `execution` is
    None before execution: it waits, or nothing was left to order. `results` are the results of its
    orders.
    """

    cycle_id: CycleId
    kind: Name = DECISION
    pipeline: Name
    account: Name
    as_of: date
    decided_at: datetime
    decision: DecisionValidation
    execution: ExecutionResult | None = None
    results: tuple[OrderResult, ...] = ()


class DecisionsPage(Message):
    """The decisions found; `more` where the message's size cut the list. `unreadable` are those
    among them that cannot be shown."""

    decisions: tuple[DecisionView, ...] = ()
    unreadable: tuple[UnreadableDecision, ...] = ()
    more: bool = False
