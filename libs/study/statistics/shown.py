"""A statistic as it is shown: with its interval, or with the reason why there is none. Pure."""

from collections.abc import Callable, Sequence
from math import ceil, isfinite
from typing import TypeVar

from contracts.study_score import CURVE_POINTS_MAX, Estimate, NotShown, Shown
from libs.study.statistics.means import Mean, TooFewDates

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


def thinned(values: Sequence[T]) -> tuple[T, ...]:
    """At most CURVE_POINTS_MAX of the values, the last one among them."""
    count = len(values)
    if count <= CURVE_POINTS_MAX:
        return tuple(values)
    places = ((number + 1) * count // CURVE_POINTS_MAX - 1 for number in range(CURVE_POINTS_MAX))
    return tuple(values[place] for place in places)
