"""The look-ahead canary: what it must reach to be seen, and how far a study's size lets it. Pure,
quick to import.

The canary buys the winners of the week after each date. Where even it is not told from luck, nobody
is cleared (libs/study/statistics/foresight.py).
"""

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil, sqrt

CANARY_SESSIONS = 5
"""The week after a date, over which it is looked who has seen the prices to come: the shortest
time in which they say more than noise."""
LEAK_DEVIATIONS = 4.0
LEAK_SHARE = 0.65
LEAK_DATES_LEAST = 20
"""With fewer even the canary is not told from luck."""
DEVIATIONS_A_CHOICE = 0.55
"""The canary's deviations, as a part of the root of tickers times dates: of returns of one normal
distribution 0.56 with 2 tickers, 0.60 with 3 and 4, more with more; heavy tails and shares that
vary unequally take some of it."""
DEVIATIONS_SURE = 4.5
"""Expected deviations with which the canary is seen in nearly every draw of the dates."""


def overlap(places: Sequence[int], horizon: int) -> int:
    """The most dates that one horizon reaches into, its own included; by places of sessions."""
    ends = [bisect_right(places, place + horizon - 1) for place in places]
    return max((end - number for number, end in enumerate(ends)), default=1)


def deviations_expected(tickers: int, dates: int, overlapping: int) -> float:
    """About how many standard deviations above luck the canary reaches; each week reaches into so
    many dates."""
    return DEVIATIONS_A_CHOICE * sqrt(tickers * dates / overlapping)


def dates_needed(tickers: int) -> int:
    """How many dates, a week apart, let the canary be seen in nearly every draw of them."""
    needed = (DEVIATIONS_SURE / DEVIATIONS_A_CHOICE) ** 2 / tickers
    return max(LEAK_DATES_LEAST, ceil(needed))
