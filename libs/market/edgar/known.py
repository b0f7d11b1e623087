"""TEMPORARY until libs.market.filings has it: when a filing may be known."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from libs.market.calendar import ExchangeCalendar

_NY = ZoneInfo("America/New_York")


def known_at(accepted: datetime | None, filed: date, calendar: ExchangeCalendar) -> datetime:
    if accepted is None:
        return calendar.close(calendar.next_session(filed))
    local = accepted.astimezone(_NY)
    if local.time() <= time(17, 30):
        return accepted
    day = local.date() + timedelta(days=1)
    while day.weekday() > 4:
        day += timedelta(days=1)
    return datetime.combine(day, time(6), tzinfo=_NY).astimezone(UTC)
