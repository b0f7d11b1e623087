"""Is a stated probability one? Of picks that were said to win with 60 %, 60 % should have. Pure.

Brier's score and its parts as T. Dimitriadis, T. Gneiting and A. I. Jordan have them (Stable
Reliability Diagrams for Probabilistic Classifiers, PNAS 118 (8), 2021): the recalibrated
probability is the isotonic regression of what happened on what was stated; no bins are chosen.

    score = miscalibration - discrimination + uncertainty
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import IsotonicRegression

from libs.quant.study.means import Mean, mean_over_dates

Array = npt.NDArray[np.float64]
Dates = npt.NDArray[np.intp]

RESAMPLES = 400
BAND = (0.05, 0.95)
GRID = tuple(round(0.05 * step, 2) for step in range(21))


@dataclass(frozen=True, slots=True)
class Stated:
    """A probability that was stated on a date, and whether it came true."""

    on: date
    probability: float
    happened: bool


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """How often came true what was `stated`, and the band of the resampled curves around it."""

    stated: float
    happened: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Brier's score with its parts and its curve; a lower score is better.

    `overconfidence` is what was stated less what came true, a date: above 0 more was promised.
    `skill` is the part of the base rate's score that is saved, below 0 where it is worse.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    overconfidence: Mean
    curve: tuple[CurvePoint, ...]
    outcomes: int

    @property
    def skill(self) -> float | None:
        """1 less the score as a part of the base rate's; None where all or nothing came true."""
        return 1 - self.score / self.uncertainty if self.uncertainty > 0 else None


def calibration(stated: Sequence[Stated], overlap: int = 1, seed: int = 0) -> Calibration:
    """How far stated probabilities can be trusted. Raises TooFewDates.

    The curve's band are percentiles over resamples of whole dates, since assets of a date are not
    independent.
    """
    rows = sorted(stated, key=lambda row: row.on)
    chance = np.array([row.probability for row in rows])
    happened = np.array([float(row.happened) for row in rows])
    days = np.unique([row.on.toordinal() for row in rows], return_inverse=True)[1].astype(np.intp)
    again = _isotonic(chance, happened).predict(chance)
    score, base = _brier(chance, happened), _brier(happened.mean(), happened)
    ideal = _brier(again, happened)
    return Calibration(
        score=score,
        miscalibration=score - ideal,
        discrimination=base - ideal,
        uncertainty=base,
        overconfidence=overconfidence(rows, overlap),
        curve=_curve(chance, happened, days, seed),
        outcomes=len(rows),
    )


def overconfidence(stated: Sequence[Stated], overlap: int = 1) -> Mean:
    """How much more was stated than came true, a date. Raises TooFewDates."""
    dates: dict[date, list[float]] = {}
    for row in stated:
        dates.setdefault(row.on, []).append(row.probability - row.happened)
    return mean_over_dates([sum(dates[on]) / len(dates[on]) for on in sorted(dates)], overlap)


def _brier(chance: Array | float, happened: Array) -> float:
    return float(np.square(chance - happened).mean())


def _isotonic(chance: Array, happened: Array) -> IsotonicRegression:
    return IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(chance, happened)


def _curve(chance: Array, happened: Array, days: Dates, seed: int) -> tuple[CurvePoint, ...]:
    grid = np.array([value for value in GRID if chance.min() <= value <= chance.max()])
    if not len(grid):
        return ()
    random = np.random.default_rng(seed)
    rows = [np.flatnonzero(days == day) for day in range(days.max() + 1)]
    curves = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([rows[day] for day in random.integers(0, len(rows), len(rows))])
        curves.append(_isotonic(chance[drawn], happened[drawn]).predict(grid))
    low, high = np.quantile(curves, BAND, axis=0)
    middle = _isotonic(chance, happened).predict(grid)
    points = zip(grid, middle, np.minimum(low, middle), np.maximum(high, middle), strict=True)
    return tuple(CurvePoint(*(float(value) for value in point)) for point in points)
