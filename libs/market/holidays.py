"""Names of holidays, for a sentence about a bar that should not be there."""

from datetime import date

from libs.market.calendar import SAME_SESSIONS, ExchangeCalendar


def holiday_name(calendar: ExchangeCalendar, day: date) -> str:
    """The holiday on which the exchange is closed, as exchange_calendars names it; "" where it has
    no name for it, as for a day of mourning. Slow: it imports pandas."""
    import exchange_calendars  # noqa: PLC0415 - 3 s and 45 MB, only for a file with a fault
    import pandas as pd  # noqa: PLC0415

    source = exchange_calendars.get_calendar(
        SAME_SESSIONS.get(calendar.exchange, calendar.exchange)
    )
    rules = source.regular_holidays
    if rules is None:
        return ""
    moment = pd.Timestamp(day)
    named = rules.holidays(moment, moment, return_name=True)
    return str(named.iloc[0]) if len(named) else ""
