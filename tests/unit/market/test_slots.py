"""Slots: moments on an exchange's sessions."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.market.calendar import exchange_calendar
from libs.market.slots import TimeSlot, next_slot, slots
from libs.runtime.when import parse

CALENDAR = exchange_calendar()
THANKSGIVING = date(2012, 11, 22)
HALF_DAY = date(2012, 11, 23)
BEGIN = datetime(2012, 1, 1, tzinfo=UTC)


def of_day(text: str, day: date) -> list[str]:
    """The day's slots in New York's time."""
    start = datetime(day.year, day.month, day.day, tzinfo=CALENDAR.zone)
    found = slots([parse(text)], CALENDAR, start, start + timedelta(days=1, seconds=-1))
    return [f"{slot.at.astimezone(CALENDAR.zone):%H:%M}" for slot in found]


@pytest.mark.parametrize("text", ["close+30m", "0 12 * * *", "open", "* * * * *"])
def test_a_holiday_and_a_week_end_have_no_slots(text: str) -> None:
    assert of_day(text, THANKSGIVING) == []
    assert of_day(text, date(2012, 11, 24)) == []
    assert of_day(text, date(2012, 11, 21)) != []


def test_what_hangs_on_the_close_follows_a_half_day_and_cron_does_not() -> None:
    assert of_day("close+30m", date(2012, 11, 21)) == ["16:30"]
    assert of_day("close+30m", HALF_DAY) == ["13:30"]
    assert of_day("30 16 * * *", HALF_DAY) == ["16:30"]


def test_before_and_after_a_change_of_the_clocks_it_is_the_same_time_in_new_york() -> None:
    before, after = date(2012, 3, 9), date(2012, 3, 12)
    found = slots(
        [parse("30 16 * * *"), parse("open")],
        CALENDAR,
        datetime(2012, 3, 9, tzinfo=UTC),
        datetime(2012, 3, 13, tzinfo=UTC),
    )

    assert found == (
        TimeSlot(datetime(2012, 3, 9, 14, 30, tzinfo=UTC), before),
        TimeSlot(datetime(2012, 3, 9, 21, 30, tzinfo=UTC), before),
        TimeSlot(datetime(2012, 3, 12, 13, 30, tzinfo=UTC), after),
        TimeSlot(datetime(2012, 3, 12, 20, 30, tzinfo=UTC), after),
    )


def test_a_slot_that_falls_on_the_next_day_is_still_its_session_s() -> None:
    (slot,) = slots(
        [parse("close+12h")],
        CALENDAR,
        datetime(2012, 6, 30, 4, tzinfo=UTC),
        datetime(2012, 6, 30, 12, tzinfo=UTC),
    )

    assert (slot.session, f"{slot.at.astimezone(CALENDAR.zone):%d %H:%M}") == (
        date(2012, 6, 29),
        "30 04:00",
    )


def test_two_moments_that_fall_together_are_one_slot() -> None:
    assert len(slots([parse("close"), parse("0 16 * * *")], CALENDAR, BEGIN, BEGIN)) == 0
    day = datetime(2012, 6, 29, tzinfo=UTC)
    both = [parse("close"), parse("0 16 * * *")]
    assert len(slots(both, CALENDAR, day, day + timedelta(days=1))) == 1


MOMENTS = st.lists(
    st.sampled_from(["open-12h", "open", "0 11,15 * * *", "close-5m", "close+30m", "close+12h"]),
    min_size=1,
    max_size=3,
)


@given(MOMENTS, st.integers(0, 60 * 24 * 20), st.integers(0, 60 * 24 * 20))
def test_looking_twice_finds_what_looking_once_finds(
    texts: list[str], first: int, second: int
) -> None:
    moments = [parse(text) for text in texts]
    middle = BEGIN + timedelta(minutes=first)
    end = middle + timedelta(minutes=second)

    whole = slots(moments, CALENDAR, BEGIN, end)
    parts = (*slots(moments, CALENDAR, BEGIN, middle), *slots(moments, CALENDAR, middle, end))
    assert parts == whole
    following = next_slot(moments, CALENDAR, middle)
    later = [slot for slot in whole if slot.at > middle]
    assert following is not None
    assert following == later[0] if later else following.at > end


def test_a_moment_that_no_session_of_the_year_has_comes_never() -> None:
    assert next_slot([parse("0 12 25 12 *")], CALENDAR, BEGIN) is None
    assert next_slot([parse("0 12 24 12 *")], CALENDAR, BEGIN) is not None
