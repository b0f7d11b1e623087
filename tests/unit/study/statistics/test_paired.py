"""Two arms on the same inputs: hits, returns, ranks."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from math import comb

import numpy as np
import pytest

from contracts.study_score import Measure, RankInterval
from libs.study.statistics.means import Array, mean_over_dates
from libs.study.statistics.paired import (
    PairedOutcome,
    difference,
    every_two,
    hit_difference,
    rank_intervals,
)
from libs.study.statistics.shown import estimate

DAYS = [date(2010, 1, 4) + timedelta(days=7 * week) for week in range(60)]


def test_with_an_asset_a_date_the_test_of_hits_is_mcnemars_exact_one():
    random = np.random.default_rng(3)
    pairs = [
        PairedOutcome(on, float(random.random() < 0.7), float(random.random() < 0.4)) for on in DAYS
    ]
    first = sum((pair.first, pair.second) == (1, 0) for pair in pairs)
    second = sum((pair.first, pair.second) == (0, 1) for pair in pairs)
    assert hit_difference(pairs).p == pytest.approx(
        2
        * sum(comb(first + second, k) for k in range(min(first, second) + 1))
        / 2 ** (first + second)
    )


def test_arms_that_always_agree_do_not_differ():
    pairs = [PairedOutcome(on, 1.0, 1.0) for on in DAYS]
    assert hit_difference(pairs).p == 1.0


def test_assets_of_a_date_count_as_one_date():
    """Ten copies of an asset are no ten times the evidence."""
    random = np.random.default_rng(4)
    once = [PairedOutcome(on, random.normal(0.3), 0.0) for on in DAYS]
    tenfold = [pair for pair in once for _ in range(10)]
    assert difference(tenfold) == difference(once)
    hits = [
        PairedOutcome(on, float(pair.first > 0), 0.0) for on, pair in zip(DAYS, once, strict=True)
    ]
    assert hit_difference(hits * 10).p == pytest.approx(difference(hits).p)


def test_the_order_of_the_pairs_does_not_matter():
    random = np.random.default_rng(5)
    pairs = [PairedOutcome(on, random.normal(), 0.0) for on in DAYS]
    assert difference(pairs[::-1], 2) == difference(pairs, 2)


def ranked(arms: Mapping[str, Array]) -> Sequence[RankInterval]:
    """The ranks of arms by their values a date."""
    differences = {(a, b): estimate(mean_over_dates(arms[a] - arms[b])) for a, b in every_two(arms)}
    return rank_intervals(Measure.EXCESS, differences)


def test_arms_that_cannot_be_told_apart_share_their_ranks():
    random, goods = np.random.default_rng(6), (0, 0.05, 2, 2.1)
    arms = {name: random.normal(size=60) + good for name, good in zip("abcd", goods, strict=True)}
    ranks = {rank.arm: (rank.best, rank.worst) for rank in ranked(arms)}
    assert ranks == {"c": (1, 2), "d": (1, 2), "a": (3, 4), "b": (3, 4)}


def test_many_arms_without_any_difference_are_rarely_ranked():
    """Eight arms are 28 pairs: at 5 % each, most studies would rank one of them."""
    random, told_apart = np.random.default_rng(7), 0
    for _ in range(100):
        arms = {f"arm {number}": random.normal(size=30) for number in range(8)}
        told_apart += any(rank.best > 1 for rank in ranked(arms))
    assert told_apart <= 12
