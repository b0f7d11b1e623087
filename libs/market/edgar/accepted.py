"""When a filing was accepted, out of the time that EDGAR's JSON says. Pure.

`acceptanceDateTime` ends with a Z ("2025-05-01T16:21:59.000Z") and is not always UTC: for many
companies it is UTC, for others the New York clock with a Z behind it (edgartools issue 557 shows
one of each; a public measurement of 64,936 filings found 624 companies of the one sort, 181 of the
other and 3 mixed). Nothing in the text tells which, and to take New York's clock for UTC would be
to know a filing four or five hours before it was there.

So a company's times are read as UTC only where its own record proves it, and else as New York's:
the later of the two. The proof is in EDGAR's rules: filings are accepted from 06:00 to 22:00 in New
York on working days; what comes after 17:30 is dated the next business day (17 CFR 232.13). A time
that keeps these rules in one reading only is evidence for that reading.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo
from zoneinfo import ZoneInfo

NEW_YORK = ZoneInfo("America/New_York")
OPENS = time(6, 0)
CLOSES = time(22, 30)
"""EDGAR's own 22:00, and half an hour in which it may finish what it was sent before."""
NEXT_DAY_AFTER = time(17, 30)
SAME_DAY_UNTIL = time(17, 45)
"""What was sent by 17:30 keeps its date, if it is accepted some minutes later."""
SATURDAY = 5


@dataclass(frozen=True, slots=True)
class FilingTime:
    """A filing's time as EDGAR's JSON says it, and the day that it was dated."""

    text: str
    filed: date


def accepted_at(stamps: Sequence[FilingTime]) -> tuple[datetime | None, ...]:
    """The moments in UTC, in the order of one company's stamps; None where one cannot be read."""
    clocks = [_clock(stamp.text) for stamp in stamps]
    readings = [
        _reading(clock, stamp.filed) if clock is not None else None
        for clock, stamp in zip(clocks, stamps, strict=True)
    ]
    in_utc = UTC in readings and NEW_YORK not in readings
    return tuple(
        None if clock is None else _moment(clock, stamp.filed, in_utc=in_utc)
        for clock, stamp in zip(clocks, stamps, strict=True)
    )


def _moment(clock: datetime, filed: date, *, in_utc: bool) -> datetime:
    as_utc = clock.replace(tzinfo=UTC)
    if in_utc and _keeps_rules(as_utc.astimezone(NEW_YORK), filed):
        return as_utc
    return clock.replace(tzinfo=NEW_YORK).astimezone(UTC)


def _clock(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def _reading(clock: datetime, filed: date) -> tzinfo | None:
    """The one reading that keeps EDGAR's rules; None where both do, or neither."""
    as_utc = _keeps_rules(clock.replace(tzinfo=UTC).astimezone(NEW_YORK), filed)
    as_new_york = _keeps_rules(clock, filed)
    if as_utc == as_new_york:
        return None
    return UTC if as_utc else NEW_YORK


def _keeps_rules(local: datetime, filed: date) -> bool:
    day, at = local.date(), local.time()
    if not OPENS <= at <= CLOSES or day.weekday() >= SATURDAY:
        return False
    if at <= NEXT_DAY_AFTER:
        return filed == day
    return filed >= day if at <= SAME_DAY_UNTIL else filed > day
