"""The shapes of `Event.data`, by the event's type. Readers ignore fields that they do not know."""

import operator
from collections.abc import Mapping
from datetime import date, datetime
from typing import Generic, Literal, TypeVar
from uuid import UUID

from pydantic import Field, JsonValue

from contracts.account import OrderStatus, OrderType, Side
from contracts.approval import Approval
from contracts.audit import Event, EventType
from contracts.capital import CashEvent, HoldingsEvent
from contracts.cycle import CycleStatus
from contracts.exit_signal import ExitReport
from contracts.halt import HaltEvent
from contracts.message import Message
from contracts.notice import NoticesGivenUp
from contracts.report import DailyReport
from contracts.risk import DecisionValidation, PortfolioDecision
from contracts.risk_use import LimitEvent
from contracts.stages import Substitute
from contracts.types import (
    Cost,
    Failure,
    Foreign,
    Money,
    Name,
    Quantity,
    ShortText,
    Text,
    Ticker,
    Usage,
    Value,
    is_none,
)
from contracts.venue import LookEvent, OrderAlarm


class Empty(Value):
    """Nothing: the event's own fields say it all."""


class Refused(Failure):
    """A rejected request. The event's `cycle_id` is a placeholder: there is no cycle."""

    requester: ShortText


class Ended(Value):
    """How a pipeline, a cycle or one of its attempts ended; the reason is empty after success."""

    status: CycleStatus
    reason: Text = ""


class StepEvent(Value):
    """An operation of this step began, was answered, or was stopped."""

    step: Name


class StepStoppedEvent(StepEvent):
    """An operation was stopped; `message` says why."""

    message: Text = ""


class StepFailedEvent(StepEvent):
    """An operation failed; `code` is for machines, `message` for people. `field` names the setting
    or the request's field that a `budget_exhausted` has used up."""

    code: ShortText
    message: Text
    field: ShortText | None = None


class CallEvent(StepEvent):
    """A finished call of an operation, `index` counted from 0; it is whole in the journal.

    A tool's call or another read tells its `arguments`, and what it gave as `result`, a line of at
    most some hundred characters; `error` is the code and the sentence of what went wrong, empty
    where nothing did. Texts in all of them are quoted from models and third parties.
    """

    name: ShortText
    index: int = Field(ge=0)
    duration_ms: float = Field(ge=0)
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    result: ShortText = ""
    error: ShortText = ""


class ModelRequestEvent(StepEvent):
    """A paid call is about to be made. Without an `llm_called` of the same index after it, the call
    may have been paid and its reply was lost."""

    name: ShortText
    index: int = Field(ge=0)
    epoch: int = Field(ge=1)
    tokens_max: int = Field(ge=0)
    cost_usd_max: Cost


class ModelCallEvent(CallEvent):
    """A model's turn, and what it used; `fault` is the code of the error where it gave no reply.

    `prompt_sha256` is the hash of the agent's prompt file, by which its version is known. `request`
    is what was new in it, `reply` the beginning of the text, `tool_calls` what was wanted.
    `usage_estimated` says why its tokens are an estimate, empty where the endpoint counted them.
    """

    usage: Usage
    request: ShortText = ""
    reply: ShortText = ""
    tool_calls: tuple[ShortText, ...] = ()
    stop_reason: ShortText = ""
    fault: ShortText = ""
    prompt_sha256: ShortText = ""
    usage_estimated: ShortText = ""


class CheckEvent(CallEvent):
    """An answer was held against its contract; `result` begins with the errors."""

    passed: bool


class MessageRefused(StepEvent):
    """A claim, record or result for an operation of `owner` came from another `service`."""

    service: ShortText
    what: Literal["claim", "record", "result"]
    owner: Name


class ApprovalRequested(StepEvent):
    """A proposal waits for a person, for `time_limit_s` seconds from the event's `at` on."""

    proposal_hash: str
    decisions: tuple[PortfolioDecision, ...] = ()
    substitutes: tuple[Substitute, ...] = Field(default=(), exclude_if=operator.not_)
    time_limit_s: float = Field(gt=0)


class OrderEvent(Value):
    """An order as written to the ledger. `op_id` is the operation that placed it.

    `foreign` is the price in another currency than the account's, and the rate; `stop_price` as in
    `Order`.
    """

    account: Name
    order_id: UUID
    asset: Ticker
    side: Side
    quantity: Quantity
    type: OrderType
    status: OrderStatus
    reason: Text = ""
    op_id: UUID
    foreign: Foreign | None = None
    stop_price: Money | None = Field(default=None, exclude_if=is_none)


