"""Every strategy ever tried: kept as its steps end, counted for the gate that asks for it, told to
whoever designs the next.

A strategy counts once its model is trained: from then on somebody has seen what it is worth, and
goes on with it or not. One that the prices refused, or that broke down, has told nothing.
"""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Literal, cast
from uuid import UUID

import orjson
import structlog
from pydantic import ValidationError

from contracts.gate import GateResult
from contracts.strategy_cycle import (
    PAST_STRATEGIES_MAX,
    PAST_TICKERS_MAX,
    PastStrategy,
    StrategyDesign,
    Trials,
)
from contracts.strategy_result import StrategyAssessment
from contracts.types import shortened
from libs.postgres.pool import PoolConnection
from libs.postgres.queries import Queries
from libs.runtime.wording import describe
from services.orchestrator.group.batch import InputBatch

End = Literal["training_gate", "backtest_gate", "assessed", "not_finished"]

TRIALS = "trials"
"""The command field that is filled with how many were tried."""
PAST = "past_strategies"
"""The command field that is filled with the last ones."""
PAST_CHARS_MAX = 400
"""Of each text about one of them."""
BACKTEST_FIGURES = (
    "sharpe_ratio",
    "benchmark_sharpe_ratio",
    "max_drawdown",
    "win_rate",
    "total_trades",
)
OPERATION_COLUMNS = {
    "design": "design_op_id",
    "training": "train_op_id",
    "backtest": "backtest_op_id",
    "assessment": "assess_op_id",
}
"""What a row tells, and the column of the operation that made it."""
POINTS = ("strengths", "weaknesses", "suggestions")
DESIGN = ("strategy", "design")
JUDGING_STEPS = (
    ("strategy", "train"),
    ("strategy", "backtest"),
    ("assessment", "assess"),
)
"""Steps, by service and name, whose results name the strategy that they are about."""

sql = Queries(Path(__file__).with_name("strategies.sql"))
log = structlog.get_logger()


async def keep(db: PoolConnection, group: InputBatch) -> None:
    """Keep what the group's ended steps have made of strategies."""
    for op_id, (row, end) in group.ends.items():
        if row is None or end.result is None:
            continue
        step = (row.service, row.step)
        if step == DESIGN:
            result = orjson.loads(end.result)
            name, sha256 = result["spec"]["name"], result["spec_sha256"]
            as_of = group.cycle(row.cycle_id).as_of
            await db.execute(sql.designed, row.cycle_id, name, sha256, as_of, op_id)
        elif step in JUDGING_STEPS:
            result = orjson.loads(end.result)
            name, ratio = result["strategy_name"], result.get("sharpe_ratio")
            await db.execute(sql.found, row.cycle_id, name, row.step, op_id, ratio)


async def command_fields(
    db: PoolConnection, group: InputBatch, results: Mapping[UUID, bytes]
) -> dict[UUID, dict[str, bytes]]:
    """For each new operation that wants to know: how many strategies were tried besides its own,
    and what became of the last ones.
    """
    fields_of: dict[UUID, dict[str, bytes]] = {}
    for new in group.starts:
        fields = new.start.step.serves.message.model_fields
        if TRIALS in fields:
            design = orjson.loads(results[new.start.takes["strategy_design"]])
            fields_of[new.start.op_id] = {TRIALS: await _trials(db, design["spec_sha256"])}
        elif PAST in fields:
            fields_of[new.start.op_id] = {PAST: await _past(db, new.cycle.as_of, results)}
    return fields_of


async def _trials(db: PoolConnection, spec_sha256: str) -> bytes:
    row = await db.fetchrow(sql.trials, spec_sha256)
    return Trials.model_validate(dict(row or {})).model_dump_json().encode()


async def _past(db: PoolConnection, as_of: date, results: Mapping[UUID, bytes]) -> bytes:
    rows = await db.fetch(sql.past, as_of, PAST_STRATEGIES_MAX)
    strategies = []
    for row in rows:
        try:
            past = past_strategy(_with_fresh(row, results))
        except ValidationError as error:
            # A design can do without it: that it was tried is counted by its row.
            log.warning("strategies.unreadable", name=row["name"], why=describe(error))
            continue
        strategies.append(past.model_dump(mode="json"))
    return orjson.dumps(strategies)


def _with_fresh(row: Mapping[str, Any], results: Mapping[UUID, bytes]) -> Mapping[str, Any]:
    """The row with this group's own results, which are not written yet: after a gate the next
    design begins in the same transaction.
    """
    fresh = {name: results[row[op]] for name, op in OPERATION_COLUMNS.items() if row[op] in results}
    return {**row, **fresh}


def past_strategy(row: Mapping[str, Any]) -> PastStrategy:
    """One strategy as the statement `past` reads it. Raises ValidationError where a later release
    wrote it."""
    training, backtest = (orjson.loads(row[name] or b"{}") for name in ("training", "backtest"))
    spec = StrategyDesign.model_validate_json(row["design"], extra="ignore").spec
    judged = row["assessment"]
    assessment = StrategyAssessment.model_validate_json(judged) if judged else None
    ended, reason = ("assessed", "") if assessment else _stop(training, backtest)
    return PastStrategy(
        name=spec.name,
        as_of=row["as_of"],
        hypothesis=_cut(spec.hypothesis),
        universe=spec.universe[:PAST_TICKERS_MAX],
        features=tuple(feature.key for feature in spec.features),
        horizon_bars=spec.label.horizon_bars,
        model=spec.model.kind,
        ended=ended,
        reason=_cut(reason),
        **{name: training.get(name) for name in ("accuracy", "base_rate")},
        **{name: backtest.get(name) for name in BACKTEST_FIGURES},
        verdict=assessment.verdict if assessment else None,
        **{name: tuple(map(_cut, getattr(assessment, name, ()))) for name in POINTS},
    )


def _stop(training: Any, backtest: Any) -> tuple[End, str]:
    """The gate that stopped it, and why."""
    for result, ended in ((backtest, "backtest_gate"), (training, "training_gate")):
        gate = GateResult.model_validate(result["gate"]) if result.get("gate") else None
        if gate and not gate.passed:
            return cast(End, ended), gate.reason
    return "not_finished", ""


def _cut(text: str) -> str:
    return shortened(text, PAST_CHARS_MAX)
