"""Strategies side by side: the best of a row, where it can be told."""

from datetime import UTC, date, datetime
from typing import Any

from contracts.strategy import Period
from contracts.strategy_query import BacktestFigures, StrategyView
from libs.report.strategies.tables import compared
from libs.runtime import ids

HELD = Period(first=date(2011, 1, 3), last=date(2012, 12, 31))


def strategy(name: str, held_out: Period = HELD, **figures: Any) -> StrategyView:
    given = {
        "total_return": 0.1,
        "benchmark_return": 0.2,
        "max_drawdown": 0.1,
        "total_trades": 10,
        "turnover": 1.0,
        "exposure": 0.5,
        "currencies": {"AAPL": "USD"},
    }
    return StrategyView(
        name=name,
        cycle_id=ids.cycle_id("test", name),
        as_of=date(2013, 1, 2),
        designed_at=datetime(2013, 1, 2, tzinfo=UTC),
        path=f"{name}.yaml",
        hypothesis="",
        universe=("AAPL",),
        features=("rsi",),
        model="gradient_boosting",
        horizon_bars=5,
        train=Period(first=date(2005, 1, 3), last=date(2010, 12, 31)),
        held_out=held_out,
        ended="assessed",
        backtest=BacktestFigures(**(given | figures)),
    )


def best(label: str, *views: StrategyView) -> set[int]:
    """The places of the marked ones."""
    (row,) = (it for it in compared(views).rows if it.cells[0].text == label)
    return {place for place, cell in enumerate(row.cells[1:]) if cell.is_strong}


def test_the_best_of_a_row_is_the_highest_and_of_drawdowns_the_smallest() -> None:
    one = strategy("one", total_return=0.3, max_drawdown=0.2)
    other = strategy("other", total_return=0.1, max_drawdown=0.1)

    assert best("return", one, other) == {0}
    assert best("max drawdown", one, other) == {1}
    assert best("exposure", one, other) == set()


def test_what_reads_the_same_has_no_winner() -> None:
    one, other = strategy("one", total_return=0.30001), strategy("other", total_return=0.30002)

    assert best("return", one, other) == set()


def test_over_different_periods_nothing_is_the_best() -> None:
    later = Period(first=date(2012, 1, 3), last=date(2012, 12, 31))
    views = (strategy("one", total_return=0.3), strategy("other", later, total_return=0.1))

    assert not any(cell.is_strong for row in compared(views).rows for cell in row.cells)


def test_sharpe_ratios_that_two_years_cannot_tell_apart_are_not_resolved() -> None:
    near = (strategy("one", sharpe_ratio=1.3), strategy("other", sharpe_ratio=0.9))
    far = (strategy("one", sharpe_ratio=3.5), strategy("other", sharpe_ratio=0.2))

    assert "not resolved" in compared(near).notes[0].text
    assert compared(far).notes == ()
    assert best("Sharpe", *near) == set()
    assert best("Sharpe", *far) == {0}
