"""Which channels a notice goes to, when, and how long a failed channel rests. Pure."""

from datetime import datetime
from fnmatch import fnmatchcase

from contracts.audit import Event, EventType
from contracts.cycle import STUDY_ACCOUNTS
from contracts.notice import Notice, Severity
from libs.runtime.notify_settings import Notify, RuleSettings, next_digest, quiet_until

BACKOFF_S, BACKOFF_S_MAX = 2.0, 300.0
"""The wait after a failure doubles up to the second."""
SLOW_DOWN_S = 60.0
"""The wait where a service asks for fewer messages."""
JITTER = 0.25
"""The part of a wait by which it is shorter or longer, so that channels do not beat in time."""


def due_at(
    notice: Notice, event: Event, channel: str, notify: Notify, now: datetime
) -> datetime | None:
    """When the notice is due to the channel: the earliest time of the rules that name it, `now` at
    the earliest. None where none sends it there.

    Cells of studies are not sent, nor is the failure of a channel to that channel. A sell check
    that nothing is wrong with is the decision's to tell, which follows it.
    """
    if event.type is EventType.EXITS_CHECKED and notice.severity is Severity.INFO:
        return None
    if notice.account is not None and notice.account.startswith(STUDY_ACCOUNTS):
        return None
    if event.type is EventType.NOTICES_GIVEN_UP and event.data.get("channel") == channel:
        return None
    times = [
        _due_at(notice, rule, notify, now)
        for rule in notify.rules_in_force.values()
        if channel in rule.to and fits(notice, rule)
    ]
    return min(times, default=None)


def fits(notice: Notice, rule: RuleSettings) -> bool:
    """Whether a rule is about the notice. What is about no account is about all."""
    names = (notice.kind.value, notice.event)
    return (
        any(fnmatchcase(name, pattern) for pattern in rule.events for name in names)
        and (not rule.accounts or notice.account is None or notice.account in rule.accounts)
        and notice.severity.rank >= rule.severity.rank
    )


def _due_at(notice: Notice, rule: RuleSettings, notify: Notify, now: datetime) -> datetime:
    """The end of the digest that gathers the event, then of the quiet hours that hold that time."""
    at = now
    if rule.digest is not None:
        at = max(now, next_digest(rule.digest, notice.at, notify.zone))
    quiet = notify.quiet_of(rule)
    if quiet is None or notice.severity.rank >= notify.rings.rank:
        return at
    return quiet_until(quiet, at, notify.zone) or at


def backoff_s(failures: int, code: str, chance: float) -> float:
    """How long a channel rests after that many failures in a row, the last one with `code`;
    `chance` is 0 to 1."""
    wait_s = min(BACKOFF_S * 2.0 ** min(max(failures - 1, 0), 20), BACKOFF_S_MAX)
    if code == "http_429":
        wait_s = max(wait_s, SLOW_DOWN_S)
    return wait_s * (1 + JITTER * (2 * chance - 1))
