"""Operations: the newest of all cycles, and one with what went in, came out and was asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import JsonValue

from contracts.operation import OperationStatus
from contracts.query import OperationQuery
from libs.report.cited import cited_texts, results_by_id
from services.console import handler
from services.console.http.problems import not_found
from services.console.http.requests import DeskAccess
from services.console.http.short_ids import operation_named
from services.console.pages import words
from services.console.pages.choices import OrAll, Word
from services.console.pages.show import Show
from services.console.store import CYCLES_SEARCHED
from services.console.views import tree

OPERATIONS_SHOWN = 60
STEPS = tuple(tree.SUMMARIES)
PANEL_CHARS_OPEN = 700
"""What is not larger is shown without a click."""


def operations(desk: DeskAccess, show: Show) -> APIRouter:
    """The pages below /operations."""
    router = APIRouter(prefix="/operations")

    @router.get("")
    async def operations_page(
        request: Request,
        status: Annotated[OperationStatus | None, OrAll, Query()] = None,
        step: Word = None,
    ) -> Response:
        rows = await desk.store.newest_operations(status, step, OPERATIONS_SHOWN)
        return show(
            request,
            "operations.html",
            nodes=[tree.operation_node(row) for row in rows],
            status=status,
            step=step,
            steps=STEPS,
            statuses=OperationStatus,
            searched=CYCLES_SEARCHED,
        )

    @router.get("/{operation_id}")
    async def operation_page(
        request: Request,
        operation_id: Annotated[UUID, Depends(operation_named(desk))],
        call: Annotated[str | None, Query(max_length=20)] = None,
    ) -> Response:
        detail = await handler.operation(OperationQuery(op_id=operation_id), store=desk.store)
        if detail.operation is not None:
            return show(
                request,
                "operation.html",
                it=detail,
                node=detail.operation,
                input=recorded(detail.command),
                output=recorded(detail.result),
                texts=cited_texts(detail.operation.op_id, detail.result),
                results={index: name for name, index in results_by_id(detail.journal).items()},
                sought=call,
            )
        if await desk.store.cycles_between(operation_id, operation_id):
            return RedirectResponse(f"/cycles/{operation_id}", 303)
        raise not_found(f"no operation has the id {operation_id}")

    return router


@dataclass(frozen=True)
class Recorded:
    """A recorded value: single values as facts, the rest as JSON in panels (name, text, open)."""

    facts: Sequence[tuple[str, JsonValue]]
    panels: Sequence[tuple[str, str, bool]]


def recorded(value: JsonValue) -> Recorded | None:
    """The value by its fields."""
    if value is None:
        return None
    fields = value if isinstance(value, dict) else {"value": value}
    facts = [(name, field) for name, field in fields.items() if not isinstance(field, dict | list)]
    rest = [(name, words.json(e)) for name, e in fields.items() if isinstance(e, dict | list) and e]
    panels = [(name, text, len(text) <= PANEL_CHARS_OPEN) for name, text in rest]
    return Recorded(facts, panels)
