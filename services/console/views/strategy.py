"""A strategy cycle in the operation tree: the cycle is the parent, its steps the children. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pydantic import JsonValue, ValidationError

from contracts.cycle import STRATEGY, CycleStatus
from contracts.message import Contract
from contracts.operation import OperationStatus, OperationView
from contracts.strategy_cycle import StrategyDesign
from contracts.strategy_result import BacktestResult, StrategyAssessment, TrainingResult
from services.console.logic import SHARED, Row

PARENT = "agent_research"
TYPES: Mapping[str, str] = {
    "design": "agent_design",
    "train": "training",
    "backtest": "backtesting",
    "assess": "agent_assessment",
}
"""By step: the type of its operation."""
STEPS: Mapping[str | None, str] = {kind: step for step, kind in TYPES.items()}
"""By type: the step."""
IDS: Mapping[str, str] = {
    "design": "design_op_id",
    "train": "training_op_id",
    "backtest": "backtest_op_id",
    "assess": "assessment_op_id",
}
"""By step: under which name the parent has its operation's id."""

RESULTS: Mapping[str, type[Contract]] = {
    "design": StrategyDesign,
    "train": TrainingResult,
    "backtest": BacktestResult,
    "assess": StrategyAssessment,
}
"""By step: the contract that it makes."""

TRAINING_TOLD = (
    "accuracy",
    "base_rate",
    "log_loss",
    "base_log_loss",
    "initial_loss",
    "final_loss",
    "rows",
    "seed",
    "data_sha256",
    "model_sha256",
    "gate",
)
BACKTEST_TOLD = (
    "sharpe_ratio",
    "sortino_ratio",
    "win_rate",
    "max_drawdown",
    "total_return",
    "cagr",
    "turnover",
    "exposure",
    "total_trades",
    "benchmark_return",
    "benchmark_sharpe_ratio",
    "gate",
    "deflated_sharpe",
    "trials",
)


def is_strategy(cycle: Row) -> bool:
    """Whether it is a cycle of this kind."""
    return bool(cycle["kind"] == STRATEGY)


def parent(node: OperationView, cycle: Row, operations: Sequence[Row]) -> OperationView:
    """The cycle's node with what its steps have made so far, of its newest design."""
    lane = next(
        state for name, state in orjson.loads(cycle["state"])["lanes"].items() if name != SHARED
    )
    running = cycle["status"] == CycleStatus.RUNNING
    newest = _of_newest_design(operations)
    metadata: dict[str, JsonValue] = {
        **node.metadata,
        "phase": lane["state"] if running else None,
        "attempt": lane.get("round", 1),
        "attempts": lane.get("rounds_max", 1),
        **{IDS[step]: str(row["op_id"]) for step, row in newest.items()},
        **_results(newest),
    }
    summary = None if running else _summary(node, metadata)
    return node.model_copy(update={"type": PARENT, "metadata": metadata, "result_summary": summary})


def child_metadata(row: Row) -> dict[str, JsonValue]:
    """The words of a step on where it belongs; nothing of a step of another kind of cycle."""
    return {"parent_operation_id": str(row["cycle_id"])} if row["step"] in TYPES else {}


def child_summary(row: Row, summary: JsonValue) -> JsonValue:
    """A step's summary with what it used, as the parent's has it."""
    if row["step"] not in TYPES or not isinstance(summary, dict):
        return summary
    used = {name: row[name] for name in ("input_tokens", "output_tokens")}
    return {"success": True, **summary, **used}


def _of_newest_design(operations: Sequence[Row]) -> Mapping[str, Row]:
    """By step, its newest operation; those of an earlier design are left out."""
    rows: dict[str, Row] = {}
    for row in operations:
        if row["step"] == "design" and row["attempt"] == 1:
            rows = {}
        rows[row["step"]] = row
    return {step: row for step, row in rows.items() if step in IDS}


def _results(newest: Mapping[str, Row]) -> Mapping[str, JsonValue]:
    bodies = {step: row["result"] for step, row in newest.items() if row["result"]}
    try:
        results = {
            step: RESULTS[step].model_validate_json(body, extra="ignore")
            for step, body in bodies.items()
        }
    except ValidationError:
        return {}  # a later version's: the tree has the steps all the same
    return _written(results)


def _written(results: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    summary: dict[str, JsonValue] = {}
    if design := results.get("design"):
        summary["strategy_name"] = design.spec.name
        summary["strategy_path"] = design.path
    for step, name, fields in (
        ("train", "training_result", TRAINING_TOLD),
        ("backtest", "backtest_result", BACKTEST_TOLD),
    ):
        if result := results.get(step):
            summary[name] = result.model_dump(mode="json", include={*fields})
    if assessment := results.get("assess"):
        summary["assessment_verdict"] = assessment.verdict.value
        summary["assessment_path"] = assessment.path
    return summary


def _summary(node: OperationView, metadata: Mapping[str, JsonValue]) -> JsonValue:
    return {
        "success": node.status is OperationStatus.COMPLETED,
        "strategy_name": metadata.get("strategy_name"),
        "verdict": metadata.get("assessment_verdict"),
        "total_tokens": node.tokens,
    }
