"""The moments at which a job runs: what its settings say, on an exchange's sessions. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from libs.market.calendar import ExchangeCalendar
from libs.runtime.when import AtSession, When

AHEAD_DAYS_MAX = 370
"""How far the next slot is looked for: a job may run once a year."""
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, order=True)
class TimeSlot:
    """A moment (aware) at which a job runs, and the session that it is of."""

    at: datetime
    session: date


def slots(
    moments: Sequence[When], calendar: ExchangeCalendar, after: datetime, until: datetime
) -> tuple[TimeSlot, ...]:
    """The slots after one moment, up to and with another, in order and each once.

    Days without a session have none, whatever cron says. A day's are in the exchange's own time.
    """
    if until <= after:
        return ()
    first = after.astimezone(calendar.zone).date() - _DAY
    last = until.astimezone(calendar.zone).date() + _DAY
    days = calendar.sessions(max(first, calendar.first), min(last, calendar.last))
    near = {slot for day in days for slot in _of(moments, calendar, day)}
    return tuple(sorted(slot for slot in near if after < slot.at <= until))


def next_slot(
    moments: Sequence[When], calendar: ExchangeCalendar, after: datetime
) -> TimeSlot | None:
    """The first slot after a moment; None where a year has none, or the calendar ends."""
    day = after.astimezone(calendar.zone).date() - _DAY
    last = min(day + AHEAD_DAYS_MAX * _DAY, calendar.last)
    earliest: TimeSlot | None = None
    while day <= last:
        if calendar.is_session(day):
            later = [slot for slot in _of(moments, calendar, day) if slot.at > after]
            first = min(later, default=None)
            if earliest is not None:
                return min(earliest, first) if first else earliest
            earliest = first
        day += _DAY
    return earliest


def _of(moments: Sequence[When], calendar: ExchangeCalendar, day: date) -> Iterator[TimeSlot]:
    for when in moments:
        if isinstance(when, AtSession):
            edge = calendar.open(day) if when.edge == "open" else calendar.close(day)
            yield TimeSlot(edge + when.offset, day)
        else:
            for moment in when.on(day, calendar.zone):
                yield TimeSlot(moment.astimezone(UTC), day)
