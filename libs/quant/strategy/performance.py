"""Performance of an equity curve and its trades. Every figure by one stated formula.

A curve is the equity at each session's close; functions work on the last axis, so one call measures
one curve or a table of them. A figure that is not defined is NaN: a ratio without variation, a win
rate without a closed trade. A year is 252 sessions; the risk-free rate is taken as 0.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from libs.quant.arrays import Array
from libs.quant.strategy.backtest import Backtest

YEAR_SESSIONS = 252


def daily_returns(equity: Array) -> Array:
    """Each close against the one before, less 1. Once all is lost (a short can lose more) it stays
    lost: that return is -1, and those after it are 0.
    """
    if equity.min(initial=np.inf) <= 0:
        lost = np.logical_or.accumulate(equity <= 0, axis=-1)
        left = np.where(lost, 0.0, equity)
        before = np.where(lost, 1.0, equity)[..., :-1]
        return np.asarray(np.where(lost[..., :-1], 0.0, left[..., 1:] / before - 1.0))
    ratio: Array = equity[..., 1:] / equity[..., :-1]
    ratio -= 1.0
    return ratio


def total_return(equity: Array) -> Array:
    """Last against first, less 1."""
    return np.asarray(equity[..., -1] / equity[..., 0] - 1.0)


def cagr(equity: Array) -> Array:
    """Compound annual growth: (last / first) ^ (252 / sessions) - 1; -1 where all was lost."""
    growth = np.maximum(equity[..., -1] / equity[..., 0], 0.0)
    return np.asarray(growth ** (YEAR_SESSIONS / max(equity.shape[-1] - 1, 1)) - 1.0)


def sharpe_ratio(returns: Array) -> Array:
    """Mean over sample standard deviation of daily returns, times sqrt(252).

    W. F. Sharpe, The Sharpe Ratio, Journal of Portfolio Management 21 (1), 1994, with 0 for the
    risk-free rate.
    """
    if returns.shape[-1] < 2:
        return np.full(returns.shape[:-1], np.nan)
    return _ratio(returns.mean(axis=-1), returns.std(axis=-1, ddof=1))


def sortino_ratio(returns: Array) -> Array:
    """Mean over downside deviation, times sqrt(252); the latter is the root of the mean square of
    returns below 0, with those above counted as 0.

    F. A. Sortino, L. N. Price, Performance Measurement in a Downside Risk Framework, Journal of
    Investing 3 (3), 1994, with 0 for the wanted return.
    """
    down = np.minimum(returns, 0.0)
    squares = np.einsum("...i,...i->...", down, down)
    return _ratio(returns.mean(axis=-1), np.sqrt(squares / max(returns.shape[-1], 1)))


def _ratio(mean: Array, deviation: Array) -> Array:
    # Equal returns leave a deviation of some last bits, which would make a huge ratio.
    defined = deviation > 1e-12
    yearly = np.sqrt(YEAR_SESSIONS) * mean
    return np.asarray(np.where(defined, yearly / np.where(defined, deviation, 1.0), np.nan))


def max_drawdown(equity: Array) -> Array:
    """The max drawdown: the largest fall from an earlier peak, as a fraction of it."""
    part: Array = np.maximum.accumulate(equity, axis=-1)
    np.divide(equity, part, out=part)
    return np.asarray(1.0 - part.min(axis=-1))


@dataclass(frozen=True, slots=True)
class Performance:
    """A backtest in figures; fractions, not percent. None is "not defined".

    `win_rate` is the part of closed trades with a profit after costs, `total_trades` counts those
    still open too. `turnover` is what was traded in a year over the mean equity; `exposure` is the
    mean over sessions of what is held, long or short, over equity. Sessions at which all is lost
    count for neither.
    """

    sharpe_ratio: float | None
    sortino_ratio: float | None
    win_rate: float | None
    max_drawdown: float
    total_return: float
    cagr: float
    turnover: float
    exposure: float
    total_trades: int
    fees: float


def performance(backtest: Backtest) -> Performance:
    """The figures of the whole account."""
    equity, held = backtest.account
    returns = daily_returns(equity)
    trades = backtest.trades
    traded = (trades.quantity * trades.entry_price).sum()
    traded += (trades.quantity * trades.exit_price)[trades.closed].sum()
    years = max(len(returns), 1) / YEAR_SESSIONS
    alive = equity > 0
    return Performance(
        sharpe_ratio=_defined(sharpe_ratio(returns)),
        sortino_ratio=_defined(sortino_ratio(returns)),
        win_rate=_defined(_part(np.count_nonzero(trades.won), np.count_nonzero(trades.closed))),
        max_drawdown=float(max_drawdown(equity)),
        total_return=float(total_return(equity)),
        cagr=float(cagr(equity)),
        turnover=float(traded / equity[alive].mean() / years),
        exposure=float((held[alive] / equity[alive]).mean()),
        total_trades=len(trades),
        fees=float(trades.fees.sum()),
    )


@dataclass(frozen=True, slots=True, eq=False)
class TickerFigures:
    """The five figures of each ticker's own account; NaN is "not defined"."""

    sharpe_ratio: Array
    max_drawdown: Array
    total_return: Array
    win_rate: Array
    total_trades: npt.NDArray[np.int64]


def by_ticker(backtest: Backtest) -> TickerFigures:
    """The figures of each ticker's account, in the panel's order."""
    tickers = len(backtest.prices.tickers)
    sharpe, drawdown, gain = (np.empty(tickers) for _ in range(3))
    for part in backtest.curves():
        sharpe[part.rows] = sharpe_ratio(daily_returns(part.equity))
        drawdown[part.rows] = max_drawdown(part.equity)
        gain[part.rows] = total_return(part.equity)
    row, won, closed = backtest.trades.row, backtest.trades.won, backtest.trades.closed
    won_by_ticker = np.bincount(row[won], minlength=tickers)
    closed_by_ticker = np.bincount(row[closed], minlength=tickers)
    return TickerFigures(
        sharpe,
        drawdown,
        gain,
        _part(won_by_ticker, closed_by_ticker),
        np.bincount(row, minlength=tickers),
    )


def _part(some: npt.ArrayLike, all_: npt.ArrayLike) -> Array:
    some, all_ = np.asarray(some, dtype=np.float64), np.asarray(all_, dtype=np.float64)
    return np.asarray(np.where(all_ > 0, some / np.maximum(all_, 1.0), np.nan))


def _defined(value: Array) -> float | None:
    return float(value) if np.isfinite(value) else None
