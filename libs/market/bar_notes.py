"""Oddities of a ticker's bars that cannot be refused: jumps, and sessions without a bar.

A share may really fall by half in a day, and trading in it may be suspended. A wrong tick and a
hole in the data look the same. So it is told to whoever reads the bars, in a sentence. Pure.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import numpy as np
import polars as pl

from libs.market.calendar import ExchangeCalendar
from libs.market.symbols import venue_of

NOTES_MAX = 10
"""Sentences about one ticker; the newest ones are told, the others counted."""
FOREIGN_HOLIDAYS_MAX = 3
"""Sessions in a row that another exchange may be closed for holidays of its own."""


def notes_of(
    ticker: str, bars: pl.DataFrame, calendar: ExchangeCalendar, jump_pct: float
) -> Sequence[str]:
    """The oddities of adjusted bars (BAR_SCHEMA), oldest first.

    `jump_pct` is how far, in percent, a close may lie from the one before; splits and dividends are
    in adjusted bars already.
    """
    notes = sorted([*_jumps(bars, jump_pct), *_holes(ticker, bars, calendar)])
    left_out = len(notes) - NOTES_MAX
    more = [f"and {left_out} earlier ones"] if left_out > 0 else []
    return [*more, *(note for _, note in notes[-NOTES_MAX:])]


def _jumps(bars: pl.DataFrame, jump_pct: float) -> Iterator[tuple[date, str]]:
    # Arrays, not an expression: a hundredth of a millisecond instead of a whole one.
    closes = bars["close"].to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        change_pct = (closes[1:] / closes[:-1] - 1) * 100
    for at in np.flatnonzero(np.abs(change_pct) > jump_pct):
        day = bars["date"][int(at) + 1]
        moved_by = f"the close moved by {change_pct[at]:+,.1f}% in a session"
        yield day, f"{day}: {moved_by} and no split explains it; it may be a wrong price"


def _holes(
    ticker: str, bars: pl.DataFrame, calendar: ExchangeCalendar
) -> Iterator[tuple[date, str]]:
    venue = venue_of(ticker)
    is_foreign = venue is not None and venue.exchange != calendar.exchange
    usual = FOREIGN_HOLIDAYS_MAX if is_foreign else 0
    days = bars["date"].to_numpy()
    # A weekday without a bar is a session or a holiday: few are left for the calendar to say.
    for at in np.flatnonzero(np.busday_count(days[:-1] + 1, days[1:])):
        before, after = days[at].item(), days[at + 1].item()
        between = (before + timedelta(days=n) for n in range(1, (after - before).days))
        missing = sum(map(calendar.is_session, between))
        if missing > usual:
            sessions = "1 session" if missing == 1 else f"{missing} sessions"
            yield after, f"{after}: {sessions} without a bar before it, since {before}"
