"""The deflated Sharpe ratio: the more was tried, the less one good result says."""

from math import inf, sqrt

import numpy as np
import pytest

from contracts.strategy_cycle import Trials
from libs.quant.strategy.skill import (
    deflated_sharpe,
    expected_best,
    probabilistic_sharpe,
    sharpes_differ,
    track_record_least,
)

RNG = np.random.default_rng(4)
GOOD = RNG.normal(0.0008, 0.01, 1_250)


def test_the_example_of_the_paper():
    """Bailey and Lopez de Prado 2014, "A numerical example": 100 trials, five years of days."""
    luck = expected_best(variance=1 / (2 * 250), trials=100)
    assert luck == pytest.approx(0.1132, abs=5e-5)
    found = probabilistic_sharpe(2.5 / sqrt(250), luck, 1_250, skewness=-3, kurtosis=10)
    assert found == pytest.approx(0.9004, abs=5e-5)


def test_the_least_track_record_is_where_the_ratio_is_shown():
    """One and the same formula, solved for the sessions."""
    least = track_record_least(0.1, 0.02, skewness=-1, kurtosis=6)
    assert probabilistic_sharpe(0.1, 0.02, round(least), -1, 6) == pytest.approx(0.95, abs=1e-3)
    assert track_record_least(0.02, 0.02, 0, 3) == inf


def test_the_best_of_many_without_skill_is_as_good_as_expected():
    ratios = RNG.normal(0, 0.05, (4_000, 100)).max(axis=1)
    assert expected_best(0.05**2, 100) == pytest.approx(ratios.mean(), rel=0.02)


def others(ratios: list[float], count: int | None = None) -> Trials:
    """Other strategies with these yearly ratios, and some without one up to `count`."""
    return Trials(
        count=len(ratios) if count is None else count,
        with_ratio=len(ratios),
        ratio_mean=float(np.mean(ratios)) if ratios else 0.0,
        ratio_variance=float(np.var(ratios, ddof=1)) if len(ratios) > 1 else 0.0,
    )


def test_the_first_strategy_is_held_against_zero():
    found = deflated_sharpe(GOOD, Trials())
    sharpe = GOOD.mean() / GOOD.std(ddof=1)
    assert found == pytest.approx(probabilistic_sharpe(sharpe, 0.0, len(GOOD), 0, 3), abs=0.01)
    assert found > 0.95


def test_every_strategy_tried_takes_some_of_it():
    tried = list(RNG.normal(0, 1, 200))
    found = [deflated_sharpe(GOOD, others(tried[:count])) for count in (0, 1, 20, 199)]
    assert found == sorted(found, reverse=True)
    without_ratio = deflated_sharpe(GOOD, others(tried[:20], 199))
    assert without_ratio < found[2], "those without a ratio count too"


def test_a_second_trial_that_did_as_well_takes_some_of_it_too():
    own = float(GOOD.mean() / GOOD.std(ddof=1)) * sqrt(252)
    first = deflated_sharpe(GOOD, Trials())
    for count in (1, 2, 5):
        assert deflated_sharpe(GOOD, others([own] * count)) < first - 0.01


def test_the_variance_is_that_of_all_ratios_beside_ten_without_skill():
    tried = [0.3, -0.8, 1.1]
    own = float(GOOD.mean() / GOOD.std(ddof=1)) * sqrt(252)
    variance = float(np.var([*tried, own], ddof=1)) / 252
    variance = (variance * len(tried) + 10 / len(GOOD)) / (len(tried) + 10)
    returns = (GOOD - GOOD.mean()) / GOOD.std()
    expected = probabilistic_sharpe(
        own / sqrt(252),
        expected_best(variance, 4),
        len(GOOD),
        float((returns**3).mean()),
        float((returns**4).mean()),
    )
    assert deflated_sharpe(GOOD, others(tried)) == pytest.approx(expected)


def test_designs_that_never_came_to_a_ratio_raise_the_bar_as_if_they_had_no_skill():
    found = [deflated_sharpe(GOOD, others([], count)) for count in (0, 1, 10, 100)]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 4


def test_losses_have_next_to_no_probability():
    assert deflated_sharpe(-GOOD, others([0.0])) < 0.05


@pytest.mark.parametrize("returns", [np.zeros(50), np.full(50, 0.01), np.array([0.1, 0.2])])
def test_returns_that_do_not_vary_have_none(returns: np.ndarray):
    assert deflated_sharpe(returns, Trials()) is None


def test_two_ratios_differ_only_where_the_sessions_can_tell_them_apart():
    """After two years a ratio is known to within 1.4 (95%): the root of 1/T, a year."""
    assert not sharpes_differ(1.3, 0.9, sessions=504)
    assert sharpes_differ(3.2, 0.9, sessions=504)
    assert sharpes_differ(1.3, 0.9, sessions=25_200)
    assert not sharpes_differ(9.0, -9.0, sessions=2)
