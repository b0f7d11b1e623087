"""The line of time: work to scale, long waits folded, ticks where there is room."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from services.console.pages.trace.axis import (
    FOLD_WIDTH,
    FOLDS_MAX,
    TICK_GAP,
    WIDTH,
    Axis,
    axis_of,
)

START = datetime(2026, 3, 5, 14, 0, tzinfo=UTC)
HOUR = 3600.0


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def line(end: float, *work: tuple[float, float]) -> Axis:
    return axis_of(START, at(end), [(at(first), at(last)) for first, last in work])


def test_work_without_long_waits_lies_on_one_scale() -> None:
    axis = line(10, (0, 4), (5, 10))
    assert (axis.folds, axis.x(at(5))) == ([], 500)
    assert [(tick.x, tick.label) for tick in axis.ticks][:3] == [
        (0, "0"),
        (200, "2 s"),
        (400, "4 s"),
    ]


def test_a_wait_of_hours_takes_little_and_the_work_around_it_the_rest() -> None:
    axis = line(2 * HOUR + 4, (0, 3), (2 * HOUR + 3, 2 * HOUR + 4))
    (fold,) = axis.folds
    assert (fold.width, fold.label) == (FOLD_WIDTH, "2 h 00 min")
    assert fold.x == (WIDTH - FOLD_WIDTH) * 3 / 4
    after = axis.bar(at(2 * HOUR + 3), at(2 * HOUR + 4), 4)
    assert after.width == (WIDTH - FOLD_WIDTH) / 4
    # Its time is counted from the wait on: two hours and a second is no number to read.
    assert next(tick.label for tick in axis.ticks if tick.x > fold.x) == "+0"


def test_what_still_waits_reaches_to_the_end_of_the_line() -> None:
    axis = line(3 * HOUR, (0, 1))
    assert axis.folds[0].x + FOLD_WIDTH == WIDTH
    assert axis.x(at(3 * HOUR)) == WIDTH
    assert axis.x(at(9 * HOUR)) == WIDTH


def test_a_wait_that_is_not_longer_than_the_work_stays_to_scale() -> None:
    assert line(10, (0, 4), (9, 10)).folds == []
    assert line(0.9, (0, 0.01), (0.89, 0.9)).folds == []


def test_no_more_than_so_many_waits_are_folded_the_longest_first() -> None:
    starts = [hours**2 * HOUR for hours in range(FOLDS_MAX + 3)]
    axis = line(starts[-1] + 1, *((start, start + 1) for start in starts))
    assert [round(fold.seconds / HOUR) for fold in axis.folds] == [5, 7, 9, 11, 13]
    assert sum(piece.width for piece in axis.pieces) == pytest.approx(WIDTH)


def test_waits_of_one_length_are_all_folded() -> None:
    axis = line(2 * HOUR + 3, (0, 1), (HOUR + 1, HOUR + 2), (2 * HOUR + 2, 2 * HOUR + 3))
    assert [round(fold.seconds) for fold in axis.folds] == [3600, 3600]


def test_ticks_are_never_written_over_one_another() -> None:
    for seconds in (0.004, 0.4, 9, 61, 700, 9_000, 400_000, 9_000_000):
        ticks = line(seconds, (0, seconds)).ticks
        gaps = [b.x - a.x for a, b in itertools.pairwise(ticks)]
        assert ticks[0].label == "0"
        assert all(gap >= TICK_GAP for gap in gaps), (seconds, ticks)
        assert len(ticks) >= 3, (seconds, ticks)


def test_a_cycle_of_no_time_has_a_line_too() -> None:
    axis = axis_of(START, START, [])
    assert axis.bar(START, START, 4).width == 4
    assert [piece.width for piece in axis.pieces] == [WIDTH]
