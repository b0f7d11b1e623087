"""Strategies in the terminal: a list, one on one screen, several side by side."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.http import AgentStatus
from contracts.operation import OperationStatus, OperationView
from contracts.strategy_query import StrategyView
from libs.report.strategies import tables
from services.cli.render import chart, strategy_story
from services.cli.render.chart import ASCII, BLOCKS
from tests.unit.services.cli.screens import printed

AT = datetime(2026, 11, 22, 2, 0, tzinfo=UTC)
PASSED = {"rule": "accuracy", "passed": True, "value": 0.5, "threshold": 0.45, "reason": "fine"}
FAILED = {**PASSED, "passed": False, "reason": "win_rate_below_threshold (40.0% < 45.0%)"}


def gate(name: str, *checks: dict[str, Any]) -> dict[str, Any]:
    passed = all(check["passed"] for check in checks)
    return {"gate": name, "profile": "default", "passed": passed, "checks": checks}


def view(name: str = "rise-and-fall", **changes: Any) -> StrategyView:
    given = {
        "name": name,
        "cycle_id": UUID("4332d851-4ebc-510c-b28d-0f5c50338936"),
        "as_of": date(2013, 3, 1),
        "designed_at": AT,
        "path": f"strategies/{name}.yaml",
        "hypothesis": "what rises falls",
        "universe": ("AAPL", "IBM"),
        "features": ("rsi(14)", "sma_distance(20)"),
        "model": "mlp",
        "horizon_bars": 5,
        "train": {"first": "2005-01-03", "last": "2009-12-31"},
        "held_out": {"first": "2010-01-04", "last": "2012-12-31"},
        "ended": "assessed",
        "training": {
            "accuracy": 0.521,
            "base_rate": 0.556,
            "initial_loss": 0.69,
            "final_loss": 0.5,
            "rows": 3_000,
            "gate": gate("training", PASSED),
        },
        "backtest": {
            "total_return": 0.14,
            "benchmark_return": 0.655,
            "sharpe_ratio": 0.35,
            "benchmark_sharpe_ratio": None,
            "deflated_sharpe": 0.397,
            "trials": 13,
            "max_drawdown": 0.161,
            "win_rate": 0.485,
            "total_trades": 1_173,
            "turnover": 9.0,
            "exposure": 0.7,
            "equity": (100.0, 120.0, 90.0, 114.0),
            "benchmark": (100.0, 120.0, 140.0, 165.5),
            "currencies": {"AAPL": "USD"},
            "gate": gate("backtest", FAILED),
        },
        "assessment": {
            "verdict": "mediocre",
            "strengths": ["it\x1b[2J trades"] * 2,
            "op_id": str(UUID(int=3)),
        },
    }
    return StrategyView.model_validate({**given, **changes})


def stopped() -> StrategyView:
    return view(
        "never-traded",
        ended="training_gate",
        reason="Training gate failed: too little",
        backtest=None,
        assessment=None,
        held_out={"first": "2009-01-02", "last": "2012-12-31"},
    )


def test_the_status_of_a_cycle_has_its_gates_reason_in_words() -> None:
    reason = "Backtest gate failed: max_drawdown_above_threshold (44.7% > 40.0%)"
    idle = AgentStatus(
        status="idle", operation_id=UUID(int=1), operation_status="failed", error_message=reason
    )
    text = printed(strategy_story.phase(idle))
    assert "max drawdown above threshold" in text


def test_a_list_shows_how_each_ended_with_its_figures() -> None:
    head, first, second = printed([tables.listed([view(), stopped()])], 150).splitlines()
    assert head.split() == [
        "strategy",
        "designed",
        "cycle",
        "ended",
        "return",
        "sharpe",
        "drawdown",
        "trades",
        "buy-and-hold",
        "accuracy",
        "base",
        "rate",
        "equity",
    ]
    for word in (
        "rise-and-fall",
        "mediocre",
        "+14.00%",
        "+65.50%",
        "0.35",
        "1,173",
        "52.1%",
        "███",
    ):
        assert word in first
    assert "2026-11-22  4332d851  mediocre" in first, "runs of one name are told apart"
    assert "training gate" in second
    assert second.split().count("-") == 6, "what there is none of is a dash"


def test_a_narrow_terminal_has_fewer_figures_and_cuts_none() -> None:
    listed = tables.listed([view("a-name-of-as-many-as-28-chars"), stopped()])
    head, first, second = printed([listed], 80).splitlines()
    assert "buy-and-hold" not in head
    assert first.split()[1:6] == ["4332d851", "mediocre", "+14.00%", "0.35", "16.1%"]
    assert max(map(len, (head, first, second))) <= 80


def test_a_list_in_a_middling_terminal_has_the_day() -> None:
    text = printed([tables.listed([view("a-name-of-as-many-as-28-chars")])])
    assert "2026-11-22  4332d851  mediocre" in text
    assert "█" in text


def test_one_strategy_on_one_screen() -> None:
    text = printed(strategy_story.screen(view(runs=3)))
    for word in (
        "rise-and-fall  mediocre",
        "the newest of 3 runs",
        "what rises falls",
        "rsi(14), sma_distance(20)",
        "base rate 55.6%",
        "buy-and-hold +65.50%",
        "deflated sharpe 39.7%",
        "trials 13",
        "1 - chance of it by luck",
        "✗ backtest gate: win rate below threshold (40.0% < 45.0%)",
        "strategies/rise-and-fall/report.html",
        "█",
    ):
        assert " ".join(word.split()) in " ".join(text.split())
    assert "\x1b[2J" not in text, "a model's words move no cursor"


def test_a_strategy_that_a_gate_stopped_has_no_backtest() -> None:
    text = printed(strategy_story.screen(stopped()))
    assert "training gate" in text
    assert "backtest" not in text


def test_strategies_side_by_side_say_where_they_cannot_be_compared() -> None:
    text = printed([tables.compared([view(), stopped()])])
    rows = {line[:24].strip(): line[24:].split() for line in text.splitlines()}
    assert rows["return"] == ["+14.00%", "-"]
    assert rows["out-of-sample accuracy"] == ["52.1%", "52.1%"]
    assert "their held-out periods differ" in text
    same = printed([tables.compared([view(), view("other")])])
    assert "their held-out periods differ" not in same


def test_a_cycle_ends_with_its_strategy_and_what_it_cost() -> None:
    node = OperationView(
        op_id=UUID(int=5),
        cycle_id=UUID(int=5),
        type="agent_research",
        name="strategy",
        status=OperationStatus.FAILED,
        error_message="Training gate failed: too little",
        metadata={"attempt": 2, "attempts": 3},
        created_at=AT,
    )
    text = printed(strategy_story.ended(node, stopped()))
    for word in ("strategy cycle", "failed", "too little", "2 of at most 3", "never-traded"):
        assert word in text
    assert "never-traded" not in printed(strategy_story.ended(node, None))


@pytest.mark.parametrize(("marks", "line"), [(BLOCKS, "▁█▅"), (ASCII, ".#:")])
def test_a_curve_fits_one_line(marks: str, line: str) -> None:
    values = [Decimal(1), Decimal(3), Decimal(2)]
    assert chart.sparkline(values, 3, marks) == line
    assert chart.sparkline([], 5) == chart.sparkline(values, 0) == ""
    assert chart.sparkline([Decimal(2)] * 2, 2) == "▁▁"
