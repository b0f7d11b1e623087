"""The choices of an arm beside what came of them: one number a date and asset. Pure.

Samples of a date are averaged before anything else is done: asked ten times on one date a model
has not decided on ten.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from libs.quant.arrays import Array, Mask
from libs.study.statistics.calibration import Stated
from libs.study.statistics.outcomes import StudyOutcomes
from libs.study.statistics.record import Decided

BPS = 1e-4
SIDES = 2
"""Whatever is bought is sold at the horizon's end."""


@dataclass(frozen=True, slots=True)
class Choices:
    """An arm on the dates of some outcomes; a row a date, a column an asset, NaN where it did not
    decide or the asset had no price.

    `weight` are parts of the equity; `hit` is the part of samples that were right, `loss` the mean
    Brier loss where a confidence was stated; `excess` the return of the decision above the
    benchmark after costs, one a date.
    """

    weight: Array
    hit: Array
    loss: Array
    excess: Array
    stated: tuple[Stated, ...] = ()

    @property
    def decided(self) -> Mask:
        """Whether the arm decided, a date."""
        return np.isfinite(self.excess)


def choices(decided: Sequence[Decided], of: StudyOutcomes, cost_bps: float) -> Choices:
    """The arm's decisions that ended, beside the outcomes of their dates.

    What a decision left uninvested counts as the benchmark: the excess is that of what it chose. An
    asset without prices is taken out of the decision as it is out of the benchmark.
    """
    samples = _by_date(decided, of)
    shape = (len(of.dates), len(of.assets))
    weight, hit, loss = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
    stated: list[Stated] = []
    above, priced = of.excess > 0, np.isfinite(of.returns)
    for row, on in enumerate(of.dates):
        if not (here := samples.get(on)):
            continue
        weights = np.array([_aligned(it.weights, of.assets, 0.0) for it in here])
        chances = np.array([_aligned(it.stated, of.assets, np.nan) for it in here])
        weight[row] = np.where(priced[row], weights.mean(axis=0), np.nan)
        hit[row] = np.where(priced[row], ((weights > 0) == above[row]).mean(axis=0), np.nan)
        happened = np.where(priced[row], above[row].astype(float), np.nan)
        loss[row] = _mean_known(np.square(chances - happened))
        stated += [
            Stated(on, float(chance), bool(above[row, asset]))
            for sample in chances
            for asset, chance in enumerate(sample)
            if np.isfinite(chance) and priced[row, asset]
        ]
    cost = SIDES * cost_bps * BPS
    known = np.isfinite(weight).any(axis=1)
    excess = np.where(known, np.nansum(weight * (of.excess - cost), axis=1), np.nan)
    return Choices(weight, hit, loss, excess, tuple(stated))


def of_weights(weight: Array, of: StudyOutcomes) -> Choices:
    """The choices of a control that has no cells and pays no costs, by its weights (NaN where there
    is no price)."""
    hit = np.where(np.isfinite(of.returns), (weight > 0) == (of.excess > 0), np.nan)
    excess = np.nansum(weight * of.excess, axis=1)
    return Choices(weight, hit, np.full(weight.shape, np.nan), excess)


def equal_weight(of: StudyOutcomes) -> Array:
    """Equal parts of all that had a price, on each date."""
    priced = np.isfinite(of.returns)
    return np.where(priced, 1 / np.maximum(priced.sum(axis=1, keepdims=True), 1), np.nan)


def seen_ahead(of: StudyOutcomes) -> Array:
    """The weights of one who has seen the prices to come: equal parts of the best third, at least
    one asset."""
    weight = np.where(np.isfinite(of.returns), 0.0, np.nan)
    for row, returns in enumerate(of.returns):
        priced = np.flatnonzero(np.isfinite(returns))
        best = priced[np.argsort(returns[priced])[::-1][: max(len(priced) // 3, 1)]]
        weight[row, best] = 1 / len(best)
    return weight


def _by_date(decided: Sequence[Decided], of: StudyOutcomes) -> Mapping[date, Sequence[Decided]]:
    dates = set(of.dates)
    samples: dict[date, list[Decided]] = {}
    for one in decided:
        if one.ended and one.on in dates:
            samples.setdefault(one.on, []).append(one)
    return samples


def _aligned(values: Mapping[str, float], assets: Sequence[str], absent: float) -> list[float]:
    return [values.get(asset, absent) for asset in assets]


def _mean_known(values: Array) -> Array:
    """The mean of each column's finite values; NaN where there is none."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
