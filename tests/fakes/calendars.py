"""The sessions of a calendar compared with those of exchange_calendars."""

from datetime import timedelta

import pytest

from libs.market.calendar import ExchangeCalendar, OutsideCalendar


def works(calendar: ExchangeCalendar) -> None:
    """Assert that each session, its open and its close are the library's own, and that the days
    outside are refused."""
    import exchange_calendars  # noqa: PLC0415 - slow, and only wanted here

    name, first, last = calendar.exchange, calendar.first, calendar.last
    source = exchange_calendars.get_calendar(name, start=first.isoformat(), end=last.isoformat())
    days = tuple(source.closes.index.date)
    assert len(days) > 1_000, name
    assert calendar.sessions(first, last) == days, name
    for day, opens, closes in zip(days, source.opens, source.closes, strict=True):
        moments = (calendar.open(day), calendar.close(day))
        assert moments == (opens.to_pydatetime(), closes.to_pydatetime()), (name, day)
        assert moments[1].astimezone(calendar.zone).date() == day, (name, day)
    assert calendar.last_closed(calendar.close(days[5])) == days[5], name
    assert (calendar.next_session(days[5]), calendar.previous_session(days[6])) == days[6:4:-1]
    for outside in (first - timedelta(days=1), last + timedelta(days=1)):
        with pytest.raises(OutsideCalendar, match=f"lies outside the {name} calendar"):
            calendar.close(outside)
    with pytest.raises(OutsideCalendar, match="use a date inside it"):
        calendar.next_session(last)
