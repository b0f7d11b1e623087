"""Cycles: the list, and several side by side."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from contracts.cycle import KINDS, CycleStatus
from contracts.cycle_query import CycleQuery, CyclesPage, CyclesQuery
from contracts.types import IdDigits
from libs.runtime.errors import DeskError, Unavailable
from services.console import handler
from services.console.http.problems import not_found
from services.console.http.requests import DeskAccess
from services.console.listings.cycles import WALKED_MAX, providers_of
from services.console.pages.choices import chosen
from services.console.pages.show import Show

CYCLES_SHOWN = 50
COMPARED_MAX = 8


def cycles(desk: DeskAccess, show: Show) -> APIRouter:
    """The pages below /cycles."""
    router = APIRouter(prefix="/cycles")

    @router.get("")
    async def cycles_page(request: Request) -> Response:
        asked = chosen(request, CyclesQuery, CYCLES_SHOWN)
        page, wrong = CyclesPage(), asked.wrong
        try:
            page = await desk.cycles.page(asked.query) if asked.query else page
        except Unavailable:
            raise
        except DeskError as error:
            wrong = error.message
        return show(
            request,
            "cycles.html",
            HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK,
            it=page,
            asked=asked,
            wrong=wrong,
            kinds=KINDS,
            statuses=CycleStatus,
            accounts=await desk.store.accounts(),
            providers=providers_of(desk.settings),
            walked_max=WALKED_MAX,
            compared_max=COMPARED_MAX,
        )

    @router.get("/compare")
    async def compare_page(
        request: Request,
        named: Annotated[tuple[IdDigits, ...], Query(alias="id", max_length=COMPARED_MAX)] = (),
    ) -> Response:
        views = []
        for digits in dict.fromkeys(named):
            view = await handler.cycle(CycleQuery(cycle_id=digits), store=desk.store)
            if not view.found:
                raise not_found(view.message)
            views.append(view)
        return show(request, "cycles_compared.html", cycles=views)

    return router
