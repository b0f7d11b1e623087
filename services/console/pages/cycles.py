"""Cycles: the list, the form that asks for one, and one with its tree and waterfall."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response

from contracts.cycle import DECISION, EXIT, STRATEGY, Budgets, CycleStatus
from contracts.operation import OperationStatus
from contracts.query import PAGE_MAX, CycleView, OperationsQuery
from contracts.types import Name
from services.console import handler, logic
from services.console.http.problems import not_found
from services.console.http.requests import DeskAccess
from services.console.http.short_ids import cycle_named
from services.console.pages.choices import OrAll, Word
from services.console.pages.show import Show
from services.console.pages.waterfall import CALLS, lines

CYCLES_SHOWN = 50
KINDS = (DECISION, EXIT, STRATEGY, "snapshot", "report")
PROVIDERS = ("rules", "claude", "openai", "minimax")
"""Suggested in the form; any that the desk knows may be named."""


def cycles(desk: DeskAccess, show: Show) -> APIRouter:
    """The pages below /cycles."""
    router = APIRouter(prefix="/cycles")

    @router.get("")
    async def cycles_page(
        request: Request,
        status: Annotated[CycleStatus | None, OrAll, Query()] = None,
        kind: Annotated[Name | None, OrAll, Query()] = None,
        before: Annotated[datetime | None, OrAll, Query()] = None,
    ) -> Response:
        rows = await desk.store.cycles_before(status, kind, before, CYCLES_SHOWN + 1)
        views = tuple(map(logic.cycle_view, rows[:CYCLES_SHOWN]))
        older = views[-1].accepted_at if len(rows) > CYCLES_SHOWN else None
        return show(
            request,
            "cycles.html",
            cycles=views,
            kinds=KINDS,
            statuses=CycleStatus,
            status=status,
            kind=kind,
            before=before,
            older=older,
        )

    @router.get("/new")
    async def request_page(request: Request) -> Response:
        return show(request, "cycle_request.html", providers=PROVIDERS, budgets=Budgets())

    @router.get("/{cycle_id}")
    async def cycle_page(
        request: Request,
        cycle_id: Annotated[UUID, Depends(cycle_named(desk))],
        status: Annotated[OperationStatus | None, OrAll, Query()] = None,
        pipeline: Word = None,
        calls: bool = False,
    ) -> Response:
        view = await _cycle_view(desk, cycle_id)
        asked = OperationsQuery(cycle_id=cycle_id, limit=PAGE_MAX)
        nodes = (await handler.operations(asked, store=desk.store)).operations
        tree = [
            line
            for line in lines(nodes, desk.now(), calls=calls)
            if status in {None, line.node.status} and pipeline in {None, line.node.pipeline}
        ]
        return show(
            request,
            "cycle.html",
            it=view,
            tree=tree,
            calls_made=sum(1 for node in nodes if node.type in CALLS),
            pipelines=list(dict.fromkeys(filter(None, (node.pipeline for node in nodes)))),
            statuses=OperationStatus,
            status=status,
            pipeline=pipeline,
            calls=calls,
        )

    return router


async def _cycle_view(desk: DeskAccess, cycle_id: UUID) -> CycleView:
    """The cycle without its contracts. Raises `Refused`."""
    rows = await desk.store.cycles_between(cycle_id, cycle_id)
    if not rows:
        raise not_found(f"no cycle has the id {cycle_id}")
    return logic.cycle_view(rows[0])
