"""The live tail: everything that happens, as it happens. Its rows come by the stream of the API."""

from fastapi import APIRouter, Request, Response

from contracts.audit import EventType
from services.console.http.events import SERVICES
from services.console.http.requests import DeskAccess
from services.console.pages.show import Show


def tail(_: DeskAccess, show: Show) -> APIRouter:
    """The page with its filter; what the filter is stands in the URL."""
    router = APIRouter()

    @router.get("/tail")
    async def tail_page(request: Request) -> Response:
        return show(
            request,
            "tail.html",
            query=request.query_params,
            types=[kind.value for kind in EventType],
            services=SERVICES,
        )

    return router
