"""Strategies side by side: who is best by each figure, where that can be told at all. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from contracts.http import StrategyDetail
from contracts.strategy_query import StrategyView
from libs.quant.strategy import skill
from libs.quant.strategy.performance import YEAR_SESSIONS
from services.console.pages import words
from services.console.pages.account.portfolio import moment

Figure = tuple[str, Callable[[StrategyView], str]]
Value = Callable[[StrategyView], float | None]

YEAR_DAYS = 365.25


@dataclass(frozen=True)
class Line:
    """A figure of each strategy, in words.

    `best` are the places of the best ones, none where it is no figure to win by. `is_noise` says
    that the best and the next differ by no more than chance.
    """

    name: str
    cells: Sequence[str]
    best: frozenset[int] = frozenset()
    is_noise: bool = False


def _trained(text_of: Callable[[Any], str]) -> Callable[[StrategyView], str]:
    return lambda view: text_of(view.training) if view.training else words.UNKNOWN


def _tested(text_of: Callable[[Any], str]) -> Callable[[StrategyView], str]:
    return lambda view: text_of(view.backtest) if view.backtest else words.UNKNOWN


FIGURES: Sequence[Figure] = (
    ("out-of-sample accuracy", _trained(lambda it: words.part(it.accuracy))),
    ("base rate", _trained(lambda it: words.part(it.base_rate))),
    ("return", _tested(lambda it: words.signed(it.total_return))),
    ("buy-and-hold", _tested(lambda it: words.signed(it.benchmark_return))),
    ("Sharpe ratio", _tested(lambda it: words.ratio(it.sharpe_ratio))),
    ("benchmark Sharpe", _tested(lambda it: words.ratio(it.benchmark_sharpe_ratio))),
    ("Sortino ratio", _tested(lambda it: words.ratio(it.sortino_ratio))),
    ("max drawdown", _tested(lambda it: words.part(it.max_drawdown))),
    ("deflated Sharpe", _tested(lambda it: words.part(it.deflated_sharpe))),
    ("trials", _tested(lambda it: f"{it.trials:,}")),
    ("trades", _tested(lambda it: f"{it.total_trades:,}")),
    ("win rate", _tested(lambda it: words.part(it.win_rate))),
    ("exposure", _tested(lambda it: words.part(it.exposure))),
    ("turnover per year", _tested(lambda it: words.ratio(it.turnover))),
)
"""What is told of every strategy, in this order."""

_RANKED: dict[str, Value] = {
    "out-of-sample accuracy": lambda it: it.training.accuracy if it.training else None,
    "return": lambda it: it.backtest.total_return if it.backtest else None,
    "Sharpe ratio": lambda it: it.backtest.sharpe_ratio if it.backtest else None,
    "Sortino ratio": lambda it: it.backtest.sortino_ratio if it.backtest else None,
    "max drawdown": lambda it: -it.backtest.max_drawdown if it.backtest else None,
    "deflated Sharpe": lambda it: it.backtest.deflated_sharpe if it.backtest else None,
    "win rate": lambda it: it.backtest.win_rate if it.backtest else None,
}
"""By which figures one is better than another: the higher the better."""


def same_period(views: Sequence[StrategyView]) -> bool:
    """Whether all were held out for the same sessions: else no figure of theirs compares."""
    return len({(view.held_out.first, view.held_out.last) for view in views}) <= 1


def lines(views: Sequence[StrategyView]) -> Sequence[Line]:
    """All figures, the best ones marked where the periods are the same."""
    fit = len(views) > 1 and same_period(views)
    return [
        _line(name, [text_of(view) for view in views], views, _RANKED.get(name) if fit else None)
        for name, text_of in FIGURES
    ]


def _line(
    name: str, cells: Sequence[str], views: Sequence[StrategyView], value_of: Value | None
) -> Line:
    values = [value_of(view) if value_of else None for view in views]
    known = [value for value in values if value is not None]
    # Equal words are an equal figure: nobody sees a winner among them.
    if len(known) < 2 or len({text for text in cells if text != words.UNKNOWN}) < 2:
        return Line(name, cells)
    top = cells[values.index(max(known))]
    best = frozenset(place for place, text in enumerate(cells) if text == top)
    return Line(name, cells, best, name == "Sharpe ratio" and _is_noise(views, sorted(known)))


def _is_noise(views: Sequence[StrategyView], sharpes: Sequence[float]) -> bool:
    period = views[0].held_out
    sessions = round((period.last - period.first).days / YEAR_DAYS * YEAR_SESSIONS)
    return not skill.sharpes_differ(sharpes[-1], sharpes[-2], sessions)


def equity_plot(details: Sequence[StrategyDetail]) -> dict[str, Any] | None:
    """The return of each in percent over one axis of sessions, with buy-and-hold where that is the
    same for all; None where none was tested."""
    curves = [
        (it.strategy.name, it.sessions, it.strategy.backtest.equity)
        for it in details
        if it.strategy.backtest and it.sessions
    ]
    if not curves:
        return None
    if len({(it.sessions, it.strategy.universe) for it in details if it.sessions}) == 1:
        held = next(it.strategy.backtest.benchmark for it in details if it.strategy.backtest)
        curves.append(("buy-and-hold", curves[0][1], held))
    days = sorted({day for _, sessions, _ in curves for day in sessions})
    return {
        "x": [moment(day) for day in days],
        "unit": "%",
        "lines": [
            {"name": name, "values": _returns(days, sessions, curve)}
            for name, sessions, curve in curves
        ],
    }


def _returns(
    days: Sequence[date], sessions: Sequence[date], curve: Sequence[float]
) -> Sequence[float | None]:
    """The return by each of the days in percent; None where the curve has no value."""
    by_day = dict(zip(sessions, curve, strict=False))
    return [
        round((by_day[day] / curve[0] - 1) * 100, 2) if day in by_day and curve[0] else None
        for day in days
    ]
