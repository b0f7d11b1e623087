from datetime import date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.market.calendar import OutsideCalendar, exchange_calendar
from libs.market.filings.known import NEW_YORK, SAME_DAY_UNTIL, is_business_day, known_at


def new_york(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=NEW_YORK)


@pytest.mark.parametrize(
    ("accepted", "known"),
    [
        pytest.param("2010-05-05 15:26", "2010-05-05 15:26", id="before the close"),
        pytest.param("2010-01-25 16:26", "2010-01-25 16:26", id="after the close"),
        pytest.param("2010-02-12 17:30", "2010-02-12 17:30", id="at the last minute"),
        pytest.param("2010-02-12 17:30:01", "2010-02-16 06:00", id="over a long weekend"),
        pytest.param("2009-10-09 18:00", "2009-10-13 06:00", id="over Columbus Day"),
        pytest.param("2009-11-10 18:00", "2009-11-12 06:00", id="over Veterans Day"),
        pytest.param("2017-11-09 18:00", "2017-11-13 06:00", id="Veterans Day kept on a Friday"),
        pytest.param("2012-11-09 18:00", "2012-11-13 06:00", id="Veterans Day kept on a Monday"),
        pytest.param("2010-05-08 10:00", "2010-05-10 06:00", id="on a Saturday"),
    ],
)
def test_a_filing_is_known_when_accepted_or_from_six_on_the_next_business_day(
    accepted: str, known: str
) -> None:
    at = new_york(accepted)

    assert known_at(at.date(), at) == new_york(known)


def test_without_an_acceptance_time_it_is_known_at_the_close_of_the_session_after() -> None:
    assert known_at(date(2009, 10, 27), None) == new_york("2009-10-28 16:00")
    assert known_at(date(2009, 11, 26), None) == new_york("2009-11-27 13:00")


def test_a_day_outside_the_calendar_is_refused() -> None:
    with pytest.raises(OutsideCalendar):
        known_at(date(1980, 1, 2), None)


@given(
    st.dates(date(1995, 1, 1), date(2029, 12, 1)),
    st.times(time(0, 0), time(23, 59)),
)
def test_no_filing_is_known_before_it_was_accepted(day: date, at: time) -> None:
    accepted = datetime.combine(day, at, tzinfo=NEW_YORK)

    known = known_at(day, accepted)

    assert known >= accepted
    assert known.time() <= SAME_DAY_UNTIL
    assert is_business_day(known.date())
    assert known - accepted < timedelta(days=6)


@given(st.dates(date(1995, 1, 1), date(2029, 12, 1)), st.times())
def test_not_knowing_the_time_never_makes_a_business_days_filing_known_earlier(
    day: date, at: time
) -> None:
    day = exchange_calendar().session_on_or_after(day)
    accepted = datetime.combine(day, min(at, SAME_DAY_UNTIL), tzinfo=NEW_YORK)

    if is_business_day(day):
        assert known_at(day, None) > known_at(day, accepted)
