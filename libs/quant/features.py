"""Features: TA-Lib indicators of many tickers, free of the price's level, as a model's input.

At a session's close a feature is computed from that bar and those before it, so features of data
that is cut at a session equal those of all the data up to there. Before its warm-up is over, and
where a price has stood still for a whole window, a feature is NaN: TA-Lib would give a number there
that reads as an extreme.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from contracts.strategy import FeatureSpec
from libs.quant.panel import Panel
from libs.quant.performance import YEAR_SESSIONS
from libs.quant.ta import functions as ta

Array = npt.NDArray[np.float64]

# An average forgets by a factor e in its window (Wilder's) or half of it (exponential). After 18 of
# these less than 2e-8 of its first bar is left.
WILDER_WINDOWS = 18
SMOOTH_WINDOWS = 9


@dataclass(frozen=True, slots=True)
class Bars:
    """One ticker's prices, ascending."""

    open: Array
    high: Array
    low: Array
    close: Array
    volume: Array


Compute = Callable[..., Array]


@dataclass(frozen=True, slots=True)
class Formula:
    """How a feature is computed of one ticker's bars, and after how many bars it is to be trusted.

    Both take the parameters of `contracts/indicator.py`, in their order. `still` is the window over
    which a standing price leaves it undefined, where there is one.
    """

    compute: Compute
    warmup: Callable[..., int]
    still: Callable[..., int] | None = None


def features(prices: Panel, specs: Sequence[FeatureSpec]) -> dict[str, Array]:
    """Each feature by its key, shaped as the panel: a row a ticker, a column a session's close."""
    found = {spec.key: np.empty(prices.close.shape) for spec in specs}
    plans = [_Plan.of(spec) for spec in specs]
    columns = (prices.open, prices.high, prices.low, prices.close, prices.volume)
    repeated = (prices.close[:, 1:] == prices.close[:, :-1]).any(axis=1)
    for row, arrays in enumerate(zip(*columns, strict=True)):
        bars = Bars(*arrays)
        stood = _stood_still(bars) if repeated[row] else None
        for plan, table in zip(plans, found.values(), strict=True):
            table[row] = plan.compute(bars, stood)
    return found


def warmup_bars(specs: Sequence[FeatureSpec]) -> int:
    """How many sessions before the first one that is used must be given."""
    return max(FORMULAS[spec.indicator].warmup(*_arguments(spec)) for spec in specs)


def _arguments(spec: FeatureSpec) -> tuple[float, ...]:
    # TA-Lib takes windows as integers only.
    return tuple(int(value) if value == int(value) else value for value in spec.parameters.values())


@dataclass(frozen=True, slots=True)
class _Plan:
    """A formula with its parameters, looked up once for all tickers."""

    formula: Compute
    arguments: tuple[float, ...]
    warmup: int
    still: int | None

    @classmethod
    def of(cls, spec: FeatureSpec) -> "_Plan":
        formula, arguments = FORMULAS[spec.indicator], _arguments(spec)
        still = formula.still(*arguments) if formula.still else None
        return cls(formula.compute, arguments, formula.warmup(*arguments), still)

    def compute(self, bars: Bars, stood: Array | None) -> Array | float:
        if len(bars.close) <= self.warmup:
            return np.nan
        values = self.formula(bars, *self.arguments)
        values[: self.warmup] = np.nan
        if stood is not None and self.still is not None:
            values[stood >= self.still] = np.nan
        return values


def _stood_still(bars: Bars) -> Array:
    """How many bars in a row had no movement at all, at each bar."""
    still = bars.high == bars.low
    still[0] = False
    still[1:] &= bars.close[1:] == bars.close[:-1]
    places = np.arange(len(still), dtype=np.float64)
    return places - np.maximum.accumulate(np.where(still, -1.0, places))


# What a bar alone, or a bar and one before it, says.


def _return(bars: Bars, n: int) -> Array:
    return np.asarray(ta.ROCP(bars.close, n))


def _gap(bars: Bars) -> Array:
    found = np.full_like(bars.open, np.nan)
    np.divide(bars.open[1:], bars.close[:-1], out=found[1:])
    found -= 1
    return found


def _day_range(bars: Bars) -> Array:
    return (bars.high - bars.low) / bars.close


# Windows: each bar in them counts alike, so they are exact once they are full.


def _ratio(one: Array, other: Array) -> Array:
    np.divide(one, other, out=other)
    other -= 1
    return other


