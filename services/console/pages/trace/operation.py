"""One operation and one call: what went in, came out, was asked, and what it cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import RedirectResponse
from pydantic import JsonValue

from contracts.operation import CallKind, JournalEntry, OperationView
from libs.postgres.pool import Record
from libs.report.calls import sentence
from libs.report.calls.chat import Chat
from libs.report.calls.sent import ROWS_MAX, described
from libs.report.cited import cited_texts, results_by_id
from libs.report.view import Table
from services.console.http.problems import not_found
from services.console.http.requests import Desk, DeskAccess
from services.console.http.short_ids import OperationId
from services.console.pages.show import ShowPage
from services.console.pages.trace.values import RecordedValue, passages, recorded
from services.console.sizes import cut
from services.console.store import sql
from services.console.views import tree
from services.console.views.sent import call_of

CALLS_SHOWN = 100
"""Calls on one page of an operation."""
INDEX_MAX = 10_000
EVIDENCE_SEARCHED = 1_000
"""Among so many first calls the results are numbered that figures are from."""
COMMAND_BYTES_SHOWN = 120_000
CALL_BYTES_SHOWN = 60_000
"""Of a request or a reply; a larger one is cut, and says so."""

Index = Annotated[int, Path(ge=0, le=INDEX_MAX)]


pages = APIRouter(prefix="/operations/{operation_id}")


@pages.get("")
async def operation_page(
    desk: Desk,
    show: ShowPage,
    operation_id: OperationId,
    call: Annotated[str | None, Query(max_length=20)] = None,
    first: Annotated[int, Query(ge=0, le=INDEX_MAX)] = 0,
) -> Response:
    """One operation with its calls."""
    row = await desk.store.operation(operation_id)
    if row is None:
        if await desk.store.rows(sql.cycles_between, operation_id, operation_id):
            return RedirectResponse(f"/cycles/{operation_id}", 303)
        raise not_found(f"no operation has the id {operation_id}")
    results = await _results(desk, row)
    sought = results.get(call or "")
    return show("operation.html", **await _operation(desk, row, first, results, sought))


@pages.get("/calls/{index}")
async def call_page(
    desk: Desk, show: ShowPage, operation_id: OperationId, index: Index
) -> Response:
    """One call."""
    row = await desk.store.operation(operation_id)
    one = await _call(desk, row, index) if row is not None else None
    if row is None or one is None:
        raise not_found(f"operation {operation_id} has no call {index}")
    return show("call.html", node=tree.operation_node(row), one=one, passages=passages)


async def _results(desk: DeskAccess, row: Record) -> Mapping[str, int]:
    """The index of each result that figures of the operation are from, as `E0`."""
    kinds = await desk.store.rows(
        sql.kinds_of_calls, row["started_on"], row["op_id"], EVIDENCE_SEARCHED
    )
    return results_by_id({record["index"]: CallKind(record["kind"]) for record in kinds})


async def _operation(
    desk: DeskAccess, row: Record, first: int, results: Mapping[str, int], sought: int | None
) -> dict[str, Any]:
    """The facts of the operation's page."""
    node = tree.operation_node(row)
    if sought is not None:
        first = sought - sought % CALLS_SHOWN
    rows = await desk.store.rows(
        sql.calls_of_cycle, row["cycle_id"], first, CALLS_SHOWN + 1, row["op_id"]
    )
    result = orjson.loads(row["result"]) if row["result"] else None
    return {
        "node": node,
        "input": recorded(cut(orjson.loads(row["command"]), COMMAND_BYTES_SHOWN)),
        "output": recorded(cut(result, COMMAND_BYTES_SHOWN)),
        "texts": [(_named(result, f), pieces) for f, pieces in cited_texts(node.op_id, result)],
        "calls": [_listed(tree.call_node(record, node)) for record in rows[:CALLS_SHOWN]],
        "results": {index: name for name, index in results.items()},
        "sought": await _call(desk, row, sought) if sought is not None else None,
        "first": first,
        "more": len(rows) > CALLS_SHOWN,
        "step": CALLS_SHOWN,
        "passages": passages,
    }


def _named(result: JsonValue, field: str) -> str:
    """A field's path as people read it: `AAPL summary` for `tickers.0.summary`."""
    words: list[str] = []
    value = result
    for step in field.split("."):
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
            known = value if isinstance(value, dict) else {}
            name = known.get("ticker") or known.get("asset")
            words = [*words[:-1], str(name)] if name else [*words, step]
        else:
            value = value.get(step) if isinstance(value, dict) else None
            words.append(step.replace("_", " "))
    return " ".join(words)


@dataclass(frozen=True)
class ListedCall:
    """A call in the list of its operation."""

    node: OperationView
    index: int
    sentence: str

    @property
    def href(self) -> str:
        """Its page."""
        return f"/operations/{self.node.parent_id}/calls/{self.index}"


def _listed(node: OperationView) -> ListedCall:
    return ListedCall(node, int(str(node.metadata["index"])), sentence.of_node(node))


@dataclass(frozen=True)
class OneCall:
    """A call as it is shown whole; `chat`, and its `difference` to the call before, where a model
    was asked."""

    op_id: UUID
    entry: JournalEntry
    epoch: int
    recorded_at: Any
    sentence: str
    request: RecordedValue | None
    reply: RecordedValue | None
    chat: Chat | None
    difference: Table | None
    has_next: bool

    @property
    def index(self) -> int:
        """Its place in the journal."""
        return self.entry.index

    @property
    def error(self) -> str:
        """The fault; empty where there was none."""
        fault = self.entry.fault
        return f"{fault.get('code')}: {fault.get('message')}" if fault else ""

    @property
    def problems(self) -> Sequence[str]:
        """The errors of an answer that was not valid."""
        reply = self.entry.reply
        errors = reply.get("errors") if isinstance(reply, dict) and not self.entry.passed else None
        return [str(error) for error in errors] if isinstance(errors, list) else []


async def _call(desk: DeskAccess, row: Record, index: int) -> OneCall | None:
    """The call with what it had read before, where it is a model's; None where there is none."""
    place = row["started_on"], row["op_id"]
    own = {
        record["index"]: record
        for record in await desk.store.rows(sql.calls_between, *place, index, index + 1)
    }
    if index not in own:
        return None
    entry = JournalEntry.model_validate_json(own[index]["entry"])
    asked = await call_of(desk.store, row, index)
    return OneCall(
        op_id=row["op_id"],
        entry=entry,
        epoch=own[index]["epoch"],
        recorded_at=own[index]["recorded_at"],
        sentence=sentence.of_entry(entry),
        request=recorded(_shown(_asked(entry))),
        reply=recorded(_shown(entry.reply)),
        chat=asked.chat if asked else None,
        difference=described(asked.difference, ROWS_MAX) if asked else None,
        has_next=index + 1 in own,
    )


def _asked(entry: JournalEntry) -> JsonValue:
    """The request; of a tool its arguments, unless they could not be read."""
    request = entry.request
    if entry.kind is CallKind.TOOL and isinstance(request, dict) and not request.get("unread"):
        return request.get("arguments")
    return request


def _shown(value: JsonValue) -> JsonValue:
    return cut(value, CALL_BYTES_SHOWN)
