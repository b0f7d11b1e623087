"""Which indicators a strategy may use, and what parameters each takes. Data only.

What each means and how it is computed stands in `libs/quant/strategy/features.py`; a test compares
both.
"""

from collections.abc import Mapping
from dataclasses import dataclass

BARS_MAX = 250
"""The longest window of bars that counts each of them alike."""
SMOOTH_BARS_MAX = 80
"""The longest exponential average: its memory reaches back nine times as far."""
WILDER_BARS_MAX = 50
"""The longest of Wilder's averages: their memory reaches back eighteen times as far."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that an indicator takes: its default and both ends of what is allowed."""

    default: float
    least: float
    most: float
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Indicator:
    """One indicator: what it tells, its parameters in order, and the columns that it reads."""

    tells: str
    parameters: Mapping[str, Parameter]
    columns: tuple[str, ...] = ("close",)


def _bars(default: int, least: int = 2, most: int = BARS_MAX) -> Parameter:
    return Parameter(default, least, most)


def _smooth(default: int, least: int = 2) -> Parameter:
    return Parameter(default, least, SMOOTH_BARS_MAX)


def _wilder(default: int) -> Parameter:
    return Parameter(default, 2, WILDER_BARS_MAX)


_HLC = ("high", "low", "close")

INDICATORS: Mapping[str, Indicator] = {
    "return": Indicator("close against the close some bars ago", {"bars": _bars(1, least=1)}),
    "gap": Indicator("open against the close before", {}, ("open", "close")),
    "day_range": Indicator("high minus low, of the close", {}, _HLC),
    "sma_distance": Indicator("close against its simple average", {"bars": _bars(50)}),
    "ema_distance": Indicator("close against its exponential average", {"bars": _smooth(20)}),
    "sma_cross": Indicator(
        "fast simple average against the slow one", {"fast": _bars(20), "slow": _bars(50)}
    ),
    "rsi": Indicator("Wilder's relative strength, 0 to 100", {"bars": _wilder(14)}),
    "macd_histogram": Indicator(
        "MACD minus its signal, of the close",
        {"fast": _smooth(12), "slow": _smooth(26), "signal": _bars(9, least=1, most=20)},
    ),
    "bollinger": Indicator(
        "distance from the average in widths of the band: -1 lower edge, 1 upper edge",
        {"bars": _bars(20), "width": Parameter(2.0, 0.5, 5.0, whole=False)},
    ),
    "atr": Indicator("Wilder's average true range, of the close", {"bars": _wilder(14)}, _HLC),
    "volatility": Indicator("standard deviation of daily returns, a year", {"bars": _bars(63)}),
    "adx": Indicator("Wilder's strength of trend, 0 to 100", {"bars": _wilder(14)}, _HLC),
    "cci": Indicator("commodity channel index", {"bars": _bars(20)}, _HLC),
    "williams_r": Indicator(
        "where in the range the close is, -100 to 0", {"bars": _bars(14)}, _HLC
    ),
    "stochastic": Indicator(
        "where in the range the close is, smoothed, 0 to 100",
        {"bars": _bars(14), "smooth": _bars(3, least=1)},
        _HLC,
    ),
    "aroon": Indicator(
        "age of the low minus age of the high, -100 to 100", {"bars": _bars(25)}, _HLC
    ),
    "high_distance": Indicator("close against the highest close", {"bars": _bars(250)}),
    "volume_ratio": Indicator("volume against its average", {"bars": _bars(20)}, ("volume",)),
    "money_flow": Indicator("money flow index, 0 to 100", {"bars": _bars(14)}, (*_HLC, "volume")),
}
