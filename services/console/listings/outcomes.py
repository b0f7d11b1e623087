"""How cycles ended, each in one sentence; what has ended stays so, and is composed once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.execution import ExecutionResult
from libs.postgres.pool import Record
from libs.report import ending
from libs.report.ending import Achieved
from services.console import logic
from services.console.immutable_cache import ImmutableCache
from services.console.store import Store, sql

KEPT_MAX = 20_000
"""Outcomes, of about 200 bytes each."""
COUNTED = {"analyst": "findings", "picks": "picks", "validate_exits": "left"}
"""Steps that are told by one number, and what it counts."""
Key = tuple[UUID | None, str]


class CycleOutcomes:
    """The outcomes of cycles."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended = ImmutableCache(self._read_ended, KEPT_MAX)

    async def of(self, views: Iterable[CycleView]) -> Mapping[UUID, str]:
        """The outcome of each of these cycles."""
        by_id = {view.cycle_id: view for view in views if view.cycle_id is not None}
        running = {key: _so_far(view) for key, view in by_id.items() if _runs(view)}
        return {**await self._ended.by_id([key for key in by_id if key not in running]), **running}

    async def of_rows(self, rows: Sequence[Record]) -> Mapping[UUID, str]:
        """The same of rows of a walk, which do not say by themselves where a running cycle is."""
        ended = [row["cycle_id"] for row in rows if row["status"] != CycleStatus.RUNNING]
        running = [row["cycle_id"] for row in rows if row["status"] == CycleStatus.RUNNING]
        views = map(
            logic.cycle_view,
            await self._store.rows(sql.cycles_listed, list(running)) if running else (),
        )
        new = {view.cycle_id: _so_far(view) for view in views if view.cycle_id is not None}
        return {**await self._ended.by_id(ended), **new}

    async def _read_ended(self, cycle_ids: Sequence[UUID]) -> Mapping[UUID, str]:
        views = [
            logic.cycle_view(row)
            for row in await self._store.rows(sql.cycles_listed, list(cycle_ids))
        ]
        achieved = await self._achieved(views)
        return {
            view.cycle_id: _outcome(view, achieved) for view in views if view.cycle_id is not None
        }

    async def _achieved(self, views: Sequence[CycleView]) -> Mapping[Key, Achieved]:
        """By cycle and pipeline; what is told by its orders needs nothing else."""
        keys = [(view.cycle_id, lane.name) for view in views for lane in view.pipelines]
        rows = await self._store.rows(
            sql.executed, [view.cycle_id for view in views if view.cycle_id]
        )
        achieved: dict[Key, Achieved] = {
            (row["cycle_id"], row["pipeline"]): Achieved(execution=_execution(row["result"]))
            for row in rows
        }
        others = {key[0] for key in keys if not _has_ordered(achieved.get(key, Achieved()))}
        rows = (
            await self._store.rows(sql.achieved, [key for key in others if key]) if others else ()
        )
        for row in rows:
            key = (row["cycle_id"], row["pipeline"])
            achieved[key] = _with_step(achieved.get(key, Achieved()), row)
        return achieved


def _execution(result: bytes) -> ExecutionResult | None:
    try:
        return ExecutionResult.model_validate_json(result)
    except ValidationError:
        return None  # a newer desk's: the cycle's other facts still tell how it ended


def _runs(view: CycleView) -> bool:
    return view.status is CycleStatus.RUNNING


def _has_ordered(achieved: Achieved) -> bool:
    return achieved.execution is not None and bool(achieved.execution.orders)


def _with_step(achieved: Achieved, row: Record) -> Achieved:
    match row["step"]:
        case "check_exits":
            return replace(achieved, checked=row["number"], exits=row["exits"])
        case "analyst" | "picks" | "validate_exits" as step:
            fields: Mapping[str, Any] = {COUNTED[step]: row["number"]}
            return replace(achieved, **fields)
        case "validate":
            return replace(achieved, left=row["number"], vetoes=row["vetoes"])
        case "design":
            return replace(achieved, strategy=row["word"] or "")
        case _:
            return replace(achieved, verdict=row["word"] or "")


def _outcome(view: CycleView, achieved: Mapping[Key, Achieved]) -> str:
    def of(pipeline: PipelineView) -> Achieved:
        return achieved.get((view.cycle_id, pipeline.name), Achieved())

    return ending.of_cycle(view, of)


def _so_far(view: CycleView) -> str:
    return ending.of_cycle(view, lambda _: Achieved())
