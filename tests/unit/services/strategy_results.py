"""What the steps of a strategy cycle have made, for tests of those after them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from contracts.strategy_cycle import PastStrategy, StrategyDesign
from contracts.strategy_result import BacktestResult, StrategyAssessment, TrainingResult, Verdict
from libs.report.strategies.files import spec_of

EXAMPLE = Path(__file__).parents[3] / "services/cli/desk/folder/strategy.yaml"
SHA = "0" * 64
ASSESSED = ("verdict", "strengths", "weaknesses", "suggestions")
IDS: dict[str, Any] = {
    "cycle_id": UUID(int=1),
    "op_id": UUID(int=2),
    "as_of": "2013-03-01",
}


def design() -> StrategyDesign:
    """The committed example."""
    spec = spec_of(EXAMPLE.read_text())
    return StrategyDesign(
        **IDS, spec=spec, spec_sha256=SHA, origin="given", path=f"strategies/{spec.name}.yaml"
    )


def past_strategies() -> tuple[PastStrategy, ...]:
    """One that was assessed, and one that the training gate stopped."""
    spec = design().spec
    told: dict[str, Any] = {
        "name": spec.name,
        "as_of": IDS["as_of"],
        "hypothesis": spec.hypothesis,
        "universe": spec.universe,
        "features": tuple(feature.key for feature in spec.features),
        "horizon_bars": spec.label.horizon_bars,
        "model": spec.model.kind,
        "accuracy": 0.52,
        "base_rate": 0.56,
    }
    assessed = PastStrategy(
        **told,
        ended="assessed",
        sharpe_ratio=0.4,
        benchmark_sharpe_ratio=0.9,
        max_drawdown=0.2,
        win_rate=0.53,
        total_trades=120,
        **{name: getattr(assessment(), name) for name in ASSESSED},
    )
    reason = "Training gate failed: loss_decrease_below_threshold (11.3% < 20.0%)"
    stopped = {**told, "name": "sma-rsi-boosting", "features": ("rsi(14)", "sma_distance(20)")}
    return (assessed, PastStrategy(**stopped, ended="training_gate", reason=reason))


def training(**changes: Any) -> TrainingResult:
    fold = {
        "train": {"first": "2005-01-03", "last": "2006-01-03"},
        "test": {"first": "2006-02-01", "last": "2006-12-29"},
        "train_rows": 700,
        "test_rows": 600,
        "accuracy": 0.52,
        "base_rate": 0.5,
        "log_loss": 0.69,
        "base_log_loss": 0.693,
    }
    given = {
        "strategy_name": "trend-and-calm",
        **{key: fold[key] for key in ("accuracy", "base_rate", "log_loss", "base_log_loss")},
        "initial_loss": 0.7,
        "final_loss": 0.525,
        "loss_curve": (0.7, 0.525),
        "folds": (fold,),
        "features": ("rsi(14)",),
        "rows": 3_000,
        "seed": 0,
        "spec_sha256": SHA,
        "data_sha256": SHA,
        "model_sha256": SHA,
    }
    return TrainingResult.model_validate({**IDS, **given, **changes})


def backtest(**changes: Any) -> BacktestResult:
    given = {
        "strategy_name": "trend-and-calm",
        "held_out": {"first": "2010-01-04", "last": "2012-12-31"},
        "capital": 100_000.0,
        "sharpe_ratio": 0.9,
        "sortino_ratio": 1.2,
        "win_rate": 0.55,
        "max_drawdown": 0.12,
        "total_return": 0.31,
        "cagr": 0.09,
        "turnover": 9.0,
        "exposure": 0.6,
        "total_trades": 38,
        "fees": 300.0,
        "benchmark_return": 0.2,
        "benchmark_sharpe_ratio": 0.7,
        "sessions": ("2010-01-04", "2010-01-05"),
        "equity": (100_000.0, 131_000.0),
        "benchmark": (100_000.0, 120_000.0),
        "currencies": {"AAPL": "USD"},
        "spec_sha256": SHA,
        "data_sha256": SHA,
        "model_sha256": SHA,
    }
    return BacktestResult.model_validate({**IDS, **given, **changes})


def assessment() -> StrategyAssessment:
    return StrategyAssessment(
        **IDS,
        strategy_name="trend-and-calm",
        assessed_at=datetime(2026, 11, 22, tzinfo=UTC),
        verdict=Verdict.MEDIOCRE,
        strengths=("it lost less than holding in 2011", "it closes what it opens"),
        weaknesses=("less often right than always up", "a turnover of 40 a year"),
        suggestions=("hold longer", "fewer features"),
    )
