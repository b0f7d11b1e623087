"""The live tail: everything that happens, as it happens. Its rows come by the stream of the API."""

from fastapi import APIRouter, Request, Response

from contracts.audit import EventType
from services.console.http.events import SERVICES
from services.console.pages.show import ShowPage

pages = APIRouter()


@pages.get("/tail")
async def tail_page(show: ShowPage, request: Request) -> Response:
    """The page with its filter; what the filter is stands in the URL."""
    return show(
        "tail.html",
        query=request.query_params,
        types=[kind.value for kind in EventType],
        services=SERVICES,
    )
