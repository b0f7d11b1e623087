"""How tickers move together: a covariance of daily returns, shrunk so that it can be forecast with.

The sample covariance of a year of days overstates what stands out in it. Ledoit and Wolf ("A
well-conditioned estimator for large-dimensional covariance matrices", 2004) draw it towards an
identity times the mean variance, by as much as the returns themselves say is noise. Returns are
logarithmic, between the sessions that all tickers measured have a close of; a year is 252 of them.
"""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
import polars as pl

from contracts.facts import MOVES_TICKERS_MAX, Moves
from libs.quant.arrays import Array, Mask
from libs.quant.bars import YEAR_BARS
from libs.quant.risk.score import RISK_CLOSES_MIN

MOVES_CLOSES_WANTED = YEAR_BARS + 1
"""A year of returns: long enough for a hundred of correlations, short enough to be of today."""
_PLACES = 4


def moves(bars: Mapping[str, pl.DataFrame]) -> Moves:
    """The movements of the tickers by the `close` of their adjusted bars at each `date`, the first
    ones of them where there are too many.

    They share their sessions: those with the longest history come first, and one that would leave
    less than RISK_CLOSES_MIN sessions in common is not measured, nor is one with a close that is no
    price above zero.
    """
    offered = {
        ticker: (frame["date"].to_numpy(), frame["close"].to_numpy())
        for ticker, frame in list(bars.items())[:MOVES_TICKERS_MAX]
    }
    offered = {
        ticker: (days, closes)
        for ticker, (days, closes) in offered.items()
        if (np.isfinite(closes) & (closes > 0)).all()
    }
    if not offered:
        return Moves()
    sessions = np.unique(np.concatenate([days for days, _ in offered.values()]))
    table = np.full((sessions.size, len(offered)), np.nan)
    for column, (days, closes) in enumerate(offered.values()):
        table[np.searchsorted(sessions, days), column] = closes
    common, measured = _measured(~np.isnan(table))
    if not measured:
        return Moves()
    tickers = list(offered)
    measured.sort(key=tickers.__getitem__)
    returns = np.diff(np.log(table[common][-MOVES_CLOSES_WANTED:, measured]), axis=0)
    return _as_moves([tickers[column] for column in measured], returns)


def _measured(traded: Mask) -> tuple[Mask, list[int]]:
    """The sessions that are shared, and the columns that share them. `traded` has a row a session
    and a column a ticker."""

    def longest_first(column: int) -> tuple[int, bytes]:
        # Of equally long histories the one that traded where they first differ.
        return -int(traded[:, column].sum()), (~traded[:, column]).tobytes()

    common = np.ones(len(traded), dtype=np.bool_)
    measured = []
    for column in sorted(range(traded.shape[1]), key=longest_first):
        left = common & traded[:, column]
        if left.sum() >= RISK_CLOSES_MIN:
            common = left
            measured.append(column)
    return common, measured


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


def _as_moves(tickers: Sequence[str], returns: Array) -> Moves:
    covariance = shrunk_covariance(returns)
    deviations = np.sqrt(np.diag(covariance))
    # What never moves has no correlation: it is told as none.
    scale = np.where(deviations > 0, deviations, 1.0)
    correlations = covariance / np.outer(scale, scale)
    rows, columns = np.tril_indices(len(tickers), k=-1)
    return Moves(
        sessions=len(returns),
        tickers=tuple(tickers),
        volatility_pct=tuple(
            round(float(daily) * sqrt(YEAR_BARS) * 100, _PLACES) for daily in deviations
        ),
        correlations=tuple(
            round(float(pair), _PLACES) for pair in np.clip(correlations[rows, columns], -1, 1)
        ),
    )