def _nonzero(values: Array) -> Array:
    """The values, with NaN for 0: nothing can be measured in it."""
    values[values == 0] = np.nan
    return values


def _sma_distance(bars: Bars, n: int) -> Array:
    return _ratio(bars.close, ta.SMA(bars.close, n))


def _sma_cross(bars: Bars, fast: int, slow: int) -> Array:
    return _ratio(ta.SMA(bars.close, fast), ta.SMA(bars.close, slow))


def _bollinger(bars: Bars, n: int, width: float) -> Array:
    found = bars.close - ta.SMA(bars.close, n)
    found /= _nonzero(ta.STDDEV(bars.close, n, float(width)))
    return np.asarray(found)


def _volatility(bars: Bars, n: int) -> Array:
    found = ta.STDDEV(ta.ROCP(bars.close, 1), n, 1.0)
    found *= sqrt(YEAR_SESSIONS * n / (n - 1))  # TA-Lib's is of the population
    return np.asarray(found)


def _cci(bars: Bars, n: int) -> Array:
    return np.asarray(ta.CCI(bars.high, bars.low, bars.close, n))


def _williams_r(bars: Bars, n: int) -> Array:
    return np.asarray(ta.WILLR(bars.high, bars.low, bars.close, n))


def _stochastic(bars: Bars, n: int, smooth: int) -> Array:
    return np.asarray(ta.STOCHF(bars.high, bars.low, bars.close, n, smooth)[1])


def _aroon(bars: Bars, n: int) -> Array:
    return np.asarray(ta.AROONOSC(bars.high, bars.low, n))


def _high_distance(bars: Bars, n: int) -> Array:
    return _ratio(bars.close, ta.MAX(bars.close, n))


def _volume_ratio(bars: Bars, n: int) -> Array:
    return _ratio(bars.volume, _nonzero(ta.SMA(bars.volume, n)))


def _money_flow(bars: Bars, n: int) -> Array:
    return np.asarray(ta.MFI(bars.high, bars.low, bars.close, bars.volume, n))


# Averages that remember everything, ever less.


def _ema_distance(bars: Bars, n: int) -> Array:
    return _ratio(bars.close, ta.EMA(bars.close, n))


def _macd_histogram(bars: Bars, fast: int, slow: int, signal: int) -> Array:
    found = ta.MACD(bars.close, fast, slow, signal)[2]
    found /= bars.close
    return np.asarray(found)


def _rsi(bars: Bars, n: int) -> Array:
    return np.asarray(ta.RSI(bars.close, n))


def _atr(bars: Bars, n: int) -> Array:
    found = ta.ATR(bars.high, bars.low, bars.close, n)
    found /= bars.close
    return np.asarray(found)


def _adx(bars: Bars, n: int) -> Array:
    return np.asarray(ta.ADX(bars.high, bars.low, bars.close, n))


def _window(n: int, *_: float) -> int:
    return n


FORMULAS: Mapping[str, Formula] = {
    "return": Formula(_return, _window),
    "gap": Formula(_gap, lambda: 1),
    "day_range": Formula(_day_range, lambda: 0),
    "sma_distance": Formula(_sma_distance, _window),
    "ema_distance": Formula(_ema_distance, lambda n: SMOOTH_WINDOWS * n),
    "sma_cross": Formula(_sma_cross, lambda _, slow: slow),
    "rsi": Formula(_rsi, lambda n: WILDER_WINDOWS * n, _window),
    "macd_histogram": Formula(
        _macd_histogram, lambda _, slow, signal: SMOOTH_WINDOWS * (slow + signal)
    ),
    "bollinger": Formula(_bollinger, _window, _window),
    "atr": Formula(_atr, lambda n: WILDER_WINDOWS * n),
    "volatility": Formula(_volatility, lambda n: n + 1),
    "adx": Formula(_adx, lambda n: WILDER_WINDOWS * n, _window),
    "cci": Formula(_cci, _window, _window),
    "williams_r": Formula(_williams_r, _window, _window),
    "stochastic": Formula(_stochastic, lambda n, smooth: n + smooth, _window),
    "aroon": Formula(_aroon, lambda n: n + 1, _window),
    "high_distance": Formula(_high_distance, _window),
    "volume_ratio": Formula(_volume_ratio, _window),
    "money_flow": Formula(_money_flow, lambda n: n + 1, _window),
}
