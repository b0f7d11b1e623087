"""Operations: the newest of all cycles."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from contracts.operation import OperationStatus
from services.console.http.requests import DeskAccess
from services.console.pages.choices import OrAll, Word
from services.console.pages.show import Show
from services.console.store import CYCLES_SEARCHED
from services.console.views import tree

OPERATIONS_SHOWN = 60
STEPS = tuple(tree.SUMMARIES)


def operations(desk: DeskAccess, show: Show) -> APIRouter:
    """The pages below /operations."""
    router = APIRouter(prefix="/operations")

    @router.get("")
    async def operations_page(
        request: Request,
        status: Annotated[OperationStatus | None, OrAll, Query()] = None,
        step: Word = None,
    ) -> Response:
        rows = await desk.store.newest_operations(status, step, OPERATIONS_SHOWN)
        return show(
            request,
            "operations.html",
            nodes=[tree.operation_node(row) for row in rows],
            status=status,
            step=step,
            steps=STEPS,
            statuses=OperationStatus,
            searched=CYCLES_SEARCHED,
        )

    return router
