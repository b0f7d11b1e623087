"""The backtest: decided at a close, filled at the next open, each ticker an account of its own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.quant.strategy.backtest import OPEN, BadTargets, EntrySizing, backtest
from libs.quant.strategy.fills import FillTerms
from libs.quant.strategy.panel import Panel
from tests.unit.quant.strategy import panels

FREE = FillTerms()
COSTLY = FillTerms(fee_bps=10, slippage_bps=5)


def run(prices: Panel, sides: list[list[int]], sizing: EntrySizing, terms: FillTerms = FREE):
    return backtest(prices, np.array(sides, dtype=np.int8), sizing, terms)


def test_a_side_of_a_close_is_filled_at_the_next_open():
    prices = panels.of([10, 20, 40, 50], [11, 22, 44, 55])
    found = run(prices, [[1, 1, 0, 0]], EntrySizing(1_000, shares=10))

    trades = found.trades
    assert (trades.entry[0], trades.entry_price[0]) == (1, 20)
    assert (trades.exit[0], trades.exit_price[0]) == (3, 50)
    assert trades.profit[0] == 300
    assert list(found.equity) == [1_000, 1_000 + 20, 1_000 + 240, 1_300]


def test_a_single_session_trades_nothing():
    found = run(panels.of([10]), [[1]], EntrySizing())
    assert len(found.trades) == 0
    assert list(found.equity) == [100_000]


def test_the_side_of_the_last_close_is_never_filled():
    found = run(panels.of([10, 10, 10]), [[0, 0, 1]], EntrySizing())
    assert len(found.trades) == 0
    assert list(found.equity) == [100_000] * 3


def test_a_position_at_the_end_stays_open_and_is_marked_at_the_last_close():
    found = run(panels.of([10, 10, 10], [10, 10, 12]), [[1, 1, 1]], EntrySizing(100, shares=5))
    assert found.trades.exit[0] == OPEN
    assert found.trades.exit_price[0] == 12
    assert found.trades.profit[0] == 10
    assert found.equity[-1] == 110


def test_a_short_gains_what_the_price_loses():
    found = run(panels.of([10, 10, 8, 8]), [[-1, -1, 0, 0]], EntrySizing(100, shares=5))
    assert found.trades.side[0] == -1
    assert found.trades.profit[0] == 10
    assert list(found.equity) == [100, 100, 110, 110]


def test_a_turn_leaves_and_enters_at_the_same_open():
    found = run(panels.of([10, 10, 20, 10]), [[1, -1, 0, 0]], EntrySizing(100, shares=5))
    assert list(found.trades.side) == [1, -1]
    assert found.trades.exit[0] == found.trades.entry[1] == 2
    assert list(found.trades.profit) == [50, 50]


def test_fee_and_slippage_are_paid_both_ways():
    found = run(panels.of([10, 10, 10, 10]), [[1, 0, 0, 0]], EntrySizing(1_000, shares=10), COSTLY)
    trades = found.trades
    assert trades.entry_price[0] == pytest.approx(10.005)
    assert trades.exit_price[0] == pytest.approx(9.995)
    assert trades.fees[0] == pytest.approx(0.10005 + 0.09995)
    assert found.equity[-1] == pytest.approx(1_000 - 0.1 - 0.2)


def test_the_quantity_is_decided_at_the_close_and_cut_to_the_cash_at_the_open():
    prices = panels.of([10, 20, 20], [10, 20, 20])
    half = run(prices, [[1, 1, 1]], EntrySizing(1_000, position=0.5))
    whole = run(prices, [[1, 1, 1]], EntrySizing(1_000, position=1.0))
    assert half.trades.quantity[0] == 50  # 500 at the close of 10, though the open is 20
    assert whole.trades.quantity[0] == 50  # 100 wanted, the cash pays for 50


def test_nothing_is_borrowed_long_or_short():
    prices = panels.walk(3, 4, 400)
    found = backtest(prices, panels.sides(3, prices), EntrySizing(), COSTLY)
    for part in found.curves():
        sides = np.sign(part.held)
        entered = np.abs(np.diff(sides, axis=1)) > 0
        held = np.abs(part.held[:, 1:])[entered]
        # Between open and close of the first session the price may move, the loan may not come in.
        assert (held <= part.equity[:, 1:][entered] * 1.2).all()
        assert (part.equity - part.held >= -1e-6)[sides > 0].all()


def test_an_account_that_lost_all_trades_no_more():
    found = run(
        panels.of([10, 10, 25, 25, 10, 10]), [[-1, -1, 0, 1, 1, 1]], EntrySizing(100, shares=10)
    )
    assert len(found.trades) == 1
    assert found.equity[-1] == -50


def test_tickers_are_accounts_of_their_own_whatever_their_order():
    prices = panels.walk(5, 3, 300)
    sides = panels.sides(5, prices)
    together = backtest(prices, sides, EntrySizing(3_000, 0.7), COSTLY)
    for row in range(3):
        alone = backtest(
            panels.of(prices.open[row], prices.close[row]),
            sides[row : row + 1],
            EntrySizing(1_000, 0.7),
            COSTLY,
        )
        mine = together.trades.row == row
        assert np.allclose(together.trades.profit[mine], alone.trades.profit, rtol=1e-12)


def test_many_tickers_are_measured_as_few_are():
    """More tickers than are computed at once."""
    prices = panels.walk(6, 40, 120)
    sides = panels.sides(6, prices)
    found = backtest(prices, sides, EntrySizing(40_000), COSTLY)
    curves = np.vstack([part.equity for part in found.curves()])
    assert curves.shape == (40, 120)
    assert found.equity == pytest.approx(curves.sum(axis=0))
    last = 40_000 + found.trades.profit.sum()
    assert found.equity[-1] == pytest.approx(last)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_equity_is_capital_plus_profits_however_it_is_traded(seed: int):
    prices = panels.walk(seed, 3, 60)
    found = backtest(prices, panels.sides(seed, prices), EntrySizing(9_000), FillTerms(5, 5))
    assert found.equity[-1] == pytest.approx(9_000 + found.trades.profit.sum(), abs=0.02 * 60)
    assert found.equity[0] == 9_000


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), cut=st.integers(2, 59))
def test_what_comes_later_changes_nothing_before(seed: int, cut: int):
    prices = panels.walk(seed, 2, 60)
    sides = panels.sides(seed, prices)
    full = backtest(prices, sides, EntrySizing(), COSTLY)
    cut_short = backtest(prices.cut(0, cut), sides[:, :cut], EntrySizing(), COSTLY)
    assert np.array_equal(full.equity[:cut], cut_short.equity)


def test_costs_only_ever_take():
    prices = panels.walk(8, 5, 300)
    sides = panels.sides(8, prices)
    ends = [
        backtest(prices, sides, EntrySizing(), FillTerms(fee, slippage)).equity[-1]
        for fee, slippage in ((0, 0), (5, 0), (0, 5), (5, 5), (50, 50))
    ]
    assert ends[0] > max(ends[1], ends[2])
    assert min(ends[1], ends[2]) > ends[3] > ends[4]


@pytest.mark.parametrize(
    ("sides", "words"),
    [([[1, 0]], r"\(1, 2\), the panel is \(1, 3\)"), ([[2, 0, 0]], "-1, 0 or 1")],
)
def test_sides_that_do_not_fit_are_refused(sides: list[list[int]], words: str):
    with pytest.raises(BadTargets, match=words):
        run(panels.of([10, 10, 10]), sides, EntrySizing())
