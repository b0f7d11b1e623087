"""Does a model know the future by heart?"""

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
import pytest
from scipy import stats

from benchmarks import leakage
from contracts.probe import Guess
from contracts.study import StudyArm
from contracts.study_score import Estimate, LeakVerdict, NotShown, Probe
from libs.study.statistics.leakage import (
    CUTOFF_GUARD,
    NAMES_WORTH_MAX,
    PROBE_DATES_LEAST,
    before_less_after,
    by_names,
    identification,
    of_provider,
    sides_of_cutoff,
)
from libs.study.statistics.shares import share_interval

TICKERS = ["AAPL", "MSFT", "GOOG", "IBM", "FB"]


def identified(answers: Sequence[str], dates: int = 40) -> Probe:
    """The probe of a model that answered so about each ticker on so many dates."""
    guesses = [
        Guess(ticker=it, guessed=answer) for answer, it in zip(answers, TICKERS, strict=True)
    ]
    return identification(StudyArm(name="one", provider="claude", masked=True), [guesses] * dates)


def test_who_always_names_the_same_identifies_nothing():
    result = identified(["AAPL"] * 5)
    assert (result.hits, result.asked, result.cells) == (40, 200, 40)
    assert result.by_guessing == pytest.approx(0.2, abs=0.01)
    assert result.blind


def test_who_names_the_right_one_is_not_blind():
    result = identified(TICKERS)
    assert (result.hits, result.blind) == (200, False)


def test_a_few_dates_show_neither_and_who_identifies_nothing_needs_more_than_the_least():
    few = identified(["?"] * 5, PROBE_DATES_LEAST - 1)
    assert (few.low, few.high, few.blind) == (None, None, None)
    assert identified(["?"] * 5, PROBE_DATES_LEAST).blind is False
    assert identified(["?"] * 5, 40).blind


def test_the_bound_is_wilsons_of_all_answers_where_those_of_a_date_have_nothing_in_common():
    hits = [1] * 20 + [0] * 20
    low, high = share_interval(hits, [1] * 40)
    plain = stats.binomtest(20, 40).proportion_ci(0.95, method="wilson")
    assert (low, high) == pytest.approx((plain.low, plain.high))


def test_tickers_that_are_recognised_together_count_as_one():
    together = share_interval([5] * 10 + [0] * 30, [5] * 40)
    plain = stats.binomtest(10, 40).proportion_ci(0.95, method="wilson")
    assert together == pytest.approx((plain.low, plain.high))
    apart = share_interval([1] * 40 + [2] * 5, [5] * 45)
    assert apart[1] - apart[0] < together[1] - together[0]


def test_hits_that_come_alone_say_more_than_none_do():
    none, one = share_interval([0] * 40, [5] * 40), share_interval([1] + [0] * 39, [5] * 40)
    assert none == pytest.approx((0.0, 0.0876), abs=1e-3), "as many answers as dates"
    assert one[1] < none[1]


@pytest.mark.slow
@pytest.mark.parametrize("alike", leakage.ALIKE)
@pytest.mark.parametrize("share", [0.05, 0.1, 0.25])
def test_the_bound_holds_the_truth_however_much_a_dates_answers_have_in_common(alike, share):
    random = np.random.default_rng((17, round(100 * share), round(100 * alike)))
    asked_each = [leakage.ASSETS] * PROBE_DATES_LEAST
    spans = [
        share_interval(leakage.recognised(random, PROBE_DATES_LEAST, share, alike), asked_each)
        for _ in range(2_000)
    ]
    assert np.mean([low <= share <= high for low, high in spans]) > 0.92
    assert np.mean([high < share for _, high in spans]) < 0.04


def test_days_right_behind_the_cutoff_count_for_neither_side():
    cutoff = date(2012, 1, 1)
    on = [cutoff, cutoff + timedelta(days=1), cutoff + CUTOFF_GUARD]
    after = cutoff + CUTOFF_GUARD + timedelta(days=1)
    assert sides_of_cutoff([(day, day, 1.0) for day in (*on, after)], cutoff) == ([1.0], [1.0])


def test_a_decision_whose_horizon_crosses_the_cutoff_counts_for_neither_side():
    cutoff, week = date(2012, 1, 1), timedelta(days=7)
    whole, crosses = cutoff - week, cutoff - week + timedelta(days=1)
    dated = [(day, day + week, value) for day, value in ((crosses, 1.0), (whole, 2.0))]
    assert sides_of_cutoff(dated, cutoff) == ([2.0], [])


def test_before_and_after_are_compared_by_welchs_test():
    random = np.random.default_rng(8)
    before, after = random.normal(0.8, 1, 40), random.normal(0, 2, 60)
    ours, theirs = before_less_after(before, after), stats.ttest_ind(before, after, equal_var=False)
    assert (ours.p, ours.freedom) == pytest.approx((theirs.pvalue, theirs.df))


LEAKS, CLEAR, OPEN, NOT_SHOWN = LeakVerdict
FEW = NotShown(why="5 dates, needs 8", dates=5, needed=8)


def gap(low: float, high: float, dates: int = 40) -> Estimate:
    resolved = low > 0 or high < 0
    p = 0.01 if resolved else 0.5
    return Estimate(
        estimate=(low + high) / 2, low=low, high=high, p=p, dates=dates, resolved=resolved
    )


@pytest.mark.parametrize(
    ("hits", "excess", "verdict"),
    [
        (gap(0.01, 0.2), gap(-0.01, 0.01), LEAKS),
        (gap(-0.02, 0.04), gap(0.001, 0.01), LEAKS),
        (gap(-0.02, 0.04), gap(-0.01, 0.01), CLEAR),
        (gap(0.0, 0.0), gap(0.0, 0.0), CLEAR),
        (gap(-0.2, -0.1), gap(-0.02, -0.01), CLEAR),
        (gap(-0.02, NAMES_WORTH_MAX + 0.01), gap(-0.01, 0.01), OPEN),
        (gap(0.0, 0.0, dates=29), gap(0.0, 0.0), OPEN),
        (FEW, FEW, NOT_SHOWN),
    ],
    ids=("hits", "excess", "small", "alike", "names distract", "too wide", "few dates", "none"),
)
def test_names_that_bring_something_are_a_leak_and_too_wide_an_interval_clears_nobody(
    hits, excess, verdict
):
    assert by_names(hits, excess) is verdict


@pytest.mark.parametrize(
    ("foresight", "names", "verdict"),
    [
        ([CLEAR, CLEAR], CLEAR, CLEAR),
        ([CLEAR, CLEAR], LEAKS, LEAKS),
        ([LEAKS, CLEAR], CLEAR, LEAKS),
        ([CLEAR, NOT_SHOWN], CLEAR, NOT_SHOWN),
        ([CLEAR, CLEAR], OPEN, OPEN),
        ([CLEAR], NOT_SHOWN, NOT_SHOWN),
    ],
)
def test_one_look_that_shows_a_leak_is_enough_and_only_both_clear(foresight, names, verdict):
    assert of_provider(foresight, names) is verdict


def test_names_clear_nobody_who_recognises_masked_inputs():
    assert of_provider([CLEAR], CLEAR, blind=False) is NOT_SHOWN
    assert of_provider([CLEAR], CLEAR, blind=True) is CLEAR
    assert of_provider([CLEAR], LEAKS, blind=False) is LEAKS
