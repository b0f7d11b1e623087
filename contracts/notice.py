"""Messages to people: the notice that an event makes, and what became of it on each channel.

NATS holds what waits, in one durable consumer a channel. The notifier composes and sends. It has no
database: the orchestrator keeps the record for it.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from contracts.message import Limit, Message, Request
from contracts.types import CycleId, Name, ShortText, Value

CHANNELS_MAX = 20
"""Channels of one desk."""
NOTICES_MAX = 200
"""Notices of one channel that are in a notifier's hands at once, and go in one message."""
LINES_MAX = 10
LINE_CHARS_MAX = 300
TITLE_CHARS_MAX = 160
NUMBER_MAX = 2**53 - 1
"""What JSON readers that count in floats still have exactly."""


def _no_link(text: str) -> str:
    if "://" in text or not text.isprintable():
        raise ValueError("a notice holds no link and no hidden character")
    return text


NoticeTitle = Annotated[
    str, StringConstraints(max_length=TITLE_CHARS_MAX), AfterValidator(_no_link)
]
NoticeLine = Annotated[str, StringConstraints(max_length=LINE_CHARS_MAX), AfterValidator(_no_link)]
Page = Annotated[str, StringConstraints(pattern=r"^(/[A-Za-z0-9][A-Za-z0-9/_-]{0,119})?$")]
"""A path of the console, to be put behind its address: it can lead to no other place."""


class NoticeKind(StrEnum):
    """The subject of a notice, as rules name it."""

    DECISION = "decision"
    EXIT = "exit"
    ORDER = "order"
    FILL = "fill"
    STOP = "stop"
    APPROVAL = "approval"
    CYCLE = "cycle"
    FAILURE = "failure"
    STEP = "step"
    BUDGET = "budget"
    REFUSAL = "refusal"
    HALT = "halt"
    CAPITAL = "capital"
    LIMIT = "limit"
    PRICE = "price"
    OUTAGE = "outage"
    DEAD_LETTER = "dead_letter"
    REPORT = "report"
    UNDELIVERED = "undelivered"
    BROKER = "broker"
    TEST = "test"


class Severity(StrEnum):
    """How serious a notice is, the least serious first."""

    INFO = "info"
    WARNING = "warning"
    ALARM = "alarm"

    @property
    def rank(self) -> int:
        """0 for the least serious."""
        return list(Severity).index(self)


class Notice(Value):
    """One event in sentences that code composed: no model's, headline's or person's free text, and
    no link.

    `account` is None where it is about the whole desk. `page` is the console's path about it, empty
    where there is none. `expires_at` is until when somebody is asked.
    """

    event_id: UUID
    kind: NoticeKind
    severity: Severity
    event: ShortText
    at: datetime
    account: Name | None = None
    cycle_id: CycleId | None = None
    title: NoticeTitle
    lines: tuple[NoticeLine, ...] = Field(default=(), max_length=LINES_MAX)
    page: Page = ""
    expires_at: datetime | None = None


class KeptNotice(Value):
    """A notice that is due to a channel, no earlier than `due_at`."""

    notice: Notice
    due_at: datetime


class KeepNotices(Message):
    """Put notices of one channel on record before they are sent.

    NATS holds the channel's notices since `since`: what was kept a minute before that and still
    waits is lost, and is given up.
    """

    channel: Name
    since: datetime
    notices: tuple[KeptNotice, ...] = Field(max_length=NOTICES_MAX)


class SettleNotices(Message):
    """Record a try: the channel took the notices (`code` is empty), or failed with `code`. Where it
    fails for longer than `give_up_after_s` since the first try they are given up."""

    channel: Name
    tried: tuple[UUID, ...] = Field(max_length=NOTICES_MAX)
    code: ShortText = ""
    give_up_after_s: float = Field(ge=0)


class EndedNotices(Message):
    """Those of the notices named that have ended: sent, or given up. They are not to be sent."""

    ended: tuple[UUID, ...] = ()


class NotificationsQuery(Message):
    """Ask for sent notifications, newest first: of one channel or event, or `before` one of an
    earlier page."""

    channel: Name | None = Field(default=None, description="Only this channel.")
    event_id: UUID | None = None
    status: Literal["due", "sent", "given_up"] | None = Field(
        default=None, description="Only these: due (waiting), sent or given_up."
    )
    before: int | None = Field(
        default=None,
        ge=1,
        le=NUMBER_MAX,
        description="The lowest `number` of the previous page.",
    )
    limit: Limit = 50


class Notification(Value):
    """One notice on one channel with its status."""

    number: int = Field(ge=1)
    channel: Name
    notice: Notice
    status: Literal["due", "sent", "given_up"]
    due_at: datetime
    tries: int = Field(default=0, ge=0)
    code: ShortText = ""
    ended_at: datetime | None = None


class ChannelState(Value):
    """How a channel fares, by the record. `failures` are the tries of a message that waits, the
    last one with `code`. `oldest_at` is the time of the oldest event that waits, `first_at` that of
    the oldest on record."""

    channel: Name
    waiting: int = Field(default=0, ge=0)
    sent: int = Field(default=0, ge=0)
    given_up: int = Field(default=0, ge=0)
    lost: int = Field(default=0, ge=0)
    """Of those given up: lost with NATS' store."""
    failures: int = Field(default=0, ge=0)
    failing_since: datetime | None = None
    code: ShortText = ""
    sent_at: datetime | None = None
    oldest_at: datetime | None = None
    first_at: datetime | None = None


class NotificationsPage(Message):
    """The requested notifications, and all channels, past ones too. `unreadable` are the numbers of
    notifications from a later release."""

    notifications: tuple[Notification, ...] = ()
    channels: tuple[ChannelState, ...] = ()
    more: bool = False
    unreadable: tuple[int, ...] = ()


class ChannelsQuery(Message):
    """Ask the notifier which channels and rules it runs with."""


class ChannelShown(Value):
    """A channel as it is set, without its address. `problem` says why nothing can be sent there;
    empty where all is well. NATS holds its notices since `since`; None where that is not known."""

    name: Name
    service: Name
    rules: tuple[Name, ...] = ()
    problem: ShortText = ""
    since: datetime | None = None


class RuleShown(Value):
    """A rule as it is set, in words."""

    name: Name
    events: tuple[ShortText, ...]
    accounts: tuple[Name, ...] = ()
    severity: Severity
    to: tuple[Name, ...]
    when: ShortText


class ChannelsView(Message):
    """The channels and rules of the notifier that answered."""

    channels: tuple[ChannelShown, ...] = ()
    rules: tuple[RuleShown, ...] = ()


class TestChannel(Request):
    """Send a test message to one channel now, outside of its order."""

    # pytest would take it for tests.
    __test__ = False

    channel: Name


class ChannelTested(Message):
    """How the test message fared; `message` says it for people."""

    sent: bool
    code: ShortText = ""
    message: ShortText = ""


class NoticesGivenUp(Value):
    """`count` notices to a channel were given up, the oldest from an event of `oldest_at`; `code`
    is the last failure's. The event's `cycle_id` is a placeholder: there is no cycle."""

    channel: Name
    count: int = Field(ge=1)
    code: ShortText
    oldest_at: datetime
