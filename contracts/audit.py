"""Events: the append-only record of what happened, as anyone may subscribe to it."""

from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal, Self
from uuid import UUID

from pydantic import Field, JsonValue

from contracts.message import Message
from contracts.position import PositionText
from contracts.types import CycleId, Name, OperationId, ShortText, Value

EXECUTION = "execution"
LIVE, NOTABLE, KEPT = range(3)
"""Who hears of an event: live subscribers; the notifier too; and the stream of decisions too."""


class EventType(StrEnum):
    """The kind of an event. The name is the subject's fourth token."""

    owner: str
    heard: int

    def __new__(cls, name: str, heard: int = LIVE, owner: str = "orchestrator") -> Self:
        """A type: its name, which is its value, who hears of it, and who makes it."""
        member = str.__new__(cls, name)
        member._value_, member.owner, member.heard = name, owner, heard
        return member

    REQUEST_REJECTED = "request_rejected", NOTABLE
    CYCLE_ACCEPTED = "cycle_accepted"
    CYCLE_ENDED = "cycle_ended", KEPT
    PIPELINE_ENDED = "pipeline_ended"
    ATTEMPT_ENDED = "attempt_ended"
    STATE_ENTERED = "state_entered"
    OPERATION_STARTED = "operation_started"
    OPERATION_COMPLETED = "operation_completed"
    OPERATION_FAILED = "operation_failed", NOTABLE
    OPERATION_CANCELLED = "operation_cancelled"
    LLM_REQUESTED = "llm_requested"
    LLM_CALLED = "llm_called"
    TOOL_CALLED = "tool_called"
    DATA_READ = "data_read"
    ANSWER_CHECKED = "answer_checked"
    MESSAGE_REFUSED = "message_refused", NOTABLE
    ORDER_PLACED = "order_placed", NOTABLE, EXECUTION
    ORDER_FILLED = "order_filled", KEPT, EXECUTION
    ORDER_REJECTED = "order_rejected", KEPT, EXECUTION
    ORDER_CANCELLED = "order_cancelled", KEPT, EXECUTION
    POSITION_UNPRICED = "position_unpriced", NOTABLE, EXECUTION
    EXITS_CHECKED = "exits_checked", NOTABLE
    DECISION = "decision", KEPT
    LETTER_RETRIED = "letter_retried"
    LETTER_DISCARDED = "letter_discarded"
    APPROVAL_REQUESTED = "approval_requested", KEPT
    APPROVAL_DECIDED = "approval_decided", KEPT
    APPROVAL_EXPIRED = "approval_expired", KEPT
    TRADING_HALTED = "trading_halted", KEPT, EXECUTION
    TRADING_RESUMED = "trading_resumed", KEPT, EXECUTION
    HOLDINGS_IMPORTED = "holdings_imported", NOTABLE, EXECUTION
    CASH_DEPOSITED = "cash_deposited", NOTABLE, EXECUTION
    CASH_WITHDRAWN = "cash_withdrawn", NOTABLE, EXECUTION
    LIMIT_SET = "limit_set", NOTABLE, EXECUTION
    OUTAGE_ENDED = "outage_ended", NOTABLE
    LETTER_KEPT = "letter_kept", NOTABLE
    REPORT_WRITTEN = "report_written", NOTABLE
    NOTICES_GIVEN_UP = "notices_given_up", NOTABLE
    BOOKS_DIFFER = "books_differ", NOTABLE, EXECUTION
    BOOKS_AGREE = "books_agree", NOTABLE, EXECUTION
    ORDER_UNRESOLVED = "order_unresolved", NOTABLE, EXECUTION
    LATE_FILL = "late_fill", NOTABLE, EXECUTION


DECISION_EVENTS = tuple(kind for kind in EventType if kind.heard == KEPT)
"""Events that are kept in a JetStream stream; the others travel over core NATS."""

NOTABLE_EVENTS = tuple(kind for kind in EventType if kind.heard)
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
    """One fact. `event_id` never changes, so a repeated delivery can be detected; `sequence` counts
    a cycle's events from 1 without a gap, so a missed one can be detected and requested."""

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
    """The requested events, in order; `more` if the limit cut the list. `unreadable` events are
    left out: a later release wrote them, of a type unknown to this one."""

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
    """The requested events, in order. Continue after `position`, at once if there is `more`. With a
    `gap`, some events before the first are not available. `unreadable` as in `Events`."""

    events: tuple[EventAt, ...] = ()
    position: PositionText
    more: bool = False
    gap: Gap | None = None
    unreadable: int = Field(default=0, ge=0)
