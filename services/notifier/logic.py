"""Which notice is due to which channel and when, which goes next, how long a failure waits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from contracts.audit import Event, EventType
from contracts.notice import (
    Due,
    DueNotice,
    KeptNotice,
    Notice,
    Severity,
)
from contracts.study import ACCOUNT_PREFIX
from libs.report.notify import notices
from libs.runtime.notify_settings import (
    ChannelSettings,
    Notify,
    RuleSettings,
    next_digest,
    quiet_until,
)

GATHER_FROM = 6
"""So many notices that wait for a channel go in one message: it is catching up."""
BACKOFF_S, BACKOFF_S_MAX = 2.0, 300.0
"""The wait after a failure doubles up to the second."""
JITTER = 0.25
"""The part of a wait by which it is shorter or longer, so that channels do not beat in time."""


# --- what is due ----------------------------------------------------------------------------------


def kept(event: Event, notify: Notify) -> KeptNotice | None:
    """The event's notice and where it is due; None where nobody is to be told: of a study's cells
    nobody is."""
    notice = notices.of(event)
    if notice.account is not None and notice.account.startswith(ACCOUNT_PREFIX):
        return None
    # What could not be told over a channel is not told over that one.
    failed = event.data.get("channel") if event.type is EventType.NOTICES_GIVEN_UP else None
    due = tuple(due for due in due_of(notice, notify) if due.channel != failed)
    return KeptNotice(notice=notice, due=due) if due else None


def due_of(notice: Notice, notify: Notify) -> tuple[Due, ...]:
    """Where and when the notice is due: by several rules to one channel, at the earliest time."""
    earliest: dict[str, Due] = {}
    for rule in _fitting(notice, notify):
        at = _due_at(notice, rule, notify)
        for channel in rule.to:
            due = Due(channel=channel, due_at=at, gathered=rule.digest is not None)
            if channel not in earliest or at < earliest[channel].due_at:
                earliest[channel] = due
    return tuple(earliest.values())


def fits(notice: Notice, rule: RuleSettings) -> bool:
    """Whether a rule is about the notice. What is about no account is about all."""
    names = (notice.kind.value, notice.event)
    return (
        any(fnmatchcase(name, pattern) for pattern in rule.events for name in names)
        and (not rule.accounts or notice.account is None or notice.account in rule.accounts)
        and notice.severity.rank >= rule.severity.rank
    )


def held_until(notice: Notice, channel: str, notify: Notify, now: datetime) -> datetime | None:
    """Until when the notice is not to be sent to the channel, for its quiet hours; None: now."""
    ends: list[datetime] = []
    for rule in _fitting(notice, notify):
        if channel in rule.to:
            end = _quiet_end(notice.severity, rule, notify, now)
            if end is None:
                return None
            ends.append(end)
    return min(ends, default=None)


def _fitting(notice: Notice, notify: Notify) -> Iterator[RuleSettings]:
    return (rule for rule in notify.rules_in_force.values() if fits(notice, rule))


def _due_at(notice: Notice, rule: RuleSettings, notify: Notify) -> datetime:
    """By the event's time, which is the database's: no other clock has a say."""
    at = notice.at if rule.digest is None else next_digest(rule.digest, notice.at, notify.zone)
    return _quiet_end(notice.severity, rule, notify, at) or at


def _quiet_end(
    severity: Severity, rule: RuleSettings, notify: Notify, at: datetime
) -> datetime | None:
    quiet = notify.quiet_of(rule)
    if quiet is None or severity.rank >= notify.rings.rank:
        return None
    return quiet_until(quiet, at, notify.zone)


# --- what is sent next ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """The next step with a channel's due notices: give some up, hold some, send one message."""

    given_up: Sequence[Notice] = ()
    held: Sequence[Notice] = ()
    held_until: datetime | None = None
    message: Sequence[Notice] = ()


def step(
    due: Sequence[DueNotice],
    now: datetime,
    channel: str,
    channel_settings: ChannelSettings,
    notify: Notify,
    *,
    failing_since: datetime | None = None,
    alone: bool = False,
) -> Step:
    """The next step. With `alone` a message tells one notice.

    A notice is given up once the channel has failed for so long since it was due. To one that does
    not fail it is sent however late it is: the desk stood still, or a clock jumped.
    """
    patience = timedelta(seconds=channel_settings.give_up_after_s)
    if failing_since is not None:
        given_up = [late for late in due if now - max(late.due_at, failing_since) > patience]
        if given_up:
            return Step(given_up=[entry.notice for entry in given_up])
    ends = {entry.notice.event_id: held_until(entry.notice, channel, notify, now) for entry in due}
    held = [entry.notice for entry in due if ends[entry.notice.event_id] is not None]
    if held:
        return Step(held=held, held_until=min(end for end in ends.values() if end is not None))
    return Step(message=[entry.notice for entry in _together(due, alone=alone)])


def _together(due: Sequence[DueNotice], *, alone: bool) -> Sequence[DueNotice]:
    """The first ones that go in one message."""
    if alone or not due:
        return due[:1]
    if len(due) >= GATHER_FROM:
        return due
    first = due[0]
    if not first.gathered:
        return due[:1]
    end = next((n for n, entry in enumerate(due) if not entry.gathered), len(due))
    return due[:end]


def backoff_s(failures: int, asked_for_s: float | None, chance: float) -> float:
    """How long to wait after that many failures in a row; `chance` is 0 to 1. What the channel asks
    for is the least."""
    wait_s = min(BACKOFF_S * 2.0 ** min(failures, 20), BACKOFF_S_MAX)
    return max(wait_s * (1 + JITTER * (2 * chance - 1)), asked_for_s or 0.0)
