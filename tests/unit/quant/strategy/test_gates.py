"""Gates: what passes, what fails, and that a failure says by how much."""

from typing import Any

import pytest

from contracts.gate import DEFAULT, STRICT, GateThresholds
from contracts.strategy_result import BacktestResult, TrainingResult
from libs.quant.strategy import gates
from libs.quant.strategy.gates import (
    BACKTEST_RULES,
    TRAINING_RULES,
    GateRule,
    backtest_gate,
    training_gate,
)

IDS = {"cycle_id": "0" * 32, "op_id": "1" * 32, "as_of": "2012-12-31", "strategy_name": "a"}
HASHES = dict.fromkeys(["spec_sha256", "data_sha256", "model_sha256"], "0" * 64)
PERIOD = {"first": "2011-01-03", "last": "2012-12-31"}


def training(**changes: Any) -> TrainingResult:
    fold = {"train": PERIOD, "test": PERIOD, "train_rows": 9, "test_rows": 9}
    figures = {"accuracy": 0.52, "base_rate": 0.5, "log_loss": 0.69, "base_log_loss": 0.7}
    given = {
        **IDS,
        **HASHES,
        **figures,
        "initial_loss": 0.7,
        "final_loss": 0.5,
        "loss_curve": [0.7, 0.5],
        "folds": [fold | figures],
        "features": ["rsi(14)"],
        "rows": 9,
        "seed": 0,
    }
    return TrainingResult.model_validate(given | changes)


def backtest(**changes: Any) -> BacktestResult:
    given = {
        **IDS,
        **HASHES,
        "held_out": PERIOD,
        "capital": 1,
        "sharpe_ratio": 0.4,
        "sortino_ratio": 0.5,
        "win_rate": 0.5,
        "max_drawdown": 0.2,
        "total_return": 0.1,
        "cagr": 0.1,
        "turnover": 1,
        "exposure": 0.5,
        "total_trades": 9,
        "fees": 1,
        "benchmark_return": 0.1,
        "benchmark_sharpe_ratio": 0.3,
        "deflated_sharpe": 0.97,
        "sessions": ["2011-01-03"],
        "equity": [1],
        "benchmark": [1],
        "currencies": {"AAPL": "USD"},
    }
    return BacktestResult.model_validate(given | changes)


def test_good_results_pass_both_profiles_without_a_reason():
    for profile in (DEFAULT, STRICT):
        for found in (training_gate(training(), profile), backtest_gate(backtest(), profile)):
            assert found.passed
            assert found.reason == ""
            assert found.profile == profile.profile
            assert all(check.passed for check in found.checks)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"accuracy": 0.423}, "accuracy_below_threshold (42.3% < 45.0%)"),
        ({"final_loss": 0.85, "initial_loss": 2}, "final_loss_above_threshold (0.85 > 0.80)"),
        ({"initial_loss": 0.5}, "loss_decrease_below_threshold (0.0% < 20.0%)"),
        ({"initial_loss": 0.4}, "loss_decrease_below_threshold (-25.0% < 20.0%)"),
        ({"initial_loss": 0.0}, "loss_decrease_below_threshold (0.0% < 20.0%)"),
    ],
)
def test_a_training_that_fails_a_rule_says_by_how_much(changes: Any, reason: str):
    found = training_gate(training(**changes), DEFAULT)
    assert not found.passed
    assert found.reason == f"Training gate failed: {reason}"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"win_rate": 0.44}, "win_rate_below_threshold (44.0% < 45.0%)"),
        ({"win_rate": None}, "win_rate_not_defined (no trade was closed)"),
        ({"max_drawdown": 0.41}, "max_drawdown_above_threshold (41.0% > 40.0%)"),
        ({"sharpe_ratio": -0.51}, "sharpe_ratio_below_threshold (-0.51 < -0.50)"),
        ({"sharpe_ratio": None}, "sharpe_ratio_not_defined (the equity never changed)"),
    ],
)
def test_a_backtest_that_fails_a_rule_says_by_how_much(changes: Any, reason: str):
    found = backtest_gate(backtest(**changes), DEFAULT)
    assert not found.passed
    assert found.reason == f"Backtest gate failed: {reason}"


def test_every_rule_that_failed_is_named():
    found = backtest_gate(backtest(win_rate=0.1, max_drawdown=0.9), DEFAULT)
    assert found.reason == (
        "Backtest gate failed: win_rate_below_threshold (10.0% < 45.0%); "
        "max_drawdown_above_threshold (90.0% > 40.0%)"
    )
    assert [check.passed for check in found.checks] == [False, False, True]


def test_a_value_at_its_threshold_passes():
    at_limit = training(accuracy=0.45, base_rate=0.44, final_loss=0.8, initial_loss=1.0)
    assert training_gate(at_limit, DEFAULT).passed
    at_limit = backtest(win_rate=0.45, max_drawdown=0.4, sharpe_ratio=-0.5, deflated_sharpe=0.95)
    assert backtest_gate(at_limit, STRICT).passed


def test_a_value_just_below_is_shown_with_the_digits_that_tell_it_apart():
    found = training_gate(training(accuracy=0.44996), DEFAULT)
    assert "accuracy_below_threshold (44.996% < 45.000%)" in found.reason


def test_counts_are_shown_without_digits(monkeypatch: pytest.MonkeyPatch):
    trades: GateRule[BacktestResult] = GateRule(
        "trades", lambda result: result.total_trades, lambda _: 200, least=True
    )
    monkeypatch.setattr(gates, "BACKTEST_RULES", (trades,))
    assert "trades_below_threshold (9 < 200)" in backtest_gate(backtest(), DEFAULT).reason


def test_the_strict_profile_asks_for_skill_and_for_a_deflated_sharpe():
    lucky = training(accuracy=0.56, base_rate=0.555)
    assert training_gate(lucky, DEFAULT).passed
    assert "skill_below_threshold (0.5% < 1.0%)" in training_gate(lucky, STRICT).reason
    for deflated, said in ((0.94, "deflated_sharpe_below"), (None, "deflated_sharpe_not_defined")):
        assert backtest_gate(backtest(deflated_sharpe=deflated), DEFAULT).passed
        assert said in backtest_gate(backtest(deflated_sharpe=deflated), STRICT).reason


def test_a_threshold_that_is_not_set_asks_for_nothing():
    nothing = GateThresholds(**dict.fromkeys(GateThresholds.model_fields, None) | {"profile": "x"})
    assert training_gate(training(accuracy=0.0), nothing).passed
    assert backtest_gate(backtest(win_rate=None), nothing).checks == ()


def test_every_rule_has_a_threshold_of_its_own():
    fields = set(GateThresholds.model_fields) - {"profile"}
    ends = {True: "min", False: "max"}
    assert fields == {f"{r.name}_{ends[r.least]}" for r in (*TRAINING_RULES, *BACKTEST_RULES)}
