"""The figures of a backtest, each by its formula."""

import math

import numpy as np
import pytest

from libs.quant.strategy import performance as measure
from libs.quant.strategy.backtest import EntrySizing, backtest
from libs.quant.strategy.fills import FillTerms
from tests.unit.quant.strategy import panels

CURVE = np.array([100.0, 110.0, 99.0, 99.0, 120.0])


def test_the_figures_of_a_small_curve_are_those_by_hand():
    returns = measure.daily_returns(CURVE)
    by_hand = [0.1, -0.1, 0.0, 120 / 99 - 1]
    assert returns == pytest.approx(by_hand)
    mean = sum(by_hand) / 4
    deviation = math.sqrt(sum((each - mean) ** 2 for each in by_hand) / 3)
    assert measure.sharpe_ratio(returns) == pytest.approx(mean / deviation * math.sqrt(252))
    assert measure.sortino_ratio(returns) == pytest.approx(mean / 0.05 * math.sqrt(252))
    assert measure.max_drawdown(CURVE) == pytest.approx(0.1)
    assert measure.total_return(CURVE) == pytest.approx(0.2)
    assert measure.cagr(CURVE) == pytest.approx(1.2 ** (252 / 4) - 1)


def test_a_table_of_curves_is_measured_row_by_row():
    table = np.vstack([CURVE, CURVE[::-1]])
    for formula in (measure.max_drawdown, measure.total_return, measure.cagr):
        assert formula(table) == pytest.approx([float(formula(row)) for row in table])
    returns = measure.daily_returns(table)
    for ratio in (measure.sharpe_ratio, measure.sortino_ratio):
        assert ratio(returns) == pytest.approx([float(ratio(row)) for row in returns])


def test_a_curve_that_only_rises_never_fell():
    assert measure.max_drawdown(np.array([1.0, 2.0, 3.0])) == 0


def test_a_total_loss_grows_by_minus_one_a_year():
    assert measure.cagr(np.array([100.0, 50.0, -10.0])) == -1


@pytest.mark.parametrize(
    "curve", [[100.0], [100.0, 101.0], [100.0] * 5, [100 * 1.01**n for n in range(9)]]
)
def test_a_ratio_without_variation_is_not_defined(curve: list[float]):
    assert np.isnan(measure.sharpe_ratio(measure.daily_returns(np.array(curve))))


def test_without_a_trade_there_is_no_win_rate_and_no_ratio():
    prices = panels.walk(1, 2, 50)
    found = backtest(prices, np.zeros_like(prices.close, dtype=np.int8), EntrySizing(), FillTerms())
    figures = measure.performance(found)
    assert figures.win_rate is None
    assert figures.sharpe_ratio is None
    assert figures.sortino_ratio is None
    assert (figures.total_trades, figures.turnover, figures.exposure) == (0, 0, 0)
    assert np.isnan(measure.by_ticker(found).win_rate).all()


def test_trades_are_counted_with_the_open_one_and_won_among_the_closed():
    prices = panels.of([10, 10, 12, 12, 12, 11, 11, 11])
    sides = np.array([[1, 0, 0, 1, 0, 1, 1, 1]], dtype=np.int8)
    figures = measure.performance(backtest(prices, sides, EntrySizing(100, shares=1), FillTerms()))
    assert figures.total_trades == 3
    assert figures.win_rate == 0.5


def test_exposure_and_turnover_are_parts_of_equity():
    prices = panels.of([10.0] * 253)
    sides = np.zeros((1, 253), dtype=np.int8)
    sides[0, :126] = 1  # filled at session 1, left at session 127
    figures = measure.performance(backtest(prices, sides, EntrySizing(1_000, 0.5), FillTerms()))
    assert figures.exposure == pytest.approx(0.5 * 126 / 253)
    assert figures.turnover == pytest.approx(2 * 0.5)


def test_the_same_trades_in_half_a_year_are_twice_the_turnover_a_year():
    prices = panels.of([10.0] * 127)
    sides = np.zeros((1, 127), dtype=np.int8)
    sides[0, :63] = 1
    figures = measure.performance(backtest(prices, sides, EntrySizing(1_000, 0.5), FillTerms()))
    assert figures.turnover == pytest.approx(2 * 0.5 * 2)


def test_the_fees_are_those_of_all_fills():
    prices = panels.of([10.0] * 4)
    sides = np.array([[1, 0, 0, 0]], dtype=np.int8)
    found = backtest(prices, sides, EntrySizing(1_000, shares=10), FillTerms(fee_bps=10))
    assert measure.performance(found).fees == pytest.approx(0.2)
