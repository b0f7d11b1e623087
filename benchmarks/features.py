"""Features of 500 tickers over 10 years, and a TA-Lib loop: `python -m benchmarks.features`.

The loop calls TA-Lib's public functions for each ticker and writes what they give into tables. Ours
computes the same indicators, turns each into a number without the price's level, and keeps the
warm-up out. Times are CPU seconds of this process, medians of rounds that take turns.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.report import table
from contracts.indicator import INDICATORS
from contracts.strategy import FeatureSpec
from libs.quant.strategy.features import Bars, features
from libs.quant.strategy.panel import Panel
from libs.quant.ta import talib

TICKERS: Final = 500
SESSIONS: Final = 2_520
ROUNDS_DEFAULT: Final = 7
SHARE_MAX: Final = 1.1

Array = npt.NDArray[np.float64]

# What a loop would call for each of our features, with the defaults of contracts/indicator.py.
# `gap` and `day_range` need no TA-Lib and are left out on both sides.
LOOP: Final[dict[str, Callable[[Bars], Any]]] = {
    "return": lambda b: talib.ROCP(b.close, 1),
    "sma_distance": lambda b: talib.SMA(b.close, 50),
    "ema_distance": lambda b: talib.EMA(b.close, 20),
    "sma_cross": lambda b: talib.SMA(b.close, 20) - talib.SMA(b.close, 50),
    "rsi": lambda b: talib.RSI(b.close, 14),
    "macd_histogram": lambda b: talib.MACD(b.close, 12, 26, 9)[2],
    "bollinger": lambda b: talib.BBANDS(b.close, 20, 2.0, 2.0)[0],
    "atr": lambda b: talib.ATR(b.high, b.low, b.close, 14),
    "volatility": lambda b: talib.STDDEV(talib.ROCP(b.close, 1), 63),
    "adx": lambda b: talib.ADX(b.high, b.low, b.close, 14),
    "cci": lambda b: talib.CCI(b.high, b.low, b.close, 20),
    "williams_r": lambda b: talib.WILLR(b.high, b.low, b.close, 14),
    "stochastic": lambda b: talib.STOCHF(b.high, b.low, b.close, 14, 3)[1],
    "aroon": lambda b: talib.AROONOSC(b.high, b.low, 25),
    "high_distance": lambda b: talib.MAX(b.close, 250),
    "volume_ratio": lambda b: talib.SMA(b.volume, 20),
    "money_flow": lambda b: talib.MFI(b.high, b.low, b.close, b.volume, 14),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS_DEFAULT)
    rounds = parser.parse_args().rounds
    assert set(LOOP) == set(INDICATORS) - {"gap", "day_range"}
    prices = make_prices()
    specs = [FeatureSpec(indicator=name) for name in LOOP]
    runs = {"TA-Lib loop": lambda: loop(prices), "deskbus": lambda: features(prices, specs)}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            started = time.process_time()
            run()
            seconds[name].append(time.process_time() - started)
    print(render({name: values[1:] for name, values in seconds.items()}))  # the first warms up


def render(seconds: dict[str, list[float]]) -> str:
    """The table, and the share of the loop, round by round."""
    rows = [
        (name, f"{statistics.median(values) * 1e3:,.0f}", f"{min(values) * 1e3:,.0f}")
        for name, values in seconds.items()
    ]
    share = statistics.median(
        mine / loops for mine, loops in zip(*reversed(seconds.values()), strict=True)
    )
    head = (f"{len(LOOP)} indicators", "CPU-ms, median", "CPU-ms, least")
    said = "met" if share <= SHARE_MAX else "MISSED"
    return f"{table(head, rows)}\n\n{share:.2f} of the loop; at most {SHARE_MAX}: {said}"


def make_prices() -> Panel:
    """Random walks with a high and a low around each close."""
    rng = np.random.default_rng(0)
    shape = (TICKERS, SESSIONS)
    close = 50 * np.exp(np.cumsum(rng.normal(0, 0.02, shape), axis=1))
    high = close * np.exp(np.abs(rng.normal(0, 0.01, shape)))
    low = close * np.exp(-np.abs(rng.normal(0, 0.01, shape)))
    volume = np.round(np.exp(rng.normal(12, 0.5, shape)))
    days = np.datetime64("2003-01-01") + np.arange(SESSIONS)
    return Panel(tuple(f"T{n}" for n in range(TICKERS)), days, close, high, low, close, volume)


def loop(prices: Panel) -> dict[str, Array]:
    """What a user of TA-Lib would write."""
    found = {name: np.empty(prices.close.shape) for name in LOOP}
    for row in range(len(prices.tickers)):
        bars = Bars(
            prices.open[row],
            prices.high[row],
            prices.low[row],
            prices.close[row],
            prices.volume[row],
        )
        for name, compute in LOOP.items():
            found[name][row] = compute(bars)
    return found


if __name__ == "__main__":
    main()
