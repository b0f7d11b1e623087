"""The same sides on the same real prices give what vectorbt and backtesting.py say.

tests/oracles/README.md has the command that made their answers.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from libs.quant.strategy import performance as measure
from libs.quant.strategy.backtest import Backtest, EntrySizing, backtest
from libs.quant.strategy.fills import FillTerms
from libs.quant.strategy.panel import Panel
from tests.oracles import scenario
from tests.unit.quant.strategy import panels

# Their sums are in another order than ours: the last bits differ, nothing else may.
TOLERANCE = 1e-9
ORACLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "oracles" / "backtest.json").read_text()
)


@pytest.fixture(scope="module")
def prices() -> Panel:
    _, opens, closes = scenario.real_prices()
    return panels.of(opens, closes)


def run(prices: Panel, *, short: bool, sizing: EntrySizing, slippage_bps: float) -> Backtest:
    sides = scenario.sides(prices.close)
    assert scenario.fingerprint(sides) == ORACLE["sides_sha256"]
    wanted = sides if short else np.maximum(sides, 0)
    return backtest(prices, wanted, sizing, FillTerms(scenario.FEE_BPS, slippage_bps))


def curves(found: Backtest) -> np.ndarray:
    return np.vstack([part.equity for part in found.curves()])


def near(value: Any) -> Any:
    return pytest.approx(value, rel=TOLERANCE)


def points(equity: np.ndarray) -> list[float]:
    return [*equity[:: scenario.POINTS_EVERY], equity[-1]]


CAPITAL = scenario.CAPITAL_EACH * len(scenario.TICKERS)
LOTS = EntrySizing(CAPITAL, shares=scenario.LOT_SHARES)


@pytest.mark.parametrize(
    ("case", "short", "sizing"),
    [
        ("vectorbt_long_flat_all_in", False, EntrySizing(CAPITAL)),
        ("vectorbt_long_short_lots", True, LOTS),
    ],
)
def test_equity_and_figures_are_vectorbts(
    prices: Panel, case: str, short: bool, sizing: EntrySizing
):
    found = run(prices, short=short, sizing=sizing, slippage_bps=scenario.SLIPPAGE_BPS)
    equity, figures = curves(found), measure.by_ticker(found)
    # vectorbt counts the first session, at whose open nothing can be held yet, as a return of 0.
    returns = np.pad(measure.daily_returns(equity), ((0, 0), (1, 0)))

    for row, ticker in enumerate(scenario.TICKERS):
        said = ORACLE[case][ticker]
        assert points(equity[row]) == near(said["equity"])
        assert figures.total_return[row] == near(said["total_return"])
        assert measure.sharpe_ratio(returns[row]) == near(said["sharpe_ratio"])
        assert measure.sortino_ratio(returns[row]) == near(said["sortino_ratio"])
        assert figures.max_drawdown[row] == near(said["max_drawdown"])
        assert figures.total_trades[row] == said["trades"]
        assert figures.win_rate[row] == near(said["win_rate"])


@pytest.mark.parametrize(
    ("case", "short"),
    [("backtesting_long_flat_lots", False), ("backtesting_long_short_lots", True)],
)
def test_equity_and_figures_are_those_of_backtesting_py(prices: Panel, case: str, short: bool):
    found = run(prices, short=short, sizing=LOTS, slippage_bps=0)
    equity, figures = curves(found), measure.by_ticker(found)

    for row, ticker in enumerate(scenario.TICKERS):
        said = ORACLE[case][ticker]
        assert points(equity[row]) == near(said["equity"])
        assert figures.total_return[row] == near(said["total_return"])
        assert figures.max_drawdown[row] == near(said["max_drawdown"])
        closed = found.trades.closed & (found.trades.row == row)
        assert closed.sum() == said["closed_trades"]
        assert figures.win_rate[row] == near(said["win_rate"])


def test_the_comparison_sees_a_day_of_difference(prices: Panel):
    """Filled at the same open at which it was decided, the figures are others."""
    sides = np.maximum(scenario.sides(prices.close), 0)
    early = np.hstack([sides[:, 1:], sides[:, -1:]])
    terms = FillTerms(scenario.FEE_BPS, scenario.SLIPPAGE_BPS)
    found = backtest(prices, early, EntrySizing(CAPITAL), terms)
    said = ORACLE["vectorbt_long_flat_all_in"]["AAPL"]
    assert measure.by_ticker(found).total_return[0] != pytest.approx(said["total_return"], rel=0.01)
