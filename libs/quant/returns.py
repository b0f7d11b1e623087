"""Time-weighted returns: what money earned, whoever paid it in and took it out meanwhile. Pure.

The sub-period return with flows at its beginning, linked by multiplication (CFA Institute, GIPS
Standards Handbook, "Time-Weighted Return"; C. Bacon, Practical Portfolio Performance Measurement
and Attribution, 3rd ed., ch. 3):

    r = E1 / (E0 + F) - 1        R = (1 + r1) (1 + r2) ... - 1

E0 and E1 are the equity at two closes, F is what was paid in between them, negative where more was
taken out. The desk lets a flow count from a session's beginning on, so each session's return is
exact; over sessions without a known equity all flows count as at the beginning of the first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import accumulate, pairwise

ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class AccountWorth:
    """An account at a close: its `equity`, and what its owner had `paid_in` by then, since its
    opening and less what was taken out."""

    equity: Decimal
    paid_in: Decimal = Decimal(0)


def period_return(before: AccountWorth, after: AccountWorth) -> Decimal:
    """The return between two closes as a part: 0.01 is one percent. 0 where there was nothing that
    could earn one."""
    base = before.equity + after.paid_in - before.paid_in
    return after.equity / base - ONE if base > 0 else Decimal(0)


def growth(worth: Mapping[date, AccountWorth]) -> Mapping[date, Decimal]:
    """The growth of 1 by each close, time-weighted; 1 at the first."""
    days = sorted(worth)
    grown = dict.fromkeys(days[:1], ONE)
    for before, day in pairwise(days):
        grown[day] = grown[before] * (ONE + period_return(worth[before], worth[day]))
    return grown


def at_exposure(
    grown: Mapping[date, Decimal], exposure: Mapping[date, Decimal]
) -> Mapping[date, Decimal]:
    """The growth of 1 of whoever holds of it, over each session, the part `exposure` of all money
    (0.3 is 30 %) that stood at the close before; the rest earns nothing."""
    days = sorted(day for day in grown if day in exposure)
    partly = dict.fromkeys(days[:1], ONE)
    for before, day in pairwise(days):
        earned = grown[day] / grown[before] - ONE if grown[before] else Decimal(0)
        partly[day] = partly[before] * (ONE + exposure[before] * earned)
    return partly


def drawdowns(grown: Mapping[date, Decimal]) -> Mapping[date, Decimal]:
    """At each close the distance from the highest one up to it, as a part of that."""
    days = sorted(grown)
    peaks = accumulate((grown[day] for day in days), max)
    return {
        day: ONE - grown[day] / peak if peak else Decimal(0)
        for day, peak in zip(days, peaks, strict=True)
    }


def monthly(grown: Mapping[date, Decimal]) -> Mapping[str, Decimal]:
    """The return of each calendar month, as `2012-06`: its last close against that of the month
    before; the first month's against the first close of all. As a part: 0.01 is one percent."""
    return _periods(grown, "%Y-%m")


def yearly(grown: Mapping[date, Decimal]) -> Mapping[str, Decimal]:
    """The return of each calendar year, as `2012`, by the same rule as `monthly`."""
    return _periods(grown, "%Y")


def _periods(grown: Mapping[date, Decimal], named: str) -> Mapping[str, Decimal]:
    last: dict[str, Decimal] = {}
    for day in sorted(grown):
        last[f"{day:{named}}"] = grown[day]
    if not last:
        return {}
    begins = [grown[min(grown)], *last.values()]
    return {
        period: end / begin - ONE if begin else Decimal(0)
        for (period, end), begin in zip(last.items(), begins, strict=False)
    }
