"""Cycles: the list, and the form that asks for one."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from contracts.cycle import DECISION, EXIT, STRATEGY, Budgets, CycleStatus
from contracts.types import Name
from services.console import logic
from services.console.http.requests import DeskAccess
from services.console.pages.choices import OrAll
from services.console.pages.show import Show

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

    return router
