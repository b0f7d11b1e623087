"""Every strategy ever tried: kept as its steps end, counted for the gate that asks for it.

A strategy counts once its model is trained: from then on somebody has seen what it is worth, and
goes on with it or not. One that the prices refused, or that broke down, has told nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from contracts.strategy_cycle import Trials
from libs.postgres.pool import Connection
from libs.postgres.queries import Queries
from services.orchestrator.group import Group

TRIALS = "trials"
"""The command field that is filled with how many were tried."""
DESIGN = ("strategy_design", "design")
FOUND = (
    ("strategy_training", "train"),
    ("strategy_backtest", "backtest"),
    ("assessment", "assess"),
)
"""Steps, by service and name, whose results name the strategy that they are about."""

sql = Queries(Path(__file__).with_name("strategies.sql"))


async def keep(db: Connection, group: Group) -> None:
    """Keep what the group's ended steps have made of strategies."""
    for op_id, (row, end) in group.ends.items():
        if row is None or end.result is None:
            continue
        step = (row.service, row.step)
        if step == DESIGN:
            made = orjson.loads(end.result)
            name, sha256 = made["spec"]["name"], made["spec_sha256"]
            as_of = group.cycle(row.cycle_id).as_of
            await db.execute(sql.designed, row.cycle_id, name, sha256, as_of, op_id)
        elif step in FOUND:
            made = orjson.loads(end.result)
            name, ratio = made["strategy_name"], made.get("sharpe_ratio")
            await db.execute(sql.found, row.cycle_id, name, row.step, op_id, ratio)


async def given(
    db: Connection, group: Group, results: Mapping[UUID, bytes]
) -> dict[UUID, dict[str, bytes]]:
    """For each new operation that wants to know: how many strategies were tried besides its own."""
    found: dict[UUID, dict[str, bytes]] = {}
    for new in group.starts:
        if TRIALS in new.start.step.serves.message.model_fields:
            design: Any = orjson.loads(results[new.start.takes["strategy_design"]])
            row = await db.fetchrow(sql.trials, design["spec_sha256"])
            trials = Trials.model_validate(dict(row or {}))
            found[new.start.op_id] = {TRIALS: trials.model_dump_json().encode()}
    return found
