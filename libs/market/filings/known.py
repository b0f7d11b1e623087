"""When a filing became known: the rule that keeps figures and events out of the past. Pure.

The SEC gives a filing the date of the next business day where it was transmitted after 17:30 in New
York (17 CFR 232.13), and shows it from 06:00 of that day.
"""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from libs.market.calendar import exchange_calendar

NEW_YORK = ZoneInfo("America/New_York")
SAME_DAY_UNTIL = time(17, 30)
SHOWN_FROM = time(6, 0)


def known_at(filed: date, accepted: datetime | None) -> datetime:
    """When what was filed may be known: an aware time, in New York's zone.

    `accepted` (aware) is when the SEC accepted it: known then, or, where that was after 17:30 in
    New York or on no business day, from 06:00 of the next one. Without it only the day is known:
    the close of the session after `filed`, because the filing may have come after `filed`'s close.
    Raises OutsideCalendar for a day outside the New York calendar.
    """
    calendar = exchange_calendar()
    if accepted is None:
        return calendar.close(calendar.next_session(filed)).astimezone(NEW_YORK)
    local = accepted.astimezone(NEW_YORK)
    if local.time() <= SAME_DAY_UNTIL and is_business_day(local.date()):
        return local
    day = calendar.next_session(local.date())
    while not is_business_day(day):
        day = calendar.next_session(day)
    return datetime.combine(day, SHOWN_FROM, tzinfo=NEW_YORK)


def is_business_day(day: date) -> bool:
    """True where the New York exchange trades and the SEC works.

    The exchange trades on two federal holidays. Closed by one count only is closed here, which can
    make a filing known a day late, never early; days off by executive order are not known.
    """
    return exchange_calendar().is_session(day) and day not in (_columbus(day), _veterans(day))


def _columbus(day: date) -> date:
    """The second Monday of October of that year."""
    first = date(day.year, 10, 1)
    return first + timedelta(days=(7 - first.weekday()) % 7 + 7)


def _veterans(day: date) -> date:
    """11 November of that year, or the weekday on which it is kept."""
    holiday = date(day.year, 11, 11)
    kept = {5: timedelta(days=-1), 6: timedelta(days=1)}
    return holiday + kept.get(holiday.weekday(), timedelta())
