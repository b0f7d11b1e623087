"""The HTTP API's path that finds anything by its name or id."""

from typing import Annotated

from fastapi import APIRouter, Query

from contracts.http import SearchView
from contracts.types import SEARCH_CHARS_MAX
from services.console.http.requests import Desk
from services.console.views import search as view

Sought = Annotated[
    str,
    Query(
        max_length=SEARCH_CHARS_MAX,
        description="Part of a name, or at least the first four digits of an id.",
    ),
]


search = APIRouter(tags=["search"])


@search.get("/search")
async def get_search(desk: Desk, q: Sought) -> SearchView:
    """Everything with this name or id prefix, at most six of each kind."""
    return await view.search(q, store=desk.store, settings=desk.settings)
