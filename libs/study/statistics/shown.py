"""A statistic as it is shown: with its interval, or with the reason why there is none. Pure."""

from collections.abc import Callable, Sequence
from math import ceil, isfinite
from typing import TypeVar

from contracts.study_score import (
    CURVE_POINTS_MAX,
    Estimate,
    Foresight,
    LeakVerdict,
    NotShown,
    Permuted,
    Shown,
)
from libs.study.statistics.foresight import NoChoice, chance, sight
from libs.study.statistics.means import Array, Mean, TooFewDates
from libs.study.statistics.outcomes import StudyOutcomes

DATES_MAX = 1_000_000
"""More dates than anybody has are as good as none: a difference of that size is nothing."""
T = TypeVar("T")


def shown(compute: Callable[[], Mean], around: float = 0.0) -> Shown:
    """The mean with its interval, moved by `around`; or too few dates, and how many are needed."""
    try:
        return estimate(compute(), around)
    except TooFewDates as few:
        return too_few(few)


def estimate(mean: Mean, around: float = 0.0) -> Estimate:
    """The mean with its interval, moved by `around`."""
    needed = ceil(mean.needed) if isfinite(mean.needed) and mean.needed <= DATES_MAX else None
    return Estimate(
        estimate=mean.estimate + around,
        low=mean.low + around,
        high=mean.high + around,
        p=mean.p,
        dates=mean.dates,
        needed=needed,
        resolved=mean.resolved,
    )


def too_few(few: TooFewDates) -> NotShown:
    """`12 dates, and an interval needs 72`."""
    return NotShown(
        why=f"{few.dates} dates, needs {few.needed}", dates=few.dates, needed=few.needed
    )


def permuted(weight: Array, of: StudyOutcomes, seed: int) -> Permuted | NotShown:
    """The permutation control."""
    if not len(of.dates):
        return NotShown(why="no date was scored")
    try:
        result = chance(weight, of, seed)
    except NoChoice as none:
        return NotShown(why=str(none))
    return Permuted(
        actual=result.actual, permuted=result.permuted, p=result.p, passed=result.passed
    )


def foresight(weight: Array, of: StudyOutcomes, *, canary_lit: bool) -> Foresight | NotShown:
    """The look for leaks; without a canary that lights up nobody is cleared."""
    try:
        result = sight(weight, of)
    except NoChoice as none:
        return NotShown(why=str(none))
    except TooFewDates as few:
        return too_few(few)
    clear = LeakVerdict.CLEAR if canary_lit else LeakVerdict.NOT_SHOWN
    return Foresight(
        deviations=result.deviations,
        better=result.better,
        better_low=result.better_low,
        captured=result.captured,
        dates=result.dates,
        verdict=LeakVerdict.LEAKS if result.leaks else clear,
    )


def thinned(values: Sequence[T]) -> tuple[T, ...]:
    """At most CURVE_POINTS_MAX of the values, the last one among them."""
    count = len(values)
    if count <= CURVE_POINTS_MAX:
        return tuple(values)
    places = ((number + 1) * count // CURVE_POINTS_MAX - 1 for number in range(CURVE_POINTS_MAX))
    return tuple(values[place] for place in places)