class FillEvent(OrderEvent):
    """An order that was filled: the session, and the price and fee in the account's currency."""

    price: Money
    fee: Money
    session: date


class UnpricedEvent(Value):
    """A session's close has no price for a position: it is valued at the price of `priced_on`, in
    the account's currency, and cannot be sold until it has a price again."""

    account: Name
    ticker: Ticker
    quantity: Quantity
    price: Money
    priced_on: date


class LetterKept(Value):
    """An unreadable message or unanswered work became dead letter number `sequence`. The event's
    `cycle_id` is a placeholder: there is no cycle."""

    sequence: int = Field(ge=1)
    subject: ShortText
    code: ShortText


class OutageEnded(Value):
    """The desk stood still: between these two moments nothing could be committed. Or, with
    `clock_jump_s`, it did not, and Postgres' clock jumped from one to the other by so many seconds,
    below zero where it jumped back. With `beats_lost` Postgres has lost what was committed between
    them: so many beats of the desk's clock. The event's `cycle_id` belongs to no cycle."""

    since: datetime
    until: datetime
    clock_jump_s: float | None = None
    beats_lost: int | None = None


class LetterEvent(Value):
    """A person handled a dead letter. Without a known operation, the event's `cycle_id` is a
    placeholder: there is no cycle."""

    sequence: int = Field(ge=1)
    subject: ShortText
    code: ShortText
    by: ShortText
    reason: ShortText = ""
    operation: UUID | None = None


EVENT_DATA: Mapping[EventType, type[Value] | type[Message]] = {
    EventType.REQUEST_REJECTED: Refused,
    EventType.CYCLE_ACCEPTED: Empty,
    EventType.CYCLE_ENDED: Ended,
    EventType.PIPELINE_ENDED: Ended,
    EventType.ATTEMPT_ENDED: Ended,
    EventType.STATE_ENTERED: Empty,
    EventType.OPERATION_STARTED: StepEvent,
    EventType.OPERATION_COMPLETED: StepEvent,
    EventType.OPERATION_FAILED: StepFailedEvent,
    EventType.OPERATION_CANCELLED: StepStoppedEvent,
    EventType.LLM_REQUESTED: ModelRequestEvent,
    EventType.LLM_CALLED: ModelCallEvent,
    EventType.TOOL_CALLED: CallEvent,
    EventType.DATA_READ: CallEvent,
    EventType.ANSWER_CHECKED: CheckEvent,
    EventType.MESSAGE_REFUSED: MessageRefused,
    EventType.ORDER_PLACED: OrderEvent,
    EventType.ORDER_FILLED: FillEvent,
    EventType.ORDER_REJECTED: OrderEvent,
    EventType.ORDER_CANCELLED: OrderEvent,
    EventType.POSITION_UNPRICED: UnpricedEvent,
    EventType.EXITS_CHECKED: ExitReport,
    EventType.DECISION: DecisionValidation,
    EventType.LETTER_RETRIED: LetterEvent,
    EventType.LETTER_DISCARDED: LetterEvent,
    EventType.APPROVAL_REQUESTED: ApprovalRequested,
    EventType.APPROVAL_DECIDED: Approval,
    EventType.APPROVAL_EXPIRED: StepFailedEvent,
    EventType.TRADING_HALTED: HaltEvent,
    EventType.TRADING_RESUMED: HaltEvent,
    EventType.HOLDINGS_IMPORTED: HoldingsEvent,
    EventType.CASH_DEPOSITED: CashEvent,
    EventType.CASH_WITHDRAWN: CashEvent,
    EventType.LIMIT_SET: LimitEvent,
    EventType.OUTAGE_ENDED: OutageEnded,
    EventType.LETTER_KEPT: LetterKept,
    EventType.REPORT_WRITTEN: DailyReport,
    EventType.NOTICES_GIVEN_UP: NoticesGivenUp,
    EventType.BOOKS_DIFFER: LookEvent,
    EventType.BOOKS_AGREE: LookEvent,
    EventType.ORDER_UNRESOLVED: OrderAlarm,
    EventType.LATE_FILL: OrderAlarm,
}

D = TypeVar("D", bound=Value | Message)


class EventOf(Event, Generic[D]):
    """An event whose data is read as one of the shapes above: `EventOf[DecisionValidation]`."""

    data: D  # type: ignore[assignment]
