"""The mean of a series of dates, with an interval that holds at few dates and with horizons that
overlap. Pure.

Assets of one date are not independent, nor are dates whose horizons overlap. So whatever is
compared is first one number a date, and the mean of these is tested with a variance that allows for
their dependence: the equal-weighted cosine estimator of the long-run variance, whose ratio is
Student's t with as many degrees of freedom as it has cosines (E. Lazarus, D. J. Lewis, J. H. Stock,
M. W. Watson, HAR Inference: Recommendations for Practice, Journal of Business & Economic Statistics
36 (4), 2018). With losses of forecasts as the numbers this is the Diebold-Mariano test in the form
that keeps its size in small samples (L. Coroneo, F. Iacone, Comparing Predictive Accuracy in Small
Samples Using Fixed-Smoothing Asymptotics, Journal of Applied Econometrics 35 (4), 2020).

Percentile intervals of the stationary bootstrap are too short here: `python -m benchmarks.evidence`
has the coverage of both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from math import sqrt
from typing import Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import nctdtr, stdtr, stdtrit

from libs.quant.arrays import Array

LEVEL = 0.05
"""The share of false alarms that is accepted; intervals hold the truth with 1 - LEVEL."""
POWER = 0.8
"""The chance with which a difference of the size that a plan names is seen."""
DATES_LEAST = 8
"""Fewer dates show nothing: their interval is so wide that no study would be run for it."""
FREEDOM_LEAST = 3
OVERLAP_COSINES = 3
"""The fastest cosine has at most a period of 2 x this x the overlap: where the spectrum of a moving
sum of that many terms is still flat."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over `dates`, its interval and the probability `p` of one as far from 0 by luck.

    `needed` is how many dates like these would show a true difference as large as `estimate` with
    POWER; infinite where the estimate is 0. `error` is its standard error, `freedom` the degrees of
    freedom of that.
    """

    estimate: float
    low: float
    high: float
    p: float
    dates: int
    needed: float
    error: float
    freedom: float

    @classmethod
    def of(cls, estimate: float, error: float, freedom: float, dates: int) -> Self:
        """The mean with its standard `error`, whose ratio is Student's t of that many degrees."""
        if error <= abs(estimate) * 1e-12:  # every date alike
            certain, needed = (0.0, 1.0) if estimate else (1.0, float("inf"))
            return cls(estimate, estimate, estimate, certain, dates, needed, 0.0, freedom)
        reach = float(stdtrit(freedom, 1 - LEVEL / 2)) * error
        p = 2 * float(stdtr(freedom, -abs(estimate) / error))
        needed = dates_needed(estimate, error * sqrt(dates), freedom)
        low, high = estimate - reach, estimate + reach
        return cls(estimate, low, high, p, dates, needed, error, freedom)

    @property
    def resolved(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.p < LEVEL


class TooFewDates(ValueError):
    """A study's dates do not suffice for any interval: `dates` of `needed`."""

    def __init__(self, dates: int, needed: int) -> None:
        super().__init__(f"{dates} dates, and an interval needs {needed}")
        self.dates, self.needed = dates, needed


def dates_least(overlap: int = 1) -> int:
    """How many dates an interval needs, where each date's horizon reaches into those of the next
    `overlap` - 1."""
    return max(DATES_LEAST, 2 * FREEDOM_LEAST * OVERLAP_COSINES * overlap if overlap > 1 else 0)


def freedom(dates: int, overlap: int = 1) -> int:
    """Degrees of freedom of a mean over dates. Raises TooFewDates."""
    if dates < (least := dates_least(overlap)):
        raise TooFewDates(dates, least)
    if overlap == 1:
        return dates - 1
    usual = int(0.4 * dates ** (2 / 3))
    return max(FREEDOM_LEAST, min(usual, dates // (2 * OVERLAP_COSINES * overlap)))


def mean_over_dates(values: Sequence[float] | Array, overlap: int = 1) -> Mean:
    """The mean of one value a date, in the order of the dates. Raises TooFewDates.

    `overlap` is how many dates one horizon covers: 1 where the next date begins after its end.
    """
    series = np.asarray(values, dtype=np.float64)
    degrees = freedom(len(series), overlap)
    error = sqrt(_long_run_variance(series, degrees, overlap) / len(series))
    return Mean.of(float(series.mean()), error, degrees, len(series))


def mean_of_each_date(values: Iterable[tuple[date, float]], overlap: int = 1) -> Mean:
    """The mean over dates of values with their dates; each date counts alike, however many values
    it has. Raises TooFewDates."""
    dates: dict[date, list[float]] = {}
    for on, value in values:
        dates.setdefault(on, []).append(value)
    return mean_over_dates([sum(dates[on]) / len(dates[on]) for on in sorted(dates)], overlap)


def dates_needed(difference: float, deviation: float, degrees: float) -> float:
    """How many dates show a true `difference` with POWER, whose values a date deviate that much;
    both in the same unit. Infinite where there is no difference."""
    if difference == 0:
        return float("inf")
    return (deviation / difference * _reach(degrees)) ** 2


def smallest_difference(dates: int, deviation: float, overlap: int = 1) -> float:
    """The smallest true difference that so many dates show with POWER. Raises TooFewDates."""
    return _reach(freedom(dates, overlap)) * deviation / sqrt(dates)


@cache
def _reach(degrees: float) -> float:
    """How many standard errors a true difference must be away from 0 to be seen with POWER."""
    critical = float(stdtrit(degrees, 1 - LEVEL / 2))
    missed = 1 - POWER
    return float(brentq(lambda away: nctdtr(degrees, away, critical) - missed, 0.1, 12.0))


def _long_run_variance(series: Array, degrees: int, overlap: int) -> float:
    count = len(series)
    if overlap == 1:
        return float(series.var(ddof=1))
    places = (np.arange(count) + 0.5) / count
    waves = np.cos(np.pi * np.outer(np.arange(1, degrees + 1), places)) * sqrt(2 / count)
    return float(np.square(waves @ series).mean())
