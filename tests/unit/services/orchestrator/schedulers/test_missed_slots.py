"""What becomes of slots that nobody looked at in time."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from libs.market.slots import TimeSlot
from libs.runtime.schedule_settings import Job
from services.orchestrator.schedulers.missed_slots import LATE_AFTER, Planned, planned

NOW = datetime(2012, 6, 29, 20, 30, tzinfo=UTC)
ON_TIME = TimeSlot(NOW, date(2012, 6, 29))
LATE = [TimeSlot(NOW - timedelta(days=n), NOW.date() - timedelta(days=n)) for n in (4, 3, 2, 1)]


def job(missed: str, missed_max: int = 10) -> Job:
    return Job.model_validate(
        {"kind": "decision", "when": "close", "missed": missed, "missed_max": missed_max}
    )


def told(plans: Sequence[Planned]) -> list[tuple[int, str, bool, int]]:
    """Days ago, outcome, late, missed before."""
    return [((NOW - p.slot.at).days, p.outcome, p.late, p.missed) for p in plans]


@pytest.mark.parametrize("missed", ["once", "all", "skip"])
def test_a_slot_on_time_runs_whatever_is_set(missed: str) -> None:
    assert told(planned([ON_TIME], NOW, job(missed))) == [(0, "due", False, 0)]
    assert planned([], NOW, job(missed)) == []


def test_once_runs_the_newest_of_the_missed_ones_and_counts_the_others() -> None:
    assert told(planned(LATE, NOW, job("once"))) == [(1, "due", True, 3)]


def test_once_runs_none_of_the_missed_ones_where_one_is_on_time() -> None:
    assert told(planned([*LATE, ON_TIME], NOW, job("once"))) == [(0, "due", False, 4)]


def test_all_runs_them_in_order_and_no_more_than_are_allowed() -> None:
    assert told(planned([*LATE, ON_TIME], NOW, job("all", 2))) == [
        (2, "due", True, 2),
        (1, "due", True, 0),
        (0, "due", False, 0),
    ]
    assert len(planned([*LATE, ON_TIME], NOW, job("all"))) == 5


def test_skip_runs_none_and_leaves_one_row_that_says_so() -> None:
    assert told(planned(LATE, NOW, job("skip"))) == [(1, "skipped", True, 3)]
    assert told(planned([*LATE, ON_TIME], NOW, job("skip"))) == [(0, "due", False, 4)]


def test_a_slot_is_late_only_after_a_while() -> None:
    just = TimeSlot(NOW - LATE_AFTER, NOW.date())
    later = TimeSlot(NOW - LATE_AFTER - timedelta(seconds=1), NOW.date())

    assert not planned([just], NOW, job("once"))[0].late
    assert planned([later], NOW, job("once"))[0].late
