"""The deflated Sharpe ratio: the more was tried, the less one good result says."""

from math import sqrt

import numpy as np
import pytest

from libs.quant.skill import deflated_sharpe, expected_best, probabilistic_sharpe

RNG = np.random.default_rng(4)
GOOD = RNG.normal(0.0008, 0.01, 1_250)


def test_the_example_of_the_paper():
    """Bailey and Lopez de Prado 2014, "A numerical example": 100 trials, five years of days."""
    luck = expected_best(variance=1 / (2 * 250), trials=100)
    assert luck == pytest.approx(0.1132, abs=5e-5)
    found = probabilistic_sharpe(2.5 / sqrt(250), luck, 1_250, skewness=-3, kurtosis=10)
    assert found == pytest.approx(0.9004, abs=5e-5)


def test_the_best_of_many_without_skill_is_as_good_as_expected():
    ratios = RNG.normal(0, 0.05, (4_000, 100)).max(axis=1)
    assert expected_best(0.05**2, 100) == pytest.approx(ratios.mean(), rel=0.02)


def test_one_trial_is_held_against_zero():
    found = deflated_sharpe(GOOD, [1.0], trials=1)
    assert found == pytest.approx(deflated_sharpe(GOOD, [], trials=1))
    assert found > 0.95


def test_every_strategy_tried_takes_some_of_it():
    tried = list(RNG.normal(0, 1, 200))
    found = [deflated_sharpe(GOOD, tried[:count], count) for count in (2, 20, 200)]
    assert found == sorted(found, reverse=True)
    assert deflated_sharpe(GOOD, tried[:20], 200) < found[1], "those without a ratio count too"


def test_losses_have_next_to_no_probability():
    assert deflated_sharpe(-GOOD, [0.0, 1.0], 2) < 0.05


@pytest.mark.parametrize("returns", [np.zeros(50), np.full(50, 0.01), np.array([0.1, 0.2])])
def test_returns_that_do_not_vary_have_none(returns: np.ndarray):
    assert deflated_sharpe(returns, [1.0], 1) is None
