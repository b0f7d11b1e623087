"""The curves of strategies side by side. Pure."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from contracts.http import StrategyDetail
from services.console.pages.account.portfolio import moment


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
