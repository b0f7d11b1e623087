"""Panels made for tests."""

import numpy as np
import numpy.typing as npt

from libs.quant.strategy.panel import Panel

Array = npt.NDArray[np.float64]

FIRST_DAY = np.datetime64("2003-01-01")


def of(opens: npt.ArrayLike, closes: npt.ArrayLike | None = None) -> Panel:
    """A panel of these opens and closes, a row a ticker; without closes they are the opens."""
    open_ = np.atleast_2d(np.asarray(opens, dtype=np.float64))
    close = open_ if closes is None else np.atleast_2d(np.asarray(closes, dtype=np.float64))
    days = FIRST_DAY + np.arange(open_.shape[1])
    high, low = np.maximum(open_, close), np.minimum(open_, close)
    tickers = tuple(f"T{row}" for row in range(len(open_)))
    return Panel(tickers, days, open_, high, low, close, np.ones_like(open_))


def walk(seed: int, tickers: int, sessions: int) -> Panel:
    """Prices of a random walk with gaps between close and open."""
    rng = np.random.default_rng(seed)
    close = 50 * np.exp(np.cumsum(rng.normal(0, 0.02, (tickers, sessions)), axis=1))
    before = np.hstack([np.full((tickers, 1), 50.0), close[:, :-1]])
    open_ = before * np.exp(rng.normal(0, 0.01, close.shape))
    high = np.maximum(open_, close) * np.exp(np.abs(rng.normal(0, 0.005, close.shape)))
    low = np.minimum(open_, close) * np.exp(-np.abs(rng.normal(0, 0.005, close.shape)))
    volume = np.round(np.exp(rng.normal(12, 0.5, close.shape)))
    days = FIRST_DAY + np.arange(sessions)
    return Panel(tuple(f"T{row}" for row in range(tickers)), days, open_, high, low, close, volume)


def sides(seed: int, prices: Panel, values: tuple[int, ...] = (-1, 0, 1)) -> npt.NDArray[np.int8]:
    """Sides that change every few sessions."""
    rng = np.random.default_rng(seed)
    found = rng.choice(values, prices.close.shape).astype(np.int8)
    stays = rng.random(prices.close.shape) < 0.8
    for at in range(1, found.shape[1]):
        found[stays[:, at], at] = found[stays[:, at], at - 1]
    return found
