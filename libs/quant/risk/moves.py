"""How tickers move together: a covariance of daily returns, shrunk so that it can be forecast with.

The sample covariance of a year of days overstates what stands out in it. Ledoit and Wolf ("A
well-conditioned estimator for large-dimensional covariance matrices", 2004) draw it towards an
identity times the mean variance, by as much as the returns themselves say is noise. Returns are
logarithmic, between the sessions that all tickers measured have a close of; a year is 252 of them.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from math import isfinite, sqrt

import numpy as np
import numpy.typing as npt

from contracts.facts import MOVES_TICKERS_MAX, Moves
from libs.quant.bars import YEAR_BARS
from libs.quant.risk.score import RISK_CLOSES_MIN

Array = npt.NDArray[np.float64]

MOVES_CLOSES_WANTED = YEAR_BARS + 1
"""A year of returns: long enough for a hundred of correlations, short enough to be of today."""
_PLACES = 4


def moves(closes: Mapping[str, Mapping[date, float]]) -> Moves:
    """The movements of the tickers by their closes (by session, adjusted), the first ones of them
    where there are too many.

    They share their sessions: those with the longest history come first, and one that would leave
    less than RISK_CLOSES_MIN sessions in common is not measured, nor is one with a close that is no
    price above zero.
    """
    offered = {
        ticker: by_day
        for ticker, by_day in list(closes.items())[:MOVES_TICKERS_MAX]
        if all(isfinite(close) and close > 0 for close in by_day.values())
    }
    common: set[date] | None = None
    measured: list[str] = []
    for ticker in sorted(offered, key=lambda name: (-len(offered[name]), sorted(offered[name]))):
        left = set(offered[ticker]) if common is None else common & set(offered[ticker])
        if len(left) >= RISK_CLOSES_MIN:
            common = left
            measured.append(ticker)
    if not common:
        return Moves()
    days = sorted(common)[-MOVES_CLOSES_WANTED:]
    measured.sort()
    table = np.log([[offered[ticker][day] for ticker in measured] for day in days])
    return _as_moves(measured, shrunk_covariance(np.diff(table, axis=0)), len(days) - 1)


def shrunk_covariance(returns: Array) -> Array:
    """The covariance (n by n) of daily returns (sessions by n), shrunk by Ledoit and Wolf.

    The sample covariance divides by the number of sessions, as theirs does.
    """
    sessions, count = returns.shape
    centred = returns - returns.mean(axis=0)
    sample = centred.T @ centred / sessions
    mean_variance = np.trace(sample) / count
    target = mean_variance * np.eye(count)
    distance = ((sample - target) ** 2).sum() / count
    squares = centred**2
    noise = ((squares.T @ squares) / sessions - sample**2).sum() / (count * sessions)
    share = min(noise, distance) / distance if distance > 0 else 0.0
    return np.asarray((1 - share) * sample + share * target)


def _as_moves(tickers: Sequence[str], covariance: Array, sessions: int) -> Moves:
    deviations = np.sqrt(np.diag(covariance))
    # What never moves has no correlation: it is told as none.
    scale = np.where(deviations > 0, deviations, 1.0)
    correlations = covariance / np.outer(scale, scale)
    rows, columns = np.tril_indices(len(tickers), k=-1)
    return Moves(
        sessions=sessions,
        tickers=tuple(tickers),
        volatility_pct=tuple(
            round(float(daily) * sqrt(YEAR_BARS) * 100, _PLACES) for daily in deviations
        ),
        correlations=tuple(
            round(float(pair), _PLACES) for pair in np.clip(correlations[rows, columns], -1, 1)
        ),
    )
