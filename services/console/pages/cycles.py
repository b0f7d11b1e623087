"""Cycles: the list, and several side by side."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from contracts.cycle import KINDS, CycleStatus
from contracts.cycle_query import CyclesPage, CyclesQuery
from contracts.types import IdDigits
from services.console.http.requests import Desk
from services.console.http.short_ids import cycle_of
from services.console.listings.cycles import WALKED_MAX, providers_of
from services.console.pages.choices import chosen, read_page
from services.console.pages.show import ShowPage

CYCLES_SHOWN = 50
COMPARED_MAX = 8


pages = APIRouter(prefix="/cycles")


@pages.get("")
async def cycles_page(desk: Desk, show: ShowPage, request: Request) -> Response:
    """The list, filtered, searched and sorted."""
    asked = chosen(request, CyclesQuery, CYCLES_SHOWN)
    page, wrong, status = await read_page(asked, desk.cycles.page, CyclesPage())
    return show(
        "cycles.html",
        status,
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


@pages.get("/compare")
async def compare_page(
    desk: Desk,
    show: ShowPage,
    named: Annotated[tuple[IdDigits, ...], Query(alias="id", max_length=COMPARED_MAX)] = (),
) -> Response:
    """Several side by side."""
    views = [await cycle_of(desk, digits) for digits in dict.fromkeys(named)]
    return show("cycles_compared.html", cycles=views)
