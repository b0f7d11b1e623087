"""Has an arm seen the prices to come? Its choices beside chance, and beside a canary. Pure.

Two looks. The permutation control deals an arm's own weights at random to the assets of each date:
what they bring then is luck. And the look-ahead canary buys the winners of the week to come: where
it does not light up, the check sees nothing here, and nobody is cleared by it.

An arm is taken for one that leaks where both hold over the week after each date:

- its choices brought more than random ones by LEAK_DEVIATIONS standard deviations, which luck does
  once in 30,000 arms;
- on more than LEAK_SHARE of the dates (the low end of the interval) its choice of that date beat
  its average choice. With a week between dates this is an information ratio of about 2.8 a year
  (Phi^-1(0.65) x sqrt(52)), which no fund is known to have kept; and an arm that always likes the
  same asset, however well that did, changes nothing from date to date and is not accused.

It is a look at results alone: who knows the past by heart and uses it little is not seen here, but
by names taken away (libs/study/statistics/leakage.py).
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

from libs.study.statistics.canary import LEAK_DATES_LEAST, LEAK_DEVIATIONS, LEAK_SHARE
from libs.study.statistics.means import LEVEL, TooFewDates
from libs.study.statistics.outcomes import StudyOutcomes

Array = npt.NDArray[np.float64]

PERMUTATIONS = 1_000


class NoChoice(ValueError):
    """The arm never preferred an asset to another, so there is nothing to judge."""


@dataclass(frozen=True, slots=True)
class Chance:
    """The mean excess of a date's choice before costs, the 95th percentile of the same weights
    dealt at random, and the probability `p` of as much by luck."""

    actual: float
    permuted: float
    p: float

    @property
    def passed(self) -> bool:
        """Whether it exceeds what luck reaches."""
        return self.actual > self.permuted


@dataclass(frozen=True, slots=True)
class Sight:
    """How far choices look like knowledge of the week to come: standard `deviations` above random
    ones, the share of `dates` at which the choice was `better` than the arm's average one with the
    interval's low end, and the part of perfect knowledge's gain that was `captured`."""

    deviations: float
    better: float
    better_low: float
    captured: float
    dates: int

    @property
    def leaks(self) -> bool:
        """Whether no honest arm does so well."""
        return self.deviations >= LEAK_DEVIATIONS and self.better_low > LEAK_SHARE


def chance(weight: Array, of: StudyOutcomes, seed: int) -> Chance:
    """The permutation control over the outcomes' own horizon. Raises NoChoice."""
    rows = _choosing(weight, of)
    random = np.random.default_rng(seed)
    actual, dealt = 0.0, np.zeros(PERMUTATIONS)
    for weights, excess in rows:
        actual += float(weights @ excess)
        dealt += random.permuted(np.tile(weights, (PERMUTATIONS, 1)), axis=1) @ excess
    count = len(rows)
    beaten = int((dealt >= actual - 1e-12).sum())
    return Chance(
        actual / count,
        float(np.quantile(dealt, 1 - LEVEL)) / count,
        (beaten + 1) / (PERMUTATIONS + 1),
    )


def sight(weight: Array, of: StudyOutcomes) -> Sight:
    """The look for leaks, over outcomes of CANARY_SESSIONS. Raises NoChoice and TooFewDates.

    Dates whose weeks overlap count as that many fewer.
    """
    rows = _choosing(weight, of)
    if len(rows) // of.overlap < LEAK_DATES_LEAST:
        raise TooFewDates(len(rows), LEAK_DATES_LEAST * of.overlap)
    gain = sum(float((weights - weights.mean()) @ excess) for weights, excess in rows)
    best = sum(
        float((np.sort(weights) - weights.mean()) @ np.sort(excess)) for weights, excess in rows
    )
    variance = sum(
        float(np.square(weights - weights.mean()).sum() * np.square(excess - excess.mean()).sum())
        / (len(weights) - 1)
        for weights, excess in rows
    )
    better, changed = _better_than_usual(weight, of)
    low = 0.0
    if whole := round(changed / of.overlap):
        wins = round(better * whole / changed)
        low = float(binomtest(wins, whole).proportion_ci(1 - LEVEL, method="wilson").low)
    return Sight(
        deviations=gain / sqrt(variance * of.overlap) if variance > 0 else 0.0,
        better=better / changed if changed else 0.0,
        better_low=low,
        captured=gain / best if best > 0 else 0.0,
        dates=len(rows),
    )


def _choosing(weight: Array, of: StudyOutcomes) -> list[tuple[Array, Array]]:
    """Weights and excess returns of the dates with a choice between assets that then differed."""
    rows = []
    for weights, excess in zip(weight, of.excess, strict=True):
        known = np.isfinite(weights) & np.isfinite(excess)
        if known.sum() > 1 and np.ptp(weights[known]) > 1e-9 and np.ptp(excess[known]) > 1e-12:
            rows.append((weights[known], excess[known]))
    if not rows:
        raise NoChoice("it never preferred one asset to another")
    return rows


def _better_than_usual(weight: Array, of: StudyOutcomes) -> tuple[int, int]:
    """At how many dates the choice beat the arm's average choice, of those at which it differed."""
    known = np.isfinite(weight) & np.isfinite(of.excess)
    count = known.sum(axis=0)
    usual = np.where(known, weight, 0.0).sum(axis=0) / np.maximum(count, 1)
    # What is compared is which assets are preferred, not how much is invested in all of them.
    moved = np.where(known, weight - usual, 0.0)
    moved -= np.where(known, moved.sum(axis=1, keepdims=True), 0.0) / np.maximum(
        known.sum(axis=1, keepdims=True), 1
    )
    gained = (moved * np.where(known, of.excess, 0.0)).sum(axis=1)
    changed = np.abs(moved).sum(axis=1) > 1e-9
    return int((gained[changed] > 0).sum()), int(changed.sum())
