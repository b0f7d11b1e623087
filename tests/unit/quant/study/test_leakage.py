"""Does a model know the future by heart?"""

from datetime import date, timedelta

import numpy as np
import pytest
from scipy import stats

from libs.quant.study.leakage import (
    CUTOFF_GUARD,
    before_less_after,
    identification,
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
