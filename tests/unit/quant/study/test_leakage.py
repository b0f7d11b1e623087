"""Does a model know the future by heart?"""

from datetime import date, timedelta

import numpy as np
import pytest
from scipy import stats

from contracts.study_score import Estimate, LeakVerdict, NotShown
from libs.quant.study.leakage import (
    CUTOFF_GUARD,
    NAMES_WORTH_MAX,
    before_less_after,
    by_names,
    identification,
    of_provider,
    sides_of_cutoff,
)

TICKERS = ["AAPL", "MSFT", "GOOG", "IBM", "FB"]
TRUTHS = TICKERS * 40


def test_who_always_names_the_same_identifies_nothing():
    result = identification(["AAPL"] * len(TRUTHS), TRUTHS)
    assert result.hits == 40
    assert result.by_guessing == pytest.approx(0.2, abs=0.01)
    assert result.blind


def test_who_names_the_right_one_is_not_blind():
    result = identification(TRUTHS, TRUTHS)
    assert (result.hits, result.blind) == (200, False)


def test_a_few_inputs_are_not_enough_to_be_called_blind():
    assert not identification(["?"] * 20, TRUTHS[:20]).blind
    assert identification(["?"] * 200, TRUTHS).blind


def test_days_right_behind_the_cutoff_count_for_neither_side():
    cutoff = date(2012, 1, 1)
    on = [cutoff, cutoff + timedelta(days=1), cutoff + CUTOFF_GUARD]
    after = cutoff + CUTOFF_GUARD + timedelta(days=1)
    assert sides_of_cutoff([(day, 1.0) for day in (*on, after)], cutoff) == ([1.0], [1.0])


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
