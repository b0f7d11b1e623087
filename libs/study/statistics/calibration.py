"""Is a stated probability one? Of picks that were said to win with 60 %, 60 % should have. Pure.

Brier's score and its parts as T. Dimitriadis, T. Gneiting and A. I. Jordan have them (Stable
Reliability Diagrams for Probabilistic Classifiers, PNAS 118 (8), 2021): the recalibrated
probability is the isotonic regression of what happened on what was stated; no bins are chosen.

    score = miscalibration - discrimination + uncertainty

The curve's interval takes one thing for granted, that no less comes true where more is stated, as
the curve does. So what came true of what was stated a little less surely (WINDOW) is no more than
what comes true here, and the low end of its interval is one here too; the high end likewise by what
was stated a little more surely. It holds at any number of dates, and errs towards too wide
(`python -m benchmarks.evidence`), where percentiles of resampled curves are too narrow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import IsotonicRegression

from libs.study.statistics.means import Mean, mean_over_dates
from libs.study.statistics.shares import share_interval

Array = npt.NDArray[np.float64]
Dates = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

WINDOW = 0.1
"""How far around a stated probability others speak of its interval."""
SAME = 1e-9
GRID = tuple(round(0.05 * step, 2) for step in range(21))


@dataclass(frozen=True, slots=True)
class Stated:
    """A probability that was stated on a date, and whether it came true."""

    on: date
    probability: float
    happened: bool


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """How often came true what was `stated`, and the 95 % interval of that."""

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


def calibration(stated: Sequence[Stated], overlap: int = 1) -> Calibration:
    """How far stated probabilities can be trusted. Raises TooFewDates."""
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
        curve=reliability(chance, happened, days, overlap),
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


def reliability(
    chance: Array, happened: Array, days: Dates, overlap: int
) -> tuple[CurvePoint, ...]:
    """How often came true what was stated, at each of GRID within all that was; `days` are the
    places of the dates."""
    grid = np.array([value for value in GRID if chance.min() <= value <= chance.max()])
    if not len(grid):
        return ()
    points = []
    for at, middle in zip(grid, _isotonic(chance, happened).predict(grid), strict=True):
        low, _ = _interval(
            (chance >= at - WINDOW - SAME) & (chance <= at + SAME), happened, days, overlap
        )
        _, high = _interval(
            (chance >= at - SAME) & (chance <= at + WINDOW + SAME), happened, days, overlap
        )
        held = float(middle)
        points.append(CurvePoint(float(at), held, min(low, held), max(high, held)))
    return tuple(points)


def _interval(among: Mask, happened: Array, days: Dates, overlap: int) -> tuple[float, float]:
    """The interval of the share that came true among some; all there is where there are none."""
    count = days.max() + 1
    asked = np.bincount(days[among], minlength=count)
    of_date = asked > 0
    if not of_date.any():
        return 0.0, 1.0
    hits = np.bincount(days[among], weights=happened[among], minlength=count)
    # A horizon reaches into the dates after it, of which only a part has one of these.
    reached = 1 + (overlap - 1) * float(of_date.mean())
    return share_interval(hits[of_date], asked[of_date], reached)
