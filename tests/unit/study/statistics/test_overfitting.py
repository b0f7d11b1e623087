"""Was the best configuration the best by luck?"""

import numpy as np
import pytest

from contracts.study_score import NotShown
from libs.study.statistics.overfitting import overfitting


@pytest.fixture
def random() -> np.random.Generator:
    """The same numbers for each test, whichever ran before it."""
    return np.random.default_rng(11)


@pytest.mark.slow
def test_the_best_of_many_without_skill_is_the_best_by_luck(random):
    luck = [overfitting(random.normal(size=(320, 20))).probability for _ in range(30)]
    assert np.mean(luck) == pytest.approx(0.5, abs=0.12)


def test_one_that_is_really_better_is_not(random):
    returns = random.normal(size=(1_000, 50))
    returns[:, 7] += 0.3
    assert overfitting(returns).probability < 0.01


def test_configurations_that_are_all_alike_are_neither(random):
    returns = np.repeat(random.normal(size=(320, 1)), 5, axis=1)
    # Of 12,870 splits one or two fall to either side by rounding.
    assert overfitting(returns).probability == pytest.approx(0.5, abs=0.001)


def test_every_split_of_sixteen_blocks_is_tried(random):
    assert overfitting(random.normal(size=(50, 2))).splits == 12_870


def test_too_few_sessions_or_configurations_are_refused():
    for shape in ((47, 5), (500, 1)):
        refused = overfitting(np.zeros(shape))
        assert isinstance(refused, NotShown)
        assert refused.why.endswith("needs 48 of 2")
