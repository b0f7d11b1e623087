"""Messages to people: what is told of an event, to which channel it is due, what became of it.

The notifier composes and sends; it has no database. What is due and what was sent is remembered by
the orchestrator, which it asks: `lease`, `keep`, `next`.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints

from contracts.message import Message, Request
from contracts.types import CycleId, Name, ShortText, Value

CHANNELS_MAX = 20
"""Channels of one desk."""
KEEP_MAX = 64
"""Notices that are kept by one question."""
NEXT_MAX = 50
"""Notices of one channel that are in the notifier's hands at once."""
LINES_MAX = 10
LINE_CHARS_MAX = 300
TITLE_CHARS_MAX = 160
HISTORY_MAX = 200
"""Notifications of one page."""


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
    PRICE = "price"
    OUTAGE = "outage"
    DEAD_LETTER = "dead_letter"
    REPORT = "report"
    UNDELIVERED = "undelivered"
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


class Due(Value):
    """A notice is to be sent to `channel`, no earlier than `due_at`; `gathered` in one message with
    the others that are due then."""

    channel: Name
    due_at: datetime
    gathered: bool = False


class KeptNotice(Value):
    """A notice and the channels that it is due to."""

    notice: Notice
    due: tuple[Due, ...] = Field(min_length=1, max_length=CHANNELS_MAX)


class LeaseNotifier(Message):
    """Ask to be the notifier that works, of all that run; `release` gives the lease back.

    `channels` are those that are set: a new one is told what happens from now on.
    """

    instance: ShortText
    channels: tuple[Name, ...] = Field(default=(), max_length=CHANNELS_MAX)
    release: bool = False


class NotifierLease(Message):
    """Whether it is, for `lease_s` seconds from the asking; `epoch` counts the holders."""

    granted: bool
    epoch: int = Field(default=0, ge=0)
    lease_s: float = Field(default=0, ge=0)


class KeepNotices(Message):
    """Remember what is due, in the order of events; what is remembered already stays as it is."""

    epoch: int = Field(ge=1)
    notices: tuple[KeptNotice, ...] = Field(max_length=KEEP_MAX)


class NoticesKept(Message):
    """`fenced`: another notifier has the lease, and nothing was kept."""

    outcome: Literal["ok", "fenced"]
    kept: int = Field(default=0, ge=0)


class Settled(Value):
    """The end of one notice: `sent`, or `given_up` for good, with the reason's `code`."""

    event_id: UUID
    outcome: Literal["sent", "given_up"]
    code: ShortText = ""


class NextNotices(Message):
    """Remember what became of a channel's notices, and ask for those that are due next.

    `failed` is the code of a try of the `tried` that came to nothing: none of the channel's is due
    again before `again_in_s`. `held` are not to be sent before `held_until`.
    """

    epoch: int = Field(ge=1)
    channel: Name
    settled: tuple[Settled, ...] = Field(default=(), max_length=NEXT_MAX)
    failed: ShortText = ""
    tried: tuple[UUID, ...] = Field(default=(), max_length=NEXT_MAX)
    again_in_s: float = Field(default=0, ge=0)
    held: tuple[UUID, ...] = Field(default=(), max_length=NEXT_MAX)
    held_until: datetime | None = None
    limit: int = Field(default=NEXT_MAX, ge=0, le=NEXT_MAX)


class DueNotice(Value):
    """A notice that is due to the channel; `tries` came to nothing so far."""

    notice: Notice
    due_at: datetime
    gathered: bool = False
    tries: int = Field(default=0, ge=0)


class NoticesNext(Message):
    """The channel's due notices in order. `now` is the database's time, `wait_s` how long nothing
    is due, where nothing is; None: until something is kept.

    `failures` are the channel's in a row, and `failing_since` is the first one's time.

    `fenced`: another notifier has the lease; what was settled as sent is remembered all the same.
    """

    outcome: Literal["ok", "fenced"]
    now: datetime
    notices: tuple[DueNotice, ...] = ()
    wait_s: float | None = None
    waiting: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)
    failing_since: datetime | None = None


class NotificationsQuery(Message):
    """Ask what was told, newest first: of one channel or event, `before` one of an earlier page."""

    channel: Name | None = None
    event_id: UUID | None = None
    status: Literal["due", "sent", "given_up"] | None = None
    before: int | None = Field(default=None, ge=1)
    limit: int = Field(default=50, ge=1, le=HISTORY_MAX)


class Notification(Value):
    """One notice on one channel and what became of it."""

    number: int = Field(ge=1)
    channel: Name
    notice: Notice
    status: Literal["due", "sent", "given_up"]
    gathered: bool = False
    due_at: datetime
    tries: int = Field(default=0, ge=0)
    code: ShortText = ""
    ended_at: datetime | None = None


class ChannelState(Value):
    """How a channel fares, by the record. `failures` came in a row since the last success, the last
    one with `code`; nothing is tried before `next_try_at`. `oldest_at` is the event's that has
    waited longest."""

    channel: Name
    since: datetime
    waiting: int = Field(default=0, ge=0)
    sent: int = Field(default=0, ge=0)
    given_up: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)
    failing_since: datetime | None = None
    code: ShortText = ""
    sent_at: datetime | None = None
    failed_at: datetime | None = None
    next_try_at: datetime | None = None
    oldest_at: datetime | None = None


class NotificationsPage(Message):
    """The notifications asked for, and all channels that there ever were. `unreadable` are the
    numbers of those among them that a later release wrote."""

    notifications: tuple[Notification, ...] = ()
    channels: tuple[ChannelState, ...] = ()
    more: bool = False
    unreadable: tuple[int, ...] = ()


class ChannelsQuery(Message):
    """Ask the notifier which channels and rules it runs with."""


class ChannelShown(Value):
    """A channel as it is set, without its address. `problem` says why nothing can be sent there;
    empty where all is well."""

    name: Name
    service: Name
    rules: tuple[Name, ...] = ()
    problem: ShortText = ""


class RuleShown(Value):
    """A rule as it is set, in words."""

    name: Name
    events: tuple[ShortText, ...]
    accounts: tuple[Name, ...] = ()
    severity: Severity
    to: tuple[Name, ...]
    when: ShortText


class ChannelsView(Message):
    """The channels and rules of the notifier that answered; `working` where it has the lease."""

    channels: tuple[ChannelShown, ...] = ()
    rules: tuple[RuleShown, ...] = ()
    working: bool = False


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
    """`count` notices to a channel were given up, the oldest of an event of `oldest_at`; the last
    failure's `code`. The event's `cycle_id` stands for a cycle that is not."""

    channel: Name
    count: int = Field(ge=1)
    code: ShortText
    oldest_at: datetime
