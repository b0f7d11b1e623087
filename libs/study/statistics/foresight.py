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

from math import sqrt

import numpy as np
from scipy.stats import binomtest

from contracts.study_score import Foresight, LeakVerdict, NotShown, Permuted
from libs.quant.arrays import Array
from libs.study.statistics.canary import LEAK_DATES_LEAST, LEAK_DEVIATIONS, LEAK_SHARE
from libs.study.statistics.means import LEVEL, TooFewDates
from libs.study.statistics.outcomes import StudyOutcomes
from libs.study.statistics.shown import too_few

PERMUTATIONS = 1_000


NO_CHOICE = NotShown(why="it never preferred one asset to another")


def permuted(weight: Array, of: StudyOutcomes, seed: int) -> Permuted | NotShown:
    """The permutation control over the outcomes' own horizon."""
    if not len(of.dates):
        return NotShown(why="no date was scored")
    if not (rows := _choosing(weight, of)):
        return NO_CHOICE
    random = np.random.default_rng(seed)
    actual, dealt = 0.0, np.zeros(PERMUTATIONS)
    for weights, excess in rows:
        actual += float(weights @ excess)
        dealt += random.permuted(np.tile(weights, (PERMUTATIONS, 1)), axis=1) @ excess
    count = len(rows)
    beaten = int((dealt >= actual - 1e-12).sum())
    reached = float(np.quantile(dealt, 1 - LEVEL)) / count
    return Permuted(
        actual=actual / count,
        permuted=reached,
        p=(beaten + 1) / (PERMUTATIONS + 1),
        passed=actual / count > reached,
    )


def foresight(weight: Array, of: StudyOutcomes, *, canary_lit: bool) -> Foresight | NotShown:
    """The look for leaks, over outcomes of CANARY_SESSIONS; without a canary that lights up nobody
    is cleared.

    Dates whose weeks overlap count as that many fewer.
    """
    if not (rows := _choosing(weight, of)):
        return NO_CHOICE
    if len(rows) // of.overlap < LEAK_DATES_LEAST:
        return too_few(TooFewDates(len(rows), LEAK_DATES_LEAST * of.overlap))
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
    deviations = gain / sqrt(variance * of.overlap) if variance > 0 else 0.0
    verdict = LeakVerdict.CLEAR if canary_lit else LeakVerdict.NOT_SHOWN
    if deviations >= LEAK_DEVIATIONS and low > LEAK_SHARE:
        verdict = LeakVerdict.LEAKS
    return Foresight(
        deviations=deviations,
        better=better / changed if changed else 0.0,
        better_low=low,
        captured=gain / best if best > 0 else 0.0,
        dates=len(rows),
        verdict=verdict,
    )


def _choosing(weight: Array, of: StudyOutcomes) -> list[tuple[Array, Array]]:
    """Weights and excess returns of the dates with a choice between assets that then differed."""
    rows = []
    for weights, excess in zip(weight, of.excess, strict=True):
        known = np.isfinite(weights) & np.isfinite(excess)
        if known.sum() > 1 and np.ptp(weights[known]) > 1e-9 and np.ptp(excess[known]) > 1e-12:
            rows.append((weights[known], excess[known]))
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
