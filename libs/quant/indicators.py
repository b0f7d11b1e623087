"""Technical indicators of one ticker, computed by TA-Lib at the newest bar.

An indicator is a number or absent with a reason, never a stand-in: RSI on 30 bars is 3 points off
and on constant prices TA-Lib calls it 0, both of which would read as a signal.
"""

from dataclasses import dataclass, fields
from math import sqrt

import numpy as np
import polars as pl

from libs.quant.arrays import Array
from libs.quant.bars import MONTH_BARS, QUARTER_BARS, YEAR_BARS
from libs.quant.ta import talib

# Recursive averages remember their first bars; after 250 their trace in RSI(14) is below 1e-6.
WARMUP_BARS = 250
BARS_WANTED = 500

_COLUMNS = ("high", "low", "close")


class BadBars(ValueError):
    """Bars with a gap, a NaN or a price that is not above zero."""


@dataclass(frozen=True, slots=True)
class Absent:
    """An indicator without a value: the bars wanted and given, or what is undefined about it."""

    indicator: str
    bars_wanted: int
    bars_given: int
    reason: str


@dataclass(frozen=True, slots=True)
class Indicators:
    """Values at the newest bar, in the price's unit unless the name says otherwise.

    `macd*`: MACD(12, 26, 9). `bollinger*`: 20 bars, 2 population standard deviations. `atr_14`:
    Wilder's. `momentum_1m_pct` and `momentum_3m_pct`: return over 21 and 63 bars.
    `volatility_3m_pct`: sample standard deviation of 63 daily log returns times sqrt(252).
    None stands for a value listed in `absent`.
    """

    bars: int
    close: float
    rsi_14: float | None
    macd: float | None
    macd_signal: float | None
    macd_histogram: float | None
    bollinger_upper: float | None
    bollinger_middle: float | None
    bollinger_lower: float | None
    sma_20: float | None
    sma_50: float | None
    sma_200: float | None
    ema_12: float | None
    ema_26: float | None
    atr_14: float | None
    momentum_1m_pct: float | None
    momentum_3m_pct: float | None
    volatility_3m_pct: float | None
    absent: tuple[Absent, ...] = ()

    def values(self) -> dict[str, float | None]:
        """The indicators by name, without `bars` and `absent`."""
        names = (field.name for field in fields(self) if field.name not in {"bars", "absent"})
        return {name: getattr(self, name) for name in names}


_WANTED = {
    "rsi_14": WARMUP_BARS,
    "macd": WARMUP_BARS,
    "macd_signal": WARMUP_BARS,
    "macd_histogram": WARMUP_BARS,
    "bollinger_upper": 20,
    "bollinger_middle": 20,
    "bollinger_lower": 20,
    "sma_20": 20,
    "sma_50": 50,
    "sma_200": 200,
    "ema_12": WARMUP_BARS,
    "ema_26": WARMUP_BARS,
    "atr_14": WARMUP_BARS,
    "momentum_1m_pct": MONTH_BARS + 1,
    "momentum_3m_pct": QUARTER_BARS + 1,
    "volatility_3m_pct": QUARTER_BARS + 1,
}


def indicators(bars: pl.DataFrame) -> Indicators:
    """The indicators of `bars` (columns high, low, close; ascending; adjusted) at the last row.

    Give BARS_WANTED bars and the same number each time: recursive averages depend on where they
    start. Raises BadBars for an empty frame, a null, a NaN or a price that is not above zero.
    """
    high, low, close = (_column(bars, name) for name in _COLUMNS)
    computed: dict[str, float] = {}
    for compute in (_recursive, _windows, _returns):
        computed |= compute(high, low, close)
    if _is_flat(close):
        # Without a change there is no ratio of gains to losses; TA-Lib would say 0, an extreme.
        computed.pop("rsi_14", None)
    values = {name: computed.get(name) for name in _WANTED}
    absent = tuple(_absent(name, len(close)) for name, value in values.items() if value is None)
    return Indicators(bars=len(close), close=float(close[-1]), absent=absent, **values)


