"""Operations: the newest of all cycles."""

from fastapi import APIRouter, Request, Response

from contracts.operation import OperationsQuery, OperationStatus
from services.console.http.requests import Desk
from services.console.listings.operations import (
    SEARCHED_MAX,
    OperationList,
    OperationsFit,
)
from services.console.pages.choices import chosen, read_page
from services.console.pages.show import ShowPage
from services.console.store import CYCLES_SEARCHED
from services.console.views import tree

OPERATIONS_SHOWN = 60
STEPS = tuple(tree.SUMMARIES)


pages = APIRouter(prefix="/operations")


@pages.get("")
async def operations_page(desk: Desk, show: ShowPage, request: Request) -> Response:
    """The list, filtered and searched."""
    asked = chosen(request, OperationsQuery, OPERATIONS_SHOWN)
    fit, wrong, status = await read_page(asked, OperationList(desk.store).page, OperationsFit(()))
    return show(
        "operations.html",
        status,
        it=fit,
        asked=asked,
        wrong=wrong,
        steps=STEPS,
        statuses=OperationStatus,
        accounts=await desk.store.accounts(),
        searched=SEARCHED_MAX if asked.words.get("text") else CYCLES_SEARCHED,
    )
