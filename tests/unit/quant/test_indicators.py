"""TA-Lib as we call it, against the textbook formulas written out in plain Python."""

import math
import random
import statistics
from datetime import date, timedelta
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.quant.indicators import WARMUP_BARS, BadBars, averages, indicators


def walk(bars: int, seed: int = 1) -> pl.DataFrame:
    chance = random.Random(seed)
    close, rows = 100.0, []
    for n in range(bars):
        close *= 1 + chance.gauss(0.02, 1.5) / 100
        high, low = close * (1 + chance.random() / 50), close * (1 - chance.random() / 50)
        rows.append((date(2020, 1, 1) + timedelta(days=n), high, low, close))
    return pl.DataFrame(rows, schema=["date", "high", "low", "close"], orient="row")


def ema(values: list[float], span: int) -> list[float]:
    """Seeded with the mean of the first `span` values, then 2 / (span + 1)."""
    smooth = [statistics.fmean(values[:span])]
    for value in values[span:]:
        smooth.append(smooth[-1] + (value - smooth[-1]) * 2 / (span + 1))
    return smooth


def wilder(values: list[float], span: int) -> float:
    smooth = statistics.fmean(values[:span])
    for value in values[span:]:
        smooth = (smooth * (span - 1) + value) / span
    return smooth


def rsi(close: list[float]) -> float:
    changes = [after - before for before, after in pairwise(close)]
    gain = wilder([max(change, 0) for change in changes], 14)
    loss = wilder([max(-change, 0) for change in changes], 14)
    return 100 * gain / (gain + loss)


def true_ranges(bars: pl.DataFrame) -> list[float]:
    highs, lows, closes = (bars[name].to_list() for name in ("high", "low", "close"))
    return [
        max(high, before) - min(low, before)
        for high, low, before in zip(highs[1:], lows[1:], closes, strict=False)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_values_are_those_of_the_textbook_formulas(seed: int) -> None:
    bars = walk(500, seed)
    close = bars["close"].to_list()
    found = indicators(bars)
    fast, slow = ema(close, 12), ema(close, 26)
    line = [a - b for a, b in zip(fast[-len(slow) :], slow, strict=True)]
    middle, spread = statistics.fmean(close[-20:]), statistics.pstdev(close[-20:])
    daily = [math.log(b / a) for a, b in zip(close[-64:], close[-63:], strict=False)]
    expected = {
        "close": close[-1],
        "rsi_14": rsi(close),
        "macd": line[-1],
        "macd_signal": ema(line, 9)[-1],
        "macd_histogram": line[-1] - ema(line, 9)[-1],
        "bollinger_upper": middle + 2 * spread,
        "bollinger_middle": middle,
        "bollinger_lower": middle - 2 * spread,
        "sma_20": middle,
        "sma_50": statistics.fmean(close[-50:]),
        "sma_200": statistics.fmean(close[-200:]),
        "ema_12": fast[-1],
        "ema_26": slow[-1],
        "atr_14": wilder(true_ranges(bars), 14),
        "momentum_1m_pct": (close[-1] / close[-22] - 1) * 100,
        "momentum_3m_pct": (close[-1] / close[-64] - 1) * 100,
        "volatility_3m_pct": statistics.stdev(daily) * math.sqrt(252) * 100,
    }
    assert found.values() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found.absent == ()
    assert found.bars == 500


@given(bars=st.integers(1, 300))
@settings(max_examples=40)
def test_each_value_is_there_or_absent_with_the_number_of_bars(bars: int) -> None:
    found = indicators(walk(bars))
    absent = {gap.indicator: gap for gap in found.absent}
    for name, value in found.values().items():
        assert (value is None) == (name in absent)
        assert value is None or math.isfinite(value)
    for gap in absent.values():
        assert gap.bars_given == bars < gap.bars_wanted
        assert gap.reason == f"needs {gap.bars_wanted} bars, has {bars}"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("rsi_14", 250),
        ("macd", 250),
        ("atr_14", 250),
        ("sma_20", 20),
        ("sma_200", 200),
        ("bollinger_upper", 20),
        ("momentum_1m_pct", 22),
        ("momentum_3m_pct", 64),
    ],
)
def test_one_bar_too_few_is_absent(name: str, wanted: int) -> None:
    assert indicators(walk(wanted - 1)).values()[name] is None
    assert indicators(walk(wanted)).values()[name] is not None


def test_the_warm_up_is_long_enough_to_forget_the_first_bar() -> None:
    bars = walk(1_000)
    short, long = (indicators(bars.tail(n)).values() for n in (WARMUP_BARS, 1_000))
    for name in ("rsi_14", "ema_26", "macd", "atr_14"):
        assert short[name] == pytest.approx(long[name], abs=1e-4)


def test_a_price_that_never_moves_has_no_rsi() -> None:
    flat = walk(300).with_columns(close=pl.lit(50.0), high=pl.lit(50.0), low=pl.lit(50.0))
    found = indicators(flat)
    assert found.rsi_14 is None
    assert found.absent[0].reason == "the price never changed"
    assert (found.sma_20, found.volatility_3m_pct, found.macd) == (50.0, 0.0, 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, None, 0.0, -1.0])
@pytest.mark.parametrize("column", ["high", "low", "close"])
def test_a_gap_inside_is_refused_and_never_carried_on(column: str, bad: float | None) -> None:
    bars = walk(300)
    values = bars[column].to_list()
    values[120] = bad
    with pytest.raises(BadBars, match=f"{column} in row 120"):
        indicators(bars.with_columns(pl.Series(column, values)))


def test_no_bars_are_refused() -> None:
    with pytest.raises(BadBars, match="no bars"):
        indicators(walk(5).head(0))


def test_whole_numbers_and_slices_are_taken() -> None:
    bars = walk(600).with_columns(pl.col("high", "low", "close").round(0).cast(pl.Int64))
    assert indicators(bars.slice(50, 400)).bars == 400


def test_values_at_a_bar_do_not_depend_on_later_bars() -> None:
    bars = walk(700)
    assert indicators(bars.head(500)) == indicators(bars.slice(0, 500))
    changed = bars.with_columns(
        pl.when(pl.int_range(pl.len()) < 500).then(pl.col("close")).otherwise(1.0).alias("close")
    )
    assert indicators(changed.head(500)) == indicators(bars.head(500))


@pytest.mark.parametrize("bars", [10, 60, 249, 250, 400])
def test_the_averages_over_time_end_with_the_indicators_of_the_newest_bar(bars: int) -> None:
    frame = walk(bars)
    newest, lines = indicators(frame).values(), averages(frame)
    for name, line in lines.items():
        assert len(line) == bars
        if newest[name] is None:
            assert math.isnan(line[-1]), name
        else:
            assert line[-1] == pytest.approx(newest[name]), name


def test_an_average_at_a_bar_knows_nothing_of_later_ones() -> None:
    whole, begun = averages(walk(400)), averages(walk(400).head(300))
    for name, line in begun.items():
        assert list(whole[name][:300][~np.isnan(line)]) == list(line[~np.isnan(line)]), name
