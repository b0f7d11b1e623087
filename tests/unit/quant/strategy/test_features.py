"""Features: every indicator, free of the price's level, and never from what comes later."""

import numpy as np
import pytest

from contracts.indicator import INDICATORS
from contracts.strategy import FeatureSpec
from libs.quant.strategy.features import FORMULAS, features, warmup_bars
from libs.quant.strategy.panel import Panel
from libs.quant.ta import talib
from tests.unit.quant.strategy import panels

ALL = [FeatureSpec(indicator=name) for name in INDICATORS]
SESSIONS = 700
PRICES = panels.walk(11, 3, SESSIONS)
FULL = features(PRICES, ALL)


def spec(indicator: str, **parameters: float) -> FeatureSpec:
    return FeatureSpec(indicator=indicator, parameters=parameters)


def scaled(prices: Panel, by: float) -> Panel:
    rows = (prices.open * by, prices.high * by, prices.low * by, prices.close * by, prices.volume)
    return Panel(prices.tickers, prices.sessions, *rows)


def at_limits(name: str) -> list[FeatureSpec]:
    """The feature with the least and the most of each parameter that the others allow."""
    rows = INDICATORS[name].parameters
    least = {key: row.least for key, row in rows.items()}
    most = {key: row.most for key, row in rows.items()}
    if "fast" in rows:
        least["slow"] += 1
        most["fast"] -= 1
    return [FeatureSpec(indicator=name, parameters=each) for each in (least, most)]


def test_every_indicator_has_a_formula_and_every_formula_an_indicator():
    assert set(FORMULAS) == set(INDICATORS)


@pytest.mark.parametrize("feature", ALL, ids=lambda f: f.indicator)
@pytest.mark.parametrize("cut", [1, 2, 57, 300, 433, 699])
def test_features_of_cut_data_equal_the_full_ones_up_to_the_cut(feature: FeatureSpec, cut: int):
    found = features(PRICES.cut(0, cut), [feature])[feature.key]
    assert np.array_equal(found, FULL[feature.key][:, :cut], equal_nan=True)


@pytest.mark.parametrize("feature", ALL, ids=lambda f: f.indicator)
def test_a_feature_is_a_number_exactly_from_its_warm_up_on(feature: FeatureSpec):
    known = np.isfinite(FULL[feature.key])
    warmup = warmup_bars([feature])
    assert not known[:, :warmup].any()
    assert known[:, warmup:].all()


@pytest.mark.parametrize("name", INDICATORS)
def test_a_feature_can_be_computed_at_the_limits_of_its_parameters(name: str):
    prices = panels.walk(12, 1, 1_200)
    for feature in at_limits(name):
        assert warmup_bars([feature]) <= 1_000
        assert np.isfinite(features(prices, [feature])[feature.key][:, -1]).all()


@pytest.mark.parametrize("feature", ALL, ids=lambda f: f.indicator)
def test_a_feature_does_not_know_the_level_of_the_price(feature: FeatureSpec):
    found = features(scaled(PRICES, 8.0), [feature])[feature.key]
    assert np.allclose(found, FULL[feature.key], rtol=1e-7, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("feature", ALL, ids=lambda f: f.indicator)
def test_after_the_warm_up_it_no_longer_matters_where_the_data_begin(feature: FeatureSpec):
    start = SESSIONS - warmup_bars([feature]) - 1
    late = features(PRICES.cut(start, SESSIONS), [feature])[feature.key][:, -1]
    full = FULL[feature.key][:, -1]
    assert np.allclose(late, full, rtol=1e-5, atol=1e-5 * np.nanstd(FULL[feature.key]))


def test_the_values_are_those_of_talib():
    row = PRICES.close[1]
    middle = talib.SMA(row, 20)
    known = [
        (spec("rsi"), talib.RSI(row, 14)),
        (spec("sma_distance", bars=20), row / middle - 1),
        (spec("macd_histogram"), talib.MACD(row, 12, 26, 9)[2] / row),
        (spec("bollinger"), (row - middle) / (2 * talib.STDDEV(row, 20))),
        (spec("return", bars=5), talib.ROCP(row, 5)),
        (spec("stochastic"), talib.STOCHF(PRICES.high[1], PRICES.low[1], row, 14, 3)[1]),
        (spec("adx"), talib.ADX(PRICES.high[1], PRICES.low[1], row, 14)),
    ]
    for feature, wanted in known:
        found = features(PRICES, [feature])[feature.key][1]
        after = slice(warmup_bars([feature]), None)
        assert found[after] == pytest.approx(wanted[after], rel=1e-9), feature.key


def test_gap_and_range_and_volatility_are_those_by_hand():
    prices = panels.of([10, 12, 9, 11], [11, 10, 10, 12])
    found = features(prices, [spec("gap"), spec("day_range"), spec("volatility", bars=2)])
    assert found["gap()"][0, 1:] == pytest.approx([12 / 11 - 1, -0.1, 0.1])
    assert found["day_range()"][0] == pytest.approx([1 / 11, 2 / 10, 1 / 10, 1 / 12])
    last_two = np.array([10 / 10, 12 / 10])
    assert found["volatility(2)"][0, 3] == pytest.approx(last_two.std(ddof=1) * np.sqrt(252))


OSCILLATORS = [name for name, formula in FORMULAS.items() if formula.still is not None]


@pytest.mark.parametrize("name", OSCILLATORS)
def test_an_oscillator_of_a_price_that_stands_still_is_not_a_number(name: str):
    prices = panels.of(np.full((1, 400), 10.0))
    feature = spec(name)
    assert np.isnan(features(prices, [feature])[feature.key]).all()


@pytest.mark.parametrize("name", OSCILLATORS)
def test_it_is_one_again_once_the_price_has_moved(name: str):
    prices = panels.walk(13, 1, 600)
    for row in (prices.open, prices.high, prices.low, prices.close):
        row[0, 500:540] = 50.0
    feature = spec(name)
    found = features(prices, [feature])[feature.key][0]
    assert np.isnan(found[539])
    assert np.isfinite(found[499])
    assert np.isfinite(found[580])


def test_one_ticker_does_not_see_another():
    alone = features(panels.of(PRICES.open[2], PRICES.close[2]), [spec("rsi")])["rsi(14)"]
    assert np.array_equal(alone[0], FULL["rsi(14)"][2], equal_nan=True)


def test_the_warm_up_of_several_is_that_of_the_longest():
    assert warmup_bars([spec("gap"), spec("rsi"), spec("return", bars=5)]) == 18 * 14