AVERAGES = {
    "sma_20": (20, 20),
    "sma_50": (50, 50),
    "sma_200": (200, 200),
    "ema_12": (12, WARMUP_BARS),
    "ema_26": (26, WARMUP_BARS),
}
"""Moving averages of the close as in `Indicators`: their length, and the bars that they want."""


def averages(bars: pl.DataFrame) -> dict[str, Array]:
    """Each of AVERAGES at every row of `bars`, from the rows up to it; NaN where they are too few.
    Raises BadBars."""
    close = _column(bars, "close")
    return {name: _average(close, name, *of) for name, of in AVERAGES.items()}


def _average(close: Array, name: str, length: int, wanted: int) -> Array:
    if len(close) < wanted:
        return np.full(len(close), np.nan)
    compute = talib.SMA if name.startswith("sma") else talib.EMA
    line: Array = compute(close, length)
    line[: wanted - 1] = np.nan
    return line


def average_true_range(bars: pl.DataFrame) -> float | None:
    """Wilder's average true range of 14 bars at the newest one; None with fewer than a quarter of
    bars, after which less than a thirtieth of where it began is left in it. Raises BadBars."""
    if len(bars) <= QUARTER_BARS:
        return None
    high, low, close = (_column(bars, name) for name in _COLUMNS)
    return float(talib.ATR(high, low, close, 14)[-1])


def _column(bars: pl.DataFrame, name: str) -> Array:
    series = bars[name]
    if series.is_empty():
        raise BadBars("no bars; ask for at least one session")
    # TA-Lib refuses integers and strided arrays, and carries one NaN on as zeros.
    values = np.ascontiguousarray(series.cast(pl.Float64).to_numpy(), dtype=np.float64)
    if not np.isfinite(values).all() or (values <= 0).any():
        row = int(np.argmax(~(np.isfinite(values) & (values > 0))))
        raise BadBars(f"{name} in row {row} is not a price above zero; fix the bars")
    return values


def _is_flat(close: Array) -> bool:
    return bool((close == close[0]).all())


def _recursive(high: Array, low: Array, close: Array) -> dict[str, float]:
    if len(close) < WARMUP_BARS:
        return {}
    macd, signal, histogram = talib.MACD(close, 12, 26, 9)
    return {
        "rsi_14": float(talib.RSI(close, 14)[-1]),
        "macd": float(macd[-1]),
        "macd_signal": float(signal[-1]),
        "macd_histogram": float(histogram[-1]),
        "ema_12": float(talib.EMA(close, 12)[-1]),
        "ema_26": float(talib.EMA(close, 26)[-1]),
        "atr_14": float(talib.ATR(high, low, close, 14)[-1]),
    }


def _windows(high: Array, low: Array, close: Array) -> dict[str, float]:  # noqa: ARG001
    computed = {
        f"sma_{bars}": float(talib.SMA(close, bars)[-1])
        for bars in (20, 50, 200)
        if len(close) >= bars
    }
    if len(close) >= 20:
        upper, middle, lower = talib.BBANDS(close, 20, 2.0, 2.0)
        computed["bollinger_upper"] = float(upper[-1])
        computed["bollinger_middle"] = float(middle[-1])
        computed["bollinger_lower"] = float(lower[-1])
    return computed


def _returns(high: Array, low: Array, close: Array) -> dict[str, float]:  # noqa: ARG001
    computed = {
        name: float(close[-1] / close[-1 - bars] - 1) * 100
        for name, bars in (("momentum_1m_pct", MONTH_BARS), ("momentum_3m_pct", QUARTER_BARS))
        if len(close) > bars
    }
    if len(close) > QUARTER_BARS:
        daily = np.diff(np.log(close[-QUARTER_BARS - 1 :]))
        computed["volatility_3m_pct"] = float(np.std(daily, ddof=1)) * sqrt(YEAR_BARS) * 100
    return computed


def _absent(name: str, bars: int) -> Absent:
    wanted = _WANTED[name]
    reason = f"needs {wanted} bars, has {bars}" if bars < wanted else "the price never changed"
    return Absent(name, wanted, bars, reason)
