"""The HTTP API's path that finds anything by its name or id."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from contracts.http import SearchView
from contracts.types import SEARCH_CHARS_MAX
from services.console.http.bodies import json_of
from services.console.http.requests import DeskAccess
from services.console.views import search as view

Sought = Annotated[
    str,
    Query(
        max_length=SEARCH_CHARS_MAX,
        description="A part of a name, or the first digits of an id, at least four.",
    ),
]


def search(desk: DeskAccess) -> APIRouter:
    """The search over everything."""
    router = APIRouter(tags=["search"])

    @router.get("/search", response_model=SearchView)
    async def get_search(q: Sought) -> Response:
        """Everything that is named so or has an id that begins so, at most six of a kind."""
        results = await view.search(q, lists=desk.lists, store=desk.store, settings=desk.settings)
        return json_of(results)

    return router
