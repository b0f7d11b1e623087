"""Strategies side by side: the best of a row, where it can be told."""

from datetime import UTC, date, datetime
from typing import Any

from contracts.strategy import Period
from contracts.strategy_query import BacktestFigures, StrategyView
from libs.runtime import ids
from services.console.pages.board import compared

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


def line(name: str, *views: StrategyView) -> compared.Line:
    return next(each for each in compared.lines(views) if each.name == name)


def test_the_best_of_a_row_is_the_highest_and_of_drawdowns_the_smallest() -> None:
    one = strategy("one", total_return=0.3, max_drawdown=0.2)
    other = strategy("other", total_return=0.1, max_drawdown=0.1)

    assert line("return", one, other).best == {0}
    assert line("max drawdown", one, other).best == {1}
    assert line("exposure", one, other).best == frozenset()


def test_what_reads_the_same_has_no_winner() -> None:
    one, other = strategy("one", total_return=0.30001), strategy("other", total_return=0.30002)

    assert line("return", one, other).best == frozenset()


def test_over_different_periods_nothing_is_the_best() -> None:
    later = Period(first=date(2012, 1, 3), last=date(2012, 12, 31))
    one, other = strategy("one", total_return=0.3), strategy("other", later, total_return=0.1)

    assert all(not each.best for each in compared.lines((one, other)))


def test_sharpe_ratios_that_two_years_cannot_tell_apart_are_not_resolved() -> None:
    near = (strategy("one", sharpe_ratio=1.3), strategy("other", sharpe_ratio=0.9))
    far = (strategy("one", sharpe_ratio=3.5), strategy("other", sharpe_ratio=0.2))

    assert line("Sharpe ratio", *near).is_noise
    assert not line("Sharpe ratio", *far).is_noise
    assert line("Sharpe ratio", *far).best == {0}
