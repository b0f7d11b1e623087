"""Which cycle or operation an address means: its id, or the first digits of it, as everywhere in
the desk."""

import contextlib
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import Path, Query

from libs.runtime.ids import NotFound
from libs.web.problem import HttpProblem
from services.console import handler
from services.console.http.requests import DeskAccess

ID_CHARS_MAX = 40
"""A whole id with its dashes has 36."""


def cycle_named(desk: DeskAccess) -> Callable[[str], Awaitable[UUID]]:
    """For `Depends`: the id of the cycle that `cycle_id` of a path names. Raises NotFound."""

    async def cycle_id_of(cycle_id: Annotated[str, Path(max_length=ID_CHARS_MAX)]) -> UUID:
        with contextlib.suppress(ValueError):
            return UUID(cycle_id)  # whole: whoever is asked says whether there is such a cycle
        row = await handler.cycle_row(cycle_id, store=desk.store)
        full_id: UUID = row["cycle_id"]
        return full_id

    return cycle_id_of


def operation_named(desk: DeskAccess) -> Callable[[str], Awaitable[UUID]]:
    """The same for `operation_id`: of an operation, or of a cycle as the parent of its operations.
    Raises NotFound."""

    async def operation_id_of(operation_id: Annotated[str, Path(max_length=ID_CHARS_MAX)]) -> UUID:
        with contextlib.suppress(ValueError):
            return UUID(operation_id)
        return await handler.operation_id(operation_id, store=desk.store)

    return operation_id_of


def cycle_query(desk: DeskAccess) -> Callable[[str | None], Awaitable[UUID | None]]:
    """The same of a query's `cycle_id`, which may be left out or sent empty: a filter that names no
    cycle is refused."""
    named = cycle_named(desk)

    async def cycle_id_of(
        cycle_id: Annotated[str | None, Query(max_length=ID_CHARS_MAX)] = None,
    ) -> UUID | None:
        try:
            return await named(cycle_id) if cycle_id else None
        except NotFound as error:
            text = error.message
            raise HttpProblem(
                HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", text, field="query.cycle_id"
            ) from error

    return cycle_id_of
