"""From daily closes to what the rules look at: returns of complete months, and the peak. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from services.exit_signal.rules import MONTHS_BEFORE

MONTHS = MONTHS_BEFORE + 1
"""Complete months whose returns the rules look at."""
SESSIONS_MIN = 140
"""Sessions that surely hold the ends of these months, the end before them, and a month begun."""
PEAK_SESSIONS_MAX = 2_600
"""Sessions back that a trailing stop looks for its peak: about ten years."""

Month = tuple[int, int]


@dataclass(frozen=True, slots=True)
class History:
    """What the closes of one ticker come to at as_of; `peak` where it was asked for."""

    months: tuple[float | None, ...] = (None,) * MONTHS
    close: float | None = None
    peak: float | None = None


def last_complete(as_of: date, next_session: date) -> Month:
    """The last month that is over at as_of's close; its own, where as_of was the last session."""
    if (next_session.year, next_session.month) != (as_of.year, as_of.month):
        return as_of.year, as_of.month
    return before((as_of.year, as_of.month))


def before(month: Month) -> Month:
    """The month before."""
    year, number = month
    return (year, number - 1) if number > 1 else (year - 1, 12)


def history_of(
    days: Sequence[date], closes: Sequence[float], last: Month, peak_since: date | None = None
) -> History:
    """The closes (ascending by day) as returns of the months up to `last`, oldest first.

    A month's return is from the last close of the month before to its own last close, and None
    where either month has none.
    """
    ends: dict[Month, float] = {}
    for day, close in zip(days, closes, strict=True):
        ends[day.year, day.month] = close
    months: list[float | None] = []
    month = last
    for _ in range(MONTHS):
        months.append(_return(ends.get(before(month)), ends.get(month)))
        month = before(month)
    since = [c for day, c in zip(days, closes, strict=True) if peak_since and day >= peak_since]
    return History(
        months=tuple(reversed(months)),
        close=closes[-1] if closes else None,
        peak=max(since, default=None),
    )


def _return(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None or start <= 0 else end / start - 1
