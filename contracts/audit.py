"""Events: the append-only record of what happened, as anyone may subscribe to it."""

from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal
from uuid import UUID

from pydantic import Field, JsonValue

from contracts.message import Message
from contracts.position import PositionText
from contracts.types import CycleId, Name, OperationId, ShortText, Value


class EventType(StrEnum):
    """The kind of an event. The name is the subject's fourth token."""

    REQUEST_REJECTED = "request_rejected"
    CYCLE_ACCEPTED = "cycle_accepted"
    CYCLE_ENDED = "cycle_ended"
    PIPELINE_ENDED = "pipeline_ended"
    ATTEMPT_ENDED = "attempt_ended"
    STATE_ENTERED = "state_entered"
    OPERATION_STARTED = "operation_started"
    OPERATION_COMPLETED = "operation_completed"
    OPERATION_FAILED = "operation_failed"
    OPERATION_CANCELLED = "operation_cancelled"
    LLM_REQUESTED = "llm_requested"
    LLM_CALLED = "llm_called"
    TOOL_CALLED = "tool_called"
    DATA_READ = "data_read"
    ANSWER_CHECKED = "answer_checked"
    MESSAGE_REFUSED = "message_refused"
    ORDER_PLACED = "order_placed"
    ORDER_FILLED = "order_filled"
    ORDER_REJECTED = "order_rejected"
    ORDER_CANCELLED = "order_cancelled"
    POSITION_UNPRICED = "position_unpriced"
    EXITS_CHECKED = "exits_checked"
    DECISION = "decision"
    LETTER_RETRIED = "letter_retried"
    LETTER_DISCARDED = "letter_discarded"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_DECIDED = "approval_decided"
    APPROVAL_EXPIRED = "approval_expired"
    TRADING_HALTED = "trading_halted"
    TRADING_RESUMED = "trading_resumed"
    HOLDINGS_IMPORTED = "holdings_imported"
    CASH_DEPOSITED = "cash_deposited"
    CASH_WITHDRAWN = "cash_withdrawn"
    LIMIT_SET = "limit_set"
    OUTAGE_ENDED = "outage_ended"
    LETTER_KEPT = "letter_kept"
    REPORT_WRITTEN = "report_written"
    NOTICES_GIVEN_UP = "notices_given_up"
    BOOKS_DIFFER = "books_differ"
    BOOKS_AGREE = "books_agree"
    ORDER_UNRESOLVED = "order_unresolved"
    LATE_FILL = "late_fill"


DECISION_EVENTS = (
    EventType.DECISION,
    EventType.APPROVAL_REQUESTED,
    EventType.APPROVAL_DECIDED,
    EventType.APPROVAL_EXPIRED,
    EventType.CYCLE_ENDED,
    EventType.ORDER_FILLED,
    EventType.ORDER_REJECTED,
    EventType.ORDER_CANCELLED,
    EventType.TRADING_HALTED,
    EventType.TRADING_RESUMED,
)
"""Events that are kept in a JetStream stream; the others travel over core NATS."""

NOTABLE_EVENTS = (
    EventType.REQUEST_REJECTED,
    EventType.CYCLE_ENDED,
    EventType.OPERATION_FAILED,
    EventType.MESSAGE_REFUSED,
    EventType.EXITS_CHECKED,
    EventType.DECISION,
    EventType.APPROVAL_REQUESTED,
    EventType.APPROVAL_DECIDED,
    EventType.APPROVAL_EXPIRED,
    EventType.ORDER_PLACED,
    EventType.ORDER_FILLED,
    EventType.ORDER_REJECTED,
    EventType.ORDER_CANCELLED,
    EventType.POSITION_UNPRICED,
    EventType.TRADING_HALTED,
    EventType.TRADING_RESUMED,
    EventType.HOLDINGS_IMPORTED,
    EventType.CASH_DEPOSITED,
    EventType.CASH_WITHDRAWN,
    EventType.OUTAGE_ENDED,
    EventType.LETTER_KEPT,
    EventType.REPORT_WRITTEN,
    EventType.NOTICES_GIVEN_UP,
    EventType.BOOKS_DIFFER,
    EventType.BOOKS_AGREE,
    EventType.ORDER_UNRESOLVED,
    EventType.LATE_FILL,
)
"""Events that people may be told of: the relay keeps them for the notifier in a stream too."""

FAILURES = frozenset(
    {
        EventType.REQUEST_REJECTED,
        EventType.OPERATION_FAILED,
        EventType.MESSAGE_REFUSED,
        EventType.APPROVAL_EXPIRED,
    }
)
BAD_ENDS = frozenset({"failed", "rejected", "expired"})


def tells_failure(kind: str, status: object) -> bool:
    """True where an event of this type, with this `status` in its data, reports a failure."""
    return kind in FAILURES or (isinstance(status, str) and status in BAD_ENDS)


def fits(pattern: str, owner: str, kind: str) -> bool:
    """True where the type, or `owner.type`, matches a pattern such as `order_*`."""
    return fnmatchcase(kind, pattern) or fnmatchcase(f"{owner}.{kind}", pattern)


class Event(Message):
    """One fact. `event_id` never changes, so a repeated delivery can be told; `sequence` counts a
    cycle's events from 1 without a gap, so a missed one can be seen and asked for."""

    event_id: UUID
    sequence: int = Field(ge=1)
    type: EventType
    owner: Name
    cycle_id: CycleId
    op_id: OperationId | None = None
    pipeline: Name | None = None
    state: Name | None = None
    session_id: ShortText | None = None
    at: datetime
    data: dict[str, JsonValue] = Field(default_factory=dict)


class EventsAfter(Message):
    """Ask for a cycle's events after a sequence number."""

    cycle_id: CycleId
    sequence: int = Field(default=0, ge=0)
    limit: int = Field(default=500, ge=1, le=1_000)


class Events(Message):
    """The events asked for, in order; `more` where the limit cut the list. `unreadable` of them
    are left out: a later release wrote them, of a type that this one does not know."""

    events: tuple[Event, ...]
    more: bool = False
    unreadable: int = Field(default=0, ge=0)


PATTERNS_MAX = 40
BACK_MAX = 10_000
"""Events before now with which a reader may begin."""
Gap = Literal["retention", "unknown", "behind"]
"""Why events before a position cannot be had: dropped by retention; other tables, which were
restored or made anew; more came than are sent again."""


class EventsSince(Message):
    """Ask for the events of all cycles behind a position, in the order in which they are published.

    Without a position: behind the event that is `back` before the newest. `types` are patterns such
    as `decision`, `order_*`, `execution.*`; none means all.
    """

    after: PositionText | None = None
    back: int = Field(default=0, ge=0, le=BACK_MAX)
    types: tuple[ShortText, ...] = Field(default=(), max_length=PATTERNS_MAX)
    limit: int = Field(default=500, ge=1, le=1_000)


class EventAt(Value):
    """An event, and the position right behind it."""

    position: PositionText
    event: Event


class EventsPage(Message):
    """The events asked for, in order. Whoever has dealt with them goes on behind `position`, at
    once where there is `more`. With a `gap` some before the first one cannot be had. `unreadable`
    as in `Events`."""

    events: tuple[EventAt, ...] = ()
    position: PositionText
    more: bool = False
    gap: Gap | None = None
    unreadable: int = Field(default=0, ge=0)
