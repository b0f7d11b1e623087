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

from contracts.study_score import CalibrationScore, NoCalibration, ReliabilityPoint
from libs.quant.arrays import Array, Mask
from libs.study.statistics.means import Mean, TooFewDates, mean_of_each_date
from libs.study.statistics.shares import share_interval
from libs.study.statistics.shown import estimate

Dates = npt.NDArray[np.intp]

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


def calibrated(
    arm: str, stated: Sequence[Stated], overlap: int
) -> CalibrationScore | NoCalibration:
    """How far the arm's confidences can be trusted."""
    if not stated:
        return NoCalibration(arm=arm, why="no pick of it that could be scored states a confidence")
    try:
        return calibration(stated, overlap, arm)
    except TooFewDates as few:
        why = f"{few.dates} dates with a stated confidence, needs {few.needed}"
        return NoCalibration(arm=arm, why=why)


def calibration(stated: Sequence[Stated], overlap: int = 1, arm: str = "") -> CalibrationScore:
    """How far stated probabilities, those of `arm`, can be trusted. Raises TooFewDates."""
    rows = sorted(stated, key=lambda row: row.on)
    chance = np.array([row.probability for row in rows])
    happened = np.array([float(row.happened) for row in rows])
    days = np.unique([row.on.toordinal() for row in rows], return_inverse=True)[1].astype(np.intp)
    again = _isotonic(chance, happened).predict(chance)
    score, base = _brier(chance, happened), _brier(happened.mean(), happened)
    ideal = _brier(again, happened)
    return CalibrationScore(
        arm=arm,
        score=score,
        miscalibration=score - ideal,
        discrimination=base - ideal,
        uncertainty=base,
        # Where all or nothing came true there is no base rate's score to save a part of.
        skill=1 - score / base if base > 0 else None,
        overconfidence=estimate(overconfidence(rows, overlap)),
        curve=reliability(chance, happened, days, overlap),
        outcomes=len(rows),
    )


def overconfidence(stated: Sequence[Stated], overlap: int = 1) -> Mean:
    """How much more was stated than came true, a date. Raises TooFewDates."""
    above = ((row.on, row.probability - row.happened) for row in stated)
    return mean_of_each_date(above, overlap)


def _brier(chance: Array | float, happened: Array) -> float:
    return float(np.square(chance - happened).mean())


def _isotonic(chance: Array, happened: Array) -> IsotonicRegression:
    return IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(chance, happened)


def reliability(
    chance: Array, happened: Array, days: Dates, overlap: int
) -> tuple[ReliabilityPoint, ...]:
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
        points.append(
            ReliabilityPoint(
                stated=float(at), happened=held, low=min(low, held), high=max(high, held)
            )
        )
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
