"""Features: TA-Lib indicators of many tickers, free of the price's level, as a model's input.

At a session's close a feature is computed from that bar and those before it, so features of data
that is cut at a session equal those of all the data up to there. Before its warm-up is over, and
where a price has stood still for a whole window, a feature is NaN: TA-Lib would give a number there
that reads as an extreme.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from contracts.strategy import FeatureSpec
from libs.quant.arrays import Array
from libs.quant.strategy.panel import Panel
from libs.quant.strategy.performance import YEAR_SESSIONS
from libs.quant.ta import functions as ta

# An average forgets by a factor e in its window (Wilder's) or half of it (exponential). After 18 of
# these less than 2e-8 of its first bar is left.
WILDER_WINDOWS = 18
SMOOTH_WINDOWS = 9


@dataclass(frozen=True, slots=True)
class TickerBars:
    """One ticker's prices, ascending; averages that several features need are computed once."""

    open: Array
    high: Array
    low: Array
    close: Array
    volume: Array
    averages: dict[int, Array] = field(default_factory=dict)

    def average(self, n: int) -> Array:
        """The simple average of n closes; not to be written to."""
        average = self.averages.get(n)
        if average is None:
            average = self.averages[n] = ta.SMA(self.close, n)
        return average


Compute = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Formula:
    """How a feature is computed of one ticker's bars, and after how many bars it is to be trusted.

    `compute` takes the bars, the row to write to, and the parameters of `contracts/indicator.py` in
    their order; `warmup` takes these too. `still` is the window over
    which a standing price leaves it undefined, where there is one.
    """

    compute: Compute
    warmup: Callable[..., int]
    still: Callable[..., int] | None = None


def features(prices: Panel, specs: Sequence[FeatureSpec]) -> dict[str, Array]:
    """Each feature by its key, shaped as the panel: a row a ticker, a column a session's close."""
    tables = {spec.key: np.empty(prices.close.shape) for spec in specs}
    plans = [_Plan.of(spec) for spec in specs]
    columns = (prices.open, prices.high, prices.low, prices.close, prices.volume)
    repeated = (prices.close[:, 1:] == prices.close[:, :-1]).any(axis=1)
    for row, arrays in enumerate(zip(*columns, strict=True)):
        bars = TickerBars(*arrays)
        stood = _stood_still(bars) if repeated[row] else None
        for plan, table in zip(plans, tables.values(), strict=True):
            plan.compute(bars, table[row], stood)
    return tables


def warmup_bars(specs: Sequence[FeatureSpec]) -> int:
    """The number of sessions needed before the first one that is used."""
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

    def compute(self, bars: TickerBars, out: Array, stood: Array | None) -> None:
        if len(out) <= self.warmup:
            out[:] = np.nan
            return
        self.formula(bars, out, *self.arguments)
        out[: self.warmup] = np.nan
        if stood is not None and self.still is not None:
            out[stood >= self.still] = np.nan


def _stood_still(bars: TickerBars) -> Array:
    """The number of bars in a row without any movement, at each bar."""
    still = bars.high == bars.low
    still[0] = False
    still[1:] &= bars.close[1:] == bars.close[:-1]
    places = np.arange(len(still), dtype=np.float64)
    return places - np.maximum.accumulate(np.where(still, -1.0, places))


# What a bar alone, or a bar and one before it, says.


def _return(bars: TickerBars, out: Array, n: int) -> None:
    out[:] = ta.ROCP(bars.close, n)


def _gap(bars: TickerBars, out: Array) -> None:
    np.divide(bars.open[1:], bars.close[:-1], out=out[1:])
    out -= 1


def _day_range(bars: TickerBars, out: Array) -> None:
    np.subtract(bars.high, bars.low, out=out)
    out /= bars.close


# Windows: each bar in them counts alike, so they are exact once they are full.


def _ratio(one: Array, other: Array, out: Array) -> None:
    np.divide(one, other, out=out)
    out -= 1


def _nonzero(values: Array) -> Array:
    """The values, with NaN for 0: nothing can be measured in it."""
    values[values == 0] = np.nan
    return values


def _sma_distance(bars: TickerBars, out: Array, n: int) -> None:
    _ratio(bars.close, bars.average(n), out)


def _sma_cross(bars: TickerBars, out: Array, fast: int, slow: int) -> None:
    _ratio(bars.average(fast), bars.average(slow), out)


def _bollinger(bars: TickerBars, out: Array, n: int, width: float) -> None:
    np.subtract(bars.close, bars.average(n), out=out)
    out /= _nonzero(ta.STDDEV(bars.close, n, float(width)))


def _volatility(bars: TickerBars, out: Array, n: int) -> None:
    of_population = ta.STDDEV(ta.ROCP(bars.close, 1), n, 1.0)
    np.multiply(of_population, sqrt(YEAR_SESSIONS * n / (n - 1)), out=out)


def _cci(bars: TickerBars, out: Array, n: int) -> None:
    out[:] = ta.CCI(bars.high, bars.low, bars.close, n)


def _williams_r(bars: TickerBars, out: Array, n: int) -> None:
    out[:] = ta.WILLR(bars.high, bars.low, bars.close, n)


def _stochastic(bars: TickerBars, out: Array, n: int, smooth: int) -> None:
    # TA-Lib's STOCHF says the same from the low end, and takes longer for it.
    np.add(ta.SMA(ta.WILLR(bars.high, bars.low, bars.close, n), smooth), 100, out=out)


def _aroon(bars: TickerBars, out: Array, n: int) -> None:
    out[:] = ta.AROONOSC(bars.high, bars.low, n)


def _high_distance(bars: TickerBars, out: Array, n: int) -> None:
    _ratio(bars.close, ta.MAX(bars.close, n), out)


def _volume_ratio(bars: TickerBars, out: Array, n: int) -> None:
    _ratio(bars.volume, _nonzero(ta.SMA(bars.volume, n)), out)


def _money_flow(bars: TickerBars, out: Array, n: int) -> None:
    out[:] = ta.MFI(bars.high, bars.low, bars.close, bars.volume, n)


# Averages that remember everything, ever less.


def _ema_distance(bars: TickerBars, out: Array, n: int) -> None:
    _ratio(bars.close, ta.EMA(bars.close, n), out)


def _macd_histogram(bars: TickerBars, out: Array, fast: int, slow: int, signal: int) -> None:
    np.divide(ta.MACD(bars.close, fast, slow, signal)[2], bars.close, out=out)


def _rsi(bars: TickerBars, out: Array, n: int) -> None:
    out[:] = ta.RSI(bars.close, n)


def _atr(bars: TickerBars, out: Array, n: int) -> None:
    np.divide(ta.ATR(bars.high, bars.low, bars.close, n), bars.close, out=out)


def _adx(bars: TickerBars, out: Array, n: int) -> None:
    out[:] = ta.ADX(bars.high, bars.low, bars.close, n)


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
