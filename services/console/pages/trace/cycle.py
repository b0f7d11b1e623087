"""One cycle: how it ended, the proposal that waits, its tree over time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from contracts.approval import ApprovalsQuery
from contracts.cycle import STRATEGY
from contracts.cycle_query import CycleView
from contracts.operation import OperationStatus, OperationView
from libs.postgres.pool import Record
from services.console import handler
from services.console.http.queries import OrAll
from services.console.http.requests import Desk, DeskAccess
from services.console.http.short_ids import CycleId, cycle_of
from services.console.pages.show import ShowPage
from services.console.pages.trace.endings import end_of, is_shown_above, reason_of
from services.console.pages.trace.waterfall import Noted, trace_of
from services.console.store import OPERATIONS_OF_CYCLE_MAX, TRIES_MAX, sql
from services.console.views import tree

CALLS_SHOWN = 200
"""Single calls on one page of the tree."""
PROPOSALS_SHOWN = 20


pages = APIRouter(prefix="/cycles")


@pages.get("/{cycle_id}")
async def cycle_page(
    desk: Desk,
    show: ShowPage,
    cycle_id: CycleId,
    status: Annotated[OperationStatus | None, OrAll, Query()] = None,
    pipeline: Annotated[str | None, OrAll, Query()] = None,
    calls: bool = False,
    first: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """The page of a cycle."""
    view = await cycle_of(desk, str(cycle_id))
    record = await _record(desk, cycle_id, first, calls=calls)
    trace = trace_of(record.nodes, desk.now(), calls=record.calls, noted=record.noted)
    waiting = await handler.approvals(
        ApprovalsQuery(cycle_id=str(cycle_id), limit=PROPOSALS_SHOWN), store=desk.store
    )
    ends = [end_of(view, pipeline_view, record.nodes) for pipeline_view in view.pipelines]
    return show(
        "cycle.html",
        it=view,
        ends=ends,
        strategy=_strategy(view, record.nodes),
        waiting=waiting.approvals,
        axis=trace.axis,
        lines=[
            line
            for line in trace.lines
            if status in {None, line.node.status} and pipeline in {None, line.node.pipeline}
        ],
        reason=reason_of(view, ends),
        is_shown_above=partial(is_shown_above, ends=ends),
        calls_made=record.calls_made,
        pipelines=list(dict.fromkeys(filter(None, (n.pipeline for n in record.nodes)))),
        statuses=OperationStatus,
        status=status,
        pipeline=pipeline,
        calls=calls,
        first=first,
        last=min(first + CALLS_SHOWN, record.calls_made),
        step=CALLS_SHOWN,
    )


@dataclass(frozen=True)
class _Record:
    """A cycle's nodes, how many calls each operation made, and what else happened to them."""

    nodes: Sequence[OperationView]
    calls: dict[UUID, int]
    noted: Sequence[Noted]

    @property
    def calls_made(self) -> int:
        """All calls of the cycle."""
        return sum(self.calls.values())


async def _record(desk: DeskAccess, cycle_id: UUID, first: int, *, calls: bool) -> _Record:
    """The cycle on record; with `calls` a page of those, and only their operations after the first
    page."""
    row = await handler.cycle_row(str(cycle_id), store=desk.store)
    branches, steps = tree.branches(
        row, await desk.store.rows(sql.operations_of_cycle, cycle_id, OPERATIONS_OF_CYCLE_MAX)
    )
    counted = await desk.store.rows(sql.calls_counted, cycle_id)
    noted = [
        *_fences(counted),
        *map(_retry, await desk.store.rows(sql.tries_of_cycle, cycle_id, TRIES_MAX)),
    ]
    by_step: dict[UUID, int] = {}
    for claim in counted:
        by_step[claim["op_id"]] = by_step.get(claim["op_id"], 0) + claim["calls"]
    if not calls:
        return _Record([*branches, *steps], by_step, noted)
    of_step = {step.op_id: step for step in steps}
    leaves = [
        tree.call_node(call, of_step[call["op_id"]])
        for call in await desk.store.rows(sql.calls_of_cycle, cycle_id, first, CALLS_SHOWN, None)
        if call["op_id"] in of_step
    ]
    if first:
        here = {leaf.parent_id for leaf in leaves}
        steps = [step for step in steps if step.op_id in here]
    return _Record([*branches, *steps, *leaves], by_step, noted)


def _fences(counted: Iterable[Record]) -> Iterable[Noted]:
    """Claims that took over from another one. Rows are by operation and claim."""
    before: Record | None = None
    for row in counted:
        if before is not None and before["op_id"] == row["op_id"]:
            new, old = row["epoch"], before["epoch"]
            words = f"epoch {new}: another process took over, epoch {old} was fenced"
            yield Noted(row["op_id"], row["first_at"], "fence", words)
        before = row


def _retry(row: Record) -> Noted:
    words = f"try {int(row['again']) + 1} of the same model call"
    return Noted(row["op_id"], row["recorded_at"], "retry", words)


def _strategy(view: CycleView, nodes: Sequence[OperationView]) -> str:
    """The strategy that the cycle designed; empty where it is of another kind or has none yet."""
    return str(nodes[0].metadata.get("strategy_name") or "") if view.kind == STRATEGY else ""
