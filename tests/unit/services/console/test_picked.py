"""Which of many sessions a chart shows."""

from services.console.logic import picked

WEEK = [2, 3, 4, 5, 6]


def test_days_are_picked_evenly_with_both_ends() -> None:
    assert picked(WEEK, 9) == WEEK
    assert picked(WEEK, 3) == [WEEK[0], WEEK[2], WEEK[4]]
    assert picked(WEEK, 1) == [WEEK[4]]
    assert picked([], 3) == []
