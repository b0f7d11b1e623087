"""Operations: the newest of all cycles."""

from datetime import date
from http import HTTPStatus

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from contracts.operation import OperationStatus
from contracts.types import IdDigits, Name, Sought
from libs.runtime.errors import DeskError, Unavailable
from services.console.http.requests import DeskAccess
from services.console.listed.operations import (
    SEARCHED_MAX,
    Like,
    OperationList,
    OperationsFit,
)
from services.console.lists import CYCLES_SEARCHED
from services.console.pages.choices import chosen
from services.console.pages.show import Show
from services.console.views import tree

OPERATIONS_SHOWN = 60
STEPS = tuple(tree.SUMMARIES)


class OperationsAsked(BaseModel):
    """The filters that the page's address may have."""

    status: OperationStatus | None = None
    step: Name | None = None
    account: Name | None = None
    since: date | None = None
    until: date | None = None
    text: Sought | None = None
    before: IdDigits | None = None


def operations(desk: DeskAccess, show: Show) -> APIRouter:
    """The pages below /operations."""
    router = APIRouter(prefix="/operations")
    listed = OperationList(desk.lists, desk.store)

    @router.get("")
    async def operations_page(request: Request) -> Response:
        asked = chosen(request, OperationsAsked, OPERATIONS_SHOWN)
        fit, wrong = OperationsFit(()), asked.wrong
        try:
            if asked.query:
                fit = await listed.page(Like(**dict(asked.query)), OPERATIONS_SHOWN)
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
