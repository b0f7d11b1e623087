"""A strategy on its held-out period: from cash, on that period alone, and nothing from after it."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest

from contracts.strategy import StrategySpec
from libs.quant.strategy.backtest import OPEN
from libs.quant.strategy.held_out import try_held_out
from libs.quant.strategy.models import BadModel, Layers, Model
from libs.quant.strategy.panel import Panel
from libs.quant.strategy.training import CannotTrain
from tests.unit.quant.strategy import panels

START = date(2003, 1, 1)
FIRST, END = 300, 480
PRICES = panels.walk(31, 2, 520)
# Says "up" the further the price is below its average.
MODEL = Model(
    ("sma_distance(10)",),
    np.zeros(1),
    np.ones(1),
    Layers((np.array([[-50.0]]),), (np.zeros(1),)),
)


def day(place: int) -> date:
    return START + timedelta(days=place)


def spec(**changes: Any) -> StrategySpec:
    given = {
        "name": "below",
        "hypothesis": "What is below its average comes back.",
        "universe": ["T0", "T1"],
        "features": [{"indicator": "sma_distance", "parameters": {"bars": 10}}],
        "model": {"kind": "logistic"},
        "entry": {"long": [{"of": "probability", "above": 0.7}]},
        "exit": {"long": [{"of": "probability", "below": 0.5}], "stop_loss_pct": 9},
        "sizing": {"capital": 20_000, "position_pct": 80},
        "train": {"first": day(0), "last": day(FIRST - 1)},
        "held_out": {"first": day(FIRST), "last": day(END - 1)},
    }
    return StrategySpec.model_validate(given | changes)


def changed(prices: Panel, first: int, end: int) -> Panel:
    other = panels.walk(77, 2, 520)
    rows = {}
    for name in ("open", "high", "low", "close", "volume"):
        rows[name] = getattr(prices, name).copy()
        rows[name][:, first:end] = getattr(other, name)[:, first:end]
    return Panel(prices.tickers, prices.sessions, **rows)


def test_it_begins_with_cash_and_trades_within_the_period_only():
    found = try_held_out(spec(), PRICES, MODEL)

    assert len(found.prices) == END - FIRST
    assert found.prices.sessions[0].astype(object) == day(FIRST)
    assert found.strategy.equity[0] == 20_000
    trades = found.strategy.trades
    assert len(trades) > 5
    assert trades.entry.min() >= 1
    assert trades.exit[trades.exit != OPEN].max() < END - FIRST


def test_it_enters_where_its_rules_say_at_the_first_close_already():
    found = try_held_out(spec(), PRICES, MODEL)
    average = np.convolve(PRICES.close[0], np.ones(10) / 10, "valid")
    distance = PRICES.close[0, FIRST:END] / average[FIRST - 9 : END - 9] - 1
    above = 1 / (1 + np.exp(50 * distance)) > 0.7
    held = found.sides[0] == 1
    entered = held & ~np.concatenate([[False], held[:-1]])
    assert above[entered].all()
    assert entered.any()


def test_nothing_after_the_period_changes_it_nor_anything_long_before():
    whole = try_held_out(spec(), PRICES, MODEL)
    for other in (changed(PRICES, END, 520), changed(PRICES, 0, FIRST - 10)):
        found = try_held_out(spec(), other, MODEL)
        assert np.array_equal(found.strategy.equity, whole.strategy.equity)


def test_a_change_within_changes_nothing_before_it():
    whole = try_held_out(spec(), PRICES, MODEL)
    found = try_held_out(spec(), changed(PRICES, 400, 520), MODEL)
    before = slice(0, 400 - FIRST)
    assert np.array_equal(found.sides[:, before], whole.sides[:, before])
    assert np.array_equal(found.strategy.equity[before], whole.strategy.equity[before])
    assert not np.array_equal(found.strategy.equity, whole.strategy.equity)


def test_the_benchmark_buys_all_at_the_second_open_and_holds():
    found = try_held_out(spec(), PRICES, MODEL)
    trades = found.benchmark.trades
    assert trades.entry.tolist() == [1, 1]
    assert trades.exit.tolist() == [OPEN, OPEN]
    paid = found.prices.open[:, 1] * 1.0005 * 1.0005
    assert found.benchmark.equity[-1] == pytest.approx(
        (10_000 * found.prices.close[:, -1] / paid).sum()
    )


def test_a_period_outside_the_prices_is_named():
    late = {"first": day(FIRST), "last": day(900)}
    with pytest.raises(CannotTrain) as caught:
        try_held_out(spec(held_out=late), PRICES, MODEL)
    assert caught.value.field == "held_out.last"


def test_a_model_of_other_features_is_refused():
    other = spec(features=[{"indicator": "return", "parameters": {"bars": 5}}])
    with pytest.raises(BadModel, match=r"reads sma_distance\(10\)"):
        try_held_out(other, PRICES, MODEL)
