"""A mean over dates: its interval holds, also at few dates and with horizons that overlap."""

import numpy as np
import pytest
from scipy import stats

from libs.study.statistics.means import (
    LEVEL,
    POWER,
    Mean,
    TooFewDates,
    dates_least,
    mean_over_dates,
    smallest_difference,
)

STUDIES = 2_000
NOISE = 3 * (0.05 * 0.95 / STUDIES) ** 0.5


def studies(dates: int, overlap: int, shift: float = 0.0) -> list[Mean]:
    """Many studies of values that are sums over `overlap` dates, around `shift`."""
    random = np.random.default_rng(23)
    found = []
    for _ in range(STUDIES):
        shocks = random.normal(size=dates + overlap - 1)
        values = np.convolve(shocks, np.ones(overlap), "valid") / overlap**0.5
        found.append(mean_over_dates(values + shift, overlap))
    return found


def test_without_overlap_it_is_students_test():
    values = np.random.default_rng(1).normal(0.2, 1, 40)
    ours, theirs = mean_over_dates(values), stats.ttest_1samp(values, 0)
    interval = theirs.confidence_interval(1 - LEVEL)
    assert (ours.p, ours.low, ours.high) == pytest.approx(
        (theirs.pvalue, interval.low, interval.high)
    )


@pytest.mark.parametrize(("dates", "overlap"), [(8, 1), (60, 1), (36, 2), (120, 5)])
def test_no_effect_is_seen_in_five_of_a_hundred_studies(dates: int, overlap: int):
    alarms = np.mean([mean.resolved for mean in studies(dates, overlap)])
    assert alarms == pytest.approx(LEVEL, abs=NOISE + 0.006)


@pytest.mark.parametrize(("dates", "overlap"), [(20, 1), (120, 1), (250, 5)])
def test_the_difference_that_a_plan_names_is_seen_as_often_as_it_says(dates: int, overlap: int):
    shift = smallest_difference(dates, overlap**0.5, overlap)
    seen = np.mean([mean.resolved for mean in studies(dates, overlap, shift)])
    assert seen == pytest.approx(POWER, abs=0.05)


def test_too_few_dates_are_refused_with_the_number_that_is_needed():
    for overlap in (1, 2, 20):
        mean_over_dates(np.arange(float(dates_least(overlap))), overlap)
        with pytest.raises(TooFewDates, match=str(dates_least(overlap))):
            mean_over_dates(np.arange(float(dates_least(overlap) - 1)), overlap)


def test_it_says_how_many_dates_would_show_a_true_difference_of_its_size():
    values = np.random.default_rng(2).normal(0.1, 1, 100)
    mean = mean_over_dates(values)
    exact = ((1.96 + 0.8416) * values.std(ddof=1) / mean.estimate) ** 2
    assert mean.needed == pytest.approx(exact, rel=0.03)


def test_dates_that_are_all_alike_leave_no_doubt():
    assert mean_over_dates([0.0] * 10).p == 1.0
    assert not mean_over_dates([0.0] * 10).resolved
    assert mean_over_dates([0.1] * 10).resolved
