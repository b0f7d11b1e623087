"""Which cycle or operation an address means: its id, or the first digits of it, as everywhere in
the desk."""

import contextlib
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Query

from contracts.cycle_query import CycleQuery, CycleView
from libs.runtime.ids import NotFound
from libs.web.problem import HttpProblem
from services.console import handler
from services.console.http.problems import not_found
from services.console.http.requests import Desk, DeskAccess

ID_CHARS_MAX = 40
"""A whole id with its dashes has 36."""


async def cycle_named(desk: Desk, cycle_id: Annotated[str, Path(max_length=ID_CHARS_MAX)]) -> UUID:
    """The id of the cycle that `cycle_id` of a path names. Raises NotFound."""
    return await handler.whole_cycle_id(cycle_id, store=desk.store)


async def cycle_of(desk: DeskAccess, cycle_id: str) -> CycleView:
    """The cycle with all that was decided. Raises `HttpProblem` (404) where there is none."""
    view = await handler.cycle(CycleQuery(cycle_id=cycle_id), store=desk.store)
    if not view.found:
        raise not_found(view.message)
    return view


async def operation_named(
    desk: Desk, operation_id: Annotated[str, Path(max_length=ID_CHARS_MAX)]
) -> UUID:
    """The same for `operation_id`: of an operation, or of a cycle as the parent of its operations.
    Raises NotFound."""
    with contextlib.suppress(ValueError):
        return UUID(operation_id)
    return await handler.operation_id(operation_id, store=desk.store)


async def cycle_asked_for(
    desk: Desk, cycle_id: Annotated[str | None, Query(max_length=ID_CHARS_MAX)] = None
) -> UUID | None:
    """The same of a query's `cycle_id`, which may be left out or sent empty: a filter that names no
    cycle is refused."""
    try:
        return await cycle_named(desk, cycle_id) if cycle_id else None
    except NotFound as error:
        raise HttpProblem(
            HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", error.message, field="query.cycle_id"
        ) from error


CycleId = Annotated[UUID, Depends(cycle_named)]
OperationId = Annotated[UUID, Depends(operation_named)]
AskedCycle = Annotated[UUID | None, Depends(cycle_asked_for)]
