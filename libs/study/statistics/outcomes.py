"""The returns of a study's assets after each of its dates. Pure.

A decision at a session's close fills at the next open; over a horizon of h sessions its return runs
from there to the close of the h-th session after it, or the last one before (`AssetBars.close_at`).
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from contracts.performance import CANDIDATES, CASH
from contracts.study_score import LeftOut
from libs.quant.arrays import Array
from libs.study.statistics.canary import overlap
from libs.study.statistics.record import AssetBars

ASSETS_LEAST = 2
"""With one asset there is nothing to choose."""
NO_DATA = "the horizon ends after the prices that there are"


@dataclass(frozen=True, slots=True)
class StudyOutcomes:
    """Returns as parts: a row a date, a column an asset, NaN where it had no price; `beside` is the
    benchmark's a date, whose horizon ends at the close of its `ends`. A horizon reaches into
    `overlap` dates, its own included."""

    dates: tuple[date, ...]
    ends: tuple[date, ...]
    assets: tuple[str, ...]
    returns: Array
    beside: Array
    overlap: int
    left_out: tuple[LeftOut, ...] = ()

    @property
    def excess(self) -> Array:
        """Each asset's return less the benchmark's."""
        return np.asarray(self.returns - self.beside[:, None])


def outcomes(
    dates: Sequence[date],
    universe: Sequence[str],
    bars: Mapping[str, AssetBars],
    sessions: Sequence[date],
    horizon: int,
    benchmark: str = CANDIDATES,
) -> StudyOutcomes:
    """The returns of the universe after each date, over `horizon` sessions.

    A date whose horizon ends behind the last of `sessions`, at which fewer than ASSETS_LEAST assets
    traded or the benchmark did not is left out, as are assets without a price.
    """
    places = {day: place for place, day in enumerate(sessions)}
    rows, kept, beside, left_out = [], [], [], []
    for on in sorted(set(dates)):
        place = places.get(on)
        if place is None or place + horizon >= len(sessions):
            left_out.append(LeftOut(on=on, why=NO_DATA))
            continue
        span = sessions[place + 1], sessions[place + horizon]
        row = np.array([held_return(bars.get(asset), *span) for asset in universe])
        compared = _benchmark(row, benchmark, universe, bars, span)
        if np.isfinite(row).sum() < ASSETS_LEAST or not np.isfinite(compared):
            what = "of the benchmark" if not np.isfinite(compared) else "of two assets"
            left_out.append(LeftOut(on=on, why=f"there are no prices {what} at the open after it"))
            continue
        left_out += [
            LeftOut(on=on, ticker=asset, why=f"it had no price at the open of {span[0]}")
            for asset, value in zip(universe, row, strict=True)
            if not np.isfinite(value)
        ]
        rows.append(row)
        kept.append(on)
        beside.append(compared)
    return StudyOutcomes(
        tuple(kept),
        tuple(sessions[places[on] + horizon] for on in kept),
        tuple(universe),
        np.array(rows).reshape(len(rows), len(universe)),
        np.array(beside),
        overlap([places[on] for on in kept], horizon),
        tuple(left_out),
    )


def held_return(bars: AssetBars | None, entry: date, end: date) -> float:
    """From the open of `entry` to the close of `end`, or the last one before; NaN without an open
    at `entry`."""
    if bars is None:
        return float("nan")
    at, last = bisect_right(bars.sessions, entry) - 1, bars.close_at(end)
    if at < 0 or bars.sessions[at] != entry or bars.open[at] <= 0 or last is None:
        return float("nan")
    return last / bars.open[at] - 1


def _benchmark(
    row: Array,
    benchmark: str,
    universe: Sequence[str],
    bars: Mapping[str, AssetBars],
    span: tuple[date, date],
) -> float:
    if benchmark == CASH:
        return 0.0
    if benchmark == CANDIDATES:
        priced = row[np.isfinite(row)]
        return float(priced.mean()) if len(priced) else float("nan")
    ticker = benchmark.upper()
    if ticker in universe:
        return float(row[list(universe).index(ticker)])
    return held_return(bars.get(ticker), *span)
