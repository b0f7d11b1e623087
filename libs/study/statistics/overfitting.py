"""Was the best configuration the best by luck? Pure.

D. H. Bailey, J. M. Borwein, M. Lopez de Prado, Q. J. Zhu, The Probability of Backtest Overfitting,
Journal of Computational Finance 20 (4), 2017: combinatorially symmetric cross-validation.
"""

from functools import cache
from itertools import combinations

import numpy as np

from contracts.study_score import NotShown, OverfittingScore
from libs.quant.arrays import Array

BLOCKS = 16
"""The sessions are cut into so many equal blocks; half of them choose, the others judge."""
BLOCK_SESSIONS_LEAST = 3


def overfitting(returns: Array) -> OverfittingScore | NotShown:
    """The probability that the configuration with the best ratio on one half of the sessions is
    below the median of all on the other: a row a session, a column a configuration.

    Sums of blocks are enough for every split's Sharpe ratios, so that all 12,870 splits are two
    products of matrices.
    """
    sessions, configurations = returns.shape
    if configurations < 2 or sessions < BLOCKS * BLOCK_SESSIONS_LEAST:
        several = "configuration" if configurations == 1 else "configurations"
        return NotShown(
            why=f"{sessions} sessions of {configurations} {several}, needs"
            f" {BLOCKS * BLOCK_SESSIONS_LEAST} of 2"
        )
    size = sessions // BLOCKS
    used = returns[sessions - size * BLOCKS :].reshape(BLOCKS, size, configurations)
    sums, squares = used.sum(axis=1), np.square(used).sum(axis=1)
    chosen = _splits()
    half = size * BLOCKS / 2
    inside = _sharpe(chosen @ sums, chosen @ squares, half)
    outside = _sharpe((1 - chosen) @ sums, (1 - chosen) @ squares, half)
    best = inside.argmax(axis=1)[:, None]
    mark = np.take_along_axis(outside, best, axis=1)
    # Ties share their rank, so that configurations that are all alike give one half.
    rank = (outside < mark).sum(axis=1) + ((outside == mark).sum(axis=1) + 1) / 2
    place = rank / (configurations + 1)
    below = (place < 0.5).mean() + (place == 0.5).mean() / 2
    return OverfittingScore(
        probability=float(below), configurations=configurations, splits=len(chosen)
    )


@cache
def _splits() -> Array:
    """All halves of the blocks: a row a split, 1 where a block chooses."""
    halves = list(combinations(range(BLOCKS), BLOCKS // 2))
    chosen = np.zeros((len(halves), BLOCKS))
    chosen[np.arange(len(halves))[:, None], np.array(halves)] = 1
    return chosen


def _sharpe(sums: Array, squares: Array, count: float) -> Array:
    """Ratios by sums; 0 where returns do not vary."""
    mean = sums / count
    variance = np.maximum(squares / count - np.square(mean), 0)
    varied = variance > 1e-18
    return np.where(varied, mean / np.sqrt(np.where(varied, variance, 1)), 0.0)
