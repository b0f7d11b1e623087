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
        description="A part of a name, or the first digits of an id, at least four.",
    ),
]


search = APIRouter(tags=["search"])


@search.get("/search")
async def get_search(desk: Desk, q: Sought) -> SearchView:
    """Everything that is named so or has an id that begins so, at most six of a kind."""
    return await view.search(q, store=desk.store, settings=desk.settings)
