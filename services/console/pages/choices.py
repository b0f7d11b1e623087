"""Filters in a page's address: what a form sends empty means all, and what cannot be is told on the
page, beside what was chosen."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, TypeVar
from urllib.parse import urlencode

from fastapi import Request
from pydantic import BaseModel, ValidationError

from libs.runtime.errors import DeskError, Unavailable
from libs.runtime.wording import problems_of

ORDER = frozenset({"sort", "ascending", "before"})
CHOSEN_CHARS_MAX = 200
"""Of what was sent, as much is shown again in the form."""

Query = TypeVar("Query", bound=BaseModel)
Page = TypeVar("Page")


@dataclass(frozen=True)
class Chosen(Generic[Query]):
    """The filters of an address: `words` by name as they were sent, and the query that they stand
    for; None where they cannot be, and `wrong` says why."""

    words: Mapping[str, str]
    query: Query | None
    wrong: str = ""

    @property
    def filters(self) -> Mapping[str, str]:
        """The words that leave something out: not the order, not the page."""
        return {name: word for name, word in self.words.items() if name not in ORDER}

    def word(self, name: str) -> str:
        """The word that was sent under the name; empty where none was."""
        return self.words.get(name, "")

    def at(self, path: str, **changed: object) -> str:
        """The address with some words changed; those that are changed to nothing are left out."""
        words = {**self.words, **changed}
        query = urlencode({name: str(word) for name, word in words.items() if word})
        return f"{path}?{query}" if query else path


def chosen(request: Request, model: type[Query], limit: int) -> Chosen[Query]:
    """The filters that an address has of the model's fields, with so many entries a page."""
    words = {
        name: word.strip()[:CHOSEN_CHARS_MAX]
        for name, word in request.query_params.items()
        if name in model.model_fields
        and name not in {"cycle_id", "limit", "version"}
        and word.strip()
    }
    try:
        return Chosen(words, model.model_validate({**words, "limit": limit}))
    except ValidationError as error:
        return Chosen(words, None, problems_of(error.errors(include_url=False))[0])


async def read_page(
    asked: Chosen[Query], read: Callable[[Query], Awaitable[Page]], nothing: Page
) -> tuple[Page, str, HTTPStatus]:
    """The page of a list, why there is none, and the answer's status."""
    page, wrong = nothing, asked.wrong
    try:
        page = await read(asked.query) if asked.query else page
    except Unavailable:
        raise
    except DeskError as error:
        wrong = error.message
    return page, wrong, HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK
