"""Operations: the newest of all cycles."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from contracts.operation import OperationStatus
from libs.runtime.errors import DeskError, Unavailable
from services.console.http.requests import DeskAccess
from services.console.listings.operations import (
    SEARCHED_MAX,
    OperationFilter,
    OperationList,
    OperationsFit,
)
from services.console.pages.choices import chosen
from services.console.pages.show import Show
from services.console.store import CYCLES_SEARCHED
from services.console.views import tree

OPERATIONS_SHOWN = 60
STEPS = tuple(tree.SUMMARIES)


def operations(desk: DeskAccess, show: Show) -> APIRouter:
    """The pages below /operations."""
    router = APIRouter(prefix="/operations")
    listed = OperationList(desk.store)

    @router.get("")
    async def operations_page(request: Request) -> Response:
        asked = chosen(request, OperationFilter, OPERATIONS_SHOWN)
        fit, wrong = OperationsFit(()), asked.wrong
        try:
            if asked.query:
                fit = await listed.page(asked.query, OPERATIONS_SHOWN)
        except Unavailable:
            raise
        except DeskError as error:
            wrong = error.message
        return show(
            request,
            "operations.html",
            HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK,
            it=fit,
            asked=asked,
            wrong=wrong,
            steps=STEPS,
            statuses=OperationStatus,
            accounts=await desk.store.accounts(),
            searched=SEARCHED_MAX if asked.words.get("text") else CYCLES_SEARCHED,
        )

    return router
