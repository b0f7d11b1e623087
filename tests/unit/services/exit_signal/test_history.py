"""Months and peaks, from daily closes."""

from datetime import date

import pytest

from libs.market.calendar import exchange_calendar
from libs.quant.exits.history import (
    BASKET_SESSIONS_MIN,
    MONTHS,
    SESSIONS_MIN,
    history_of,
    last_complete,
)
from libs.quant.exits.rules import MONTHS_BEFORE

CALENDAR = exchange_calendar()
ENDS = {
    date(2012, 1, 31): 100.0,
    date(2012, 2, 29): 110.0,
    date(2012, 3, 30): 99.0,
    date(2012, 4, 30): 108.9,
    date(2012, 5, 31): 98.01,
}


@pytest.mark.parametrize(
    ("as_of", "month"),
    [
        (date(2012, 6, 29), (2012, 6)),  # its last session
        (date(2012, 6, 28), (2012, 5)),
        (date(2012, 7, 2), (2012, 6)),
        (date(2012, 1, 3), (2011, 12)),
        (date(2011, 12, 30), (2011, 12)),
    ],
)
def test_a_month_is_complete_at_its_last_sessions_close(
    as_of: date, month: tuple[int, int]
) -> None:
    assert last_complete(as_of, CALENDAR.next_session(as_of)) == month


def test_returns_go_from_month_end_to_month_end() -> None:
    days = [*ENDS, date(2012, 6, 1)]
    found = history_of(days, [*ENDS.values(), 50.0], (2012, 5))

    assert found.months[-4:] == pytest.approx((0.1, -0.1, 0.1, -0.1))
    assert found.close == 50.0  # the month that has begun counts nowhere else


def test_closes_within_a_month_do_not_count_but_its_last() -> None:
    days = sorted([*ENDS, date(2012, 5, 15)])
    found = history_of(days, [ENDS.get(day, 1.0) for day in days], (2012, 5))

    assert found.months[-4:] == pytest.approx((0.1, -0.1, 0.1, -0.1))


def test_a_month_without_closes_leaves_it_and_the_next_one_unknown() -> None:
    days = [day for day in ENDS if day.month != 3]
    found = history_of(days, [ENDS[day] for day in days], (2012, 5))

    assert found.months[-4:] == (pytest.approx(0.1), None, None, pytest.approx(-0.1))


def test_a_short_history_has_unknown_months_first() -> None:
    days = list(ENDS)[-2:]
    found = history_of(days, [ENDS[day] for day in days], (2012, 5))

    assert found.months == (*[None] * 12, pytest.approx(-0.1))


def test_the_peak_is_of_the_time_since_the_position_was_opened() -> None:
    found = history_of(list(ENDS), list(ENDS.values()), (2012, 5), date(2012, 3, 30))
    assert found.peak == 108.9
    assert history_of(list(ENDS), list(ENDS.values()), (2012, 5)).peak is None


def test_the_sessions_that_are_read_always_hold_all_months() -> None:
    for year in range(2000, 2014):
        for month in range(1, 13):
            last = CALENDAR.previous_session(date(year + month // 12, month % 12 + 1, 1))
            sessions = CALENDAR.sessions(date(year - 2, 1, 1), CALENDAR.previous_session(last))
            for count, months in ((SESSIONS_MIN, MONTHS), (BASKET_SESSIONS_MIN, MONTHS_BEFORE)):
                read = sessions[-count:]
                assert len({(day.year, day.month) for day in read}) >= months + 2
