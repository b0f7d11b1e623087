"""A source's Date header against this machine's clock."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from libs.market.asking.their_clock import AHEAD_S_MAX, ahead

THEIRS = datetime(2012, 6, 29, 19, 0, tzinfo=UTC)
DATE = format_datetime(THEIRS, usegmt=True)


@pytest.mark.parametrize("by", [timedelta(hours=1), timedelta(days=1)])
def test_a_machine_that_is_ahead_of_the_source_is_told_by_how_much(by: timedelta) -> None:
    why = ahead(DATE, None, THEIRS + by)
    assert why is not None
    assert f"{by.total_seconds():.0f} s ahead" in why


@pytest.mark.parametrize(
    "by", [timedelta(0), timedelta(seconds=AHEAD_S_MAX), timedelta(hours=-1), timedelta(days=-1)]
)
def test_a_machine_that_is_right_or_behind_decides_on_nothing_too_early(by: timedelta) -> None:
    assert ahead(DATE, None, THEIRS + by) is None


def test_the_time_that_an_answer_lay_in_a_cache_is_not_the_machines() -> None:
    assert ahead(DATE, "3600", THEIRS + timedelta(hours=1)) is None
    assert ahead(DATE, "3600", THEIRS + timedelta(hours=3)) is not None


@pytest.mark.parametrize("date", [None, "", "yesterday", "0", "Fri, 99 Jun 2012 19:00:00 GMT"])
@pytest.mark.parametrize("age", [None, "", "-5", "1e9", "9" * 400, "\u0663"])
def test_a_source_that_does_not_say_what_time_it_is_is_believed(
    date: str | None, age: str | None
) -> None:
    assert ahead(date, age, THEIRS) is None
    ahead(DATE, age, THEIRS)
