"""The HTTP API: one function a path. What is asked is read; what is wanted is passed on."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Header, Path, Query, Response

from contracts.approval import ApprovalsPage, ApprovalsQuery, Verdict
from contracts.audit import Events, EventsAfter
from contracts.cycle import STRATEGY, CycleStatus, IdempotencyKey
from contracts.cycle_query import CyclesPage, CyclesQuery, CycleView
from contracts.execution import DecisionsPage, DecisionsQuery
from contracts.http import (
    AgentCycle,
    AgentStatus,
    CycleAccepted,
    CycleWish,
    OperationBody,
    OperationsBody,
    ProposalAnswer,
    ProposalApproval,
    Trigger,
    Triggered,
)
from contracts.message import PAGE_MAX, Limit
from contracts.operation import (
    OperationDetail,
    OperationQuery,
    OperationsPage,
    OperationsQuery,
    Sent,
    SentQuery,
)
from contracts.types import ShortText
from libs.web.problem import HttpProblem
from services.console import handler
from services.console.http import (
    boards,
    books,
    events,
    notifications,
    prices,
    proposals,
    search,
    session,
    studies,
    upkeep,
)
from services.console.http.bodies import ROOT, Body, DeskApi, of_cycle, problems
from services.console.http.problems import not_found, tell_problems
from services.console.http.queries import known_names, query_of
from services.console.http.requests import Desk, DeskAccess
from services.console.http.short_ids import CycleId, OperationId, cycle_of
from services.console.views import sent

TITLE = "Deskbus"
REASON_DEFAULT = "cancelled by request"

Key = Annotated[
    IdempotencyKey | None,
    Header(
        alias="Idempotency-Key",
        description="Your own key for this request: sending it again with the same body starts "
        "nothing new; with another body it is refused (409).",
        examples=["nightly-2012-06-29"],
    ),
]


def api(desk: DeskAccess) -> FastAPI:
    """The application."""
    app = DeskApi(
        title=TITLE,
        version="1",
        summary="Request cycles, see what the desk does, answer its proposals.",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        openapi_url=f"{ROOT}/openapi.json",
        redirect_slashes=False,
        dependencies=[Depends(known_names)],
        generate_unique_id_function=lambda route: route.name,
        responses=problems(401, 403, 421, 422, 503),
    )
    for router in (
        agent,
        operations,
        cycles,
        decisions,
        approvals,
        *(books.portfolio, events.events, session.session, prices.market),
        *(boards.boards, boards.tried),
        *(upkeep.letters, upkeep.jobs, upkeep.switch, upkeep.watch),
        *(notifications.notifications, search.search, studies.studies, proposals.proposing),
    ):
        app.include_router(router, prefix=ROOT)
    app.state.desk = desk
    tell_problems(app)
    return app


# --- the strategy cycle -------------------------------------------------------------------------


agent = APIRouter(prefix="/agent", tags=["agent"])


@agent.post(
    "/trigger",
    status_code=HTTPStatus.ACCEPTED,
    responses=problems(409, 413, 415, 429),
)
async def trigger_agent(
    desk: Desk,
    response: Response,
    idempotency_key: Key = None,
    wish: Annotated[Trigger, Body(Trigger)] | None = None,
) -> Triggered:
    """Start a strategy cycle; one runs at a time (409 `active_cycle_exists`)."""
    asked = (wish or Trigger()).request
    accepted_cycle = of_cycle(await desk.requests.cycle(idempotency_key, asked))
    response.headers["Location"] = f"{ROOT}/operations/{accepted_cycle.cycle_id}"
    return Triggered(operation_id=accepted_cycle.cycle_id, status=accepted_cycle.status)


@agent.get("/status")
async def agent_status(desk: Desk) -> AgentStatus:
    """The strategy cycle's state: `active` with its phase, or `idle`."""
    page = await desk.cycles.page(CyclesQuery(kind=STRATEGY, limit=1))
    if not page.cycles:
        return AgentStatus.of(())
    asked = OperationsQuery(cycle_id=page.cycles[0].cycle_id)
    nodes = (await handler.operations(asked, store=desk.store)).operations
    return AgentStatus.of(nodes)


@agent.delete("/cancel", responses=problems(404, 409))
async def cancel_agent(desk: Desk, reason: ShortText = REASON_DEFAULT) -> AgentCycle:
    """Stop the running strategy cycle and its computations at once."""
    running = CyclesQuery(kind=STRATEGY, status=CycleStatus.RUNNING, limit=1)
    page = await desk.cycles.page(running)
    if not page.cycles or page.cycles[0].cycle_id is None:
        raise HttpProblem(404, "no_active_cycle", "no strategy cycle is running")
    ended = of_cycle(await desk.requests.cancel(page.cycles[0].cycle_id, reason))
    return AgentCycle(operation_id=ended.cycle_id, status=ended.status)


# --- operations ---------------------------------------------------------------------------------


operations = APIRouter(prefix="/operations", tags=["operations"])


@operations.get("", responses=problems(404))
async def list_operations(
    desk: Desk,
    query: Annotated[OperationsQuery, Depends(query_of(OperationsQuery, cycle_id=None))],
) -> OperationsBody:
    """The newest operations and cycles; filters by account, session or text return operations
    only."""
    return _listed(await handler.operations(query, store=desk.store))


@operations.get("/{operation_id}", responses=problems(404))
async def get_operation(
    desk: Desk,
    operation_id: OperationId,
) -> OperationBody:
    """One operation, or a cycle as the parent of its operations."""
    node = await handler.node(operation_id, store=desk.store)
    if node is None:
        raise not_found(f"no operation has the id {operation_id}")
    return OperationBody(data=node)


@operations.get("/{operation_id}/record", responses=problems(404))
async def get_record(
    desk: Desk,
    operation_id: OperationId,
) -> OperationDetail:
    """An operation's input, its result, and every call in between."""
    query = OperationQuery(op_id=operation_id)
    detail = await handler.operation(query, store=desk.store)
    if not detail.found:
        raise not_found(f"no operation has the id {operation_id}; cycles have no record")
    return detail


@operations.get("/{operation_id}/calls/{index}/sent", responses=problems(404))
async def get_sent(
    desk: Desk,
    operation_id: OperationId,
    index: Annotated[int, Path(ge=0, le=10_000)],
    first: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Sent:
    """The texts sent to a model with one call, and the difference from the previous call.

    System prompt, tools or answer schema, and the messages that no earlier call of the same
    transcript was sent. With `more`, ask again with `first` as the number of texts and of lines
    of the difference that you have.
    """
    query = SentQuery(op_id=operation_id, index=index, first=first)
    page = await sent.page(query, store=desk.store)
    if not page.found:
        raise not_found(page.message)
    return page


def _listed(page: OperationsPage) -> OperationsBody:
    return OperationsBody(data=page.operations, before=page.before)


# --- cycles and decisions -----------------------------------------------------------------------


cycles = APIRouter(tags=["cycles"])


@cycles.post(
    "/cycles",
    status_code=HTTPStatus.ACCEPTED,
    responses=problems(409, 413, 415, 429),
)
async def request_cycle(
    desk: Desk,
    response: Response,
    wish: Annotated[CycleWish, Body(CycleWish)],
    idempotency_key: Key = None,
) -> CycleAccepted:
    """Request a cycle. The response comes when the cycle is on record."""
    accepted_cycle = of_cycle(await desk.requests.cycle(_key(wish, idempotency_key), wish.request))
    response.headers["Location"] = f"{ROOT}/cycles/{accepted_cycle.cycle_id}"
    return accepted_cycle


@cycles.get("/cycles", responses=problems(404))
async def list_cycles(
    desk: Desk,
    query: Annotated[CyclesQuery, Depends(query_of(CyclesQuery))],
) -> CyclesPage:
    """The newest cycles, without their contracts, each with its outcome in one sentence."""
    return await desk.cycles.page(query)


@cycles.get("/cycles/{cycle_id}", responses=problems(404))
async def get_cycle(desk: Desk, cycle_id: CycleId) -> CycleView:
    """A cycle with all contracts that its pipelines have produced."""
    return await cycle_of(desk, str(cycle_id))


@cycles.delete("/cycles/{cycle_id}", responses=problems(404, 409))
async def cancel_cycle(
    desk: Desk, cycle_id: CycleId, reason: ShortText = REASON_DEFAULT
) -> CycleAccepted:
    """Cancel a cycle that has not started to execute."""
    return of_cycle(await desk.requests.cancel(cycle_id, reason))


@cycles.get("/cycles/{cycle_id}/operations", responses=problems(404))
async def list_operations_of_cycle(desk: Desk, cycle_id: CycleId) -> OperationsBody:
    """A cycle's tree: pipelines, operations, single calls; parents before children."""
    query = OperationsQuery(cycle_id=cycle_id, limit=PAGE_MAX)
    page = await handler.operations(query, store=desk.store)
    if not page.operations:
        raise not_found(f"no cycle has the id {cycle_id}")
    return _listed(page)


@cycles.get("/cycles/{cycle_id}/events", responses=problems(404))
async def list_events_of_cycle(
    desk: Desk,
    cycle_id: CycleId,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="A sequence number.")] = 0,
    limit: Limit = 100,
) -> Events:
    """A cycle's events in order, from the one after `after` on."""
    query = EventsAfter(cycle_id=cycle_id, sequence=after, limit=limit)
    return await handler.events_after(query, store=desk.store)


def _key(wish: CycleWish, header: str | None) -> str | None:
    """The idempotency key, from wherever it came."""
    body = wish.idempotency_key or None
    if header and body and header != body:
        text = "Idempotency-Key and idempotency_key differ: send one of them"
        raise HttpProblem(422, "invalid", text, field="idempotency_key")
    return header or body


# --- decisions and approvals --------------------------------------------------------------------


decisions = APIRouter(tags=["decisions"])


@decisions.get("/decisions", responses=problems(404))
async def list_decisions(
    desk: Desk,
    query: Annotated[DecisionsQuery, Depends(query_of(DecisionsQuery))],
) -> DecisionsPage:
    """The newest decisions with their execution."""
    return await handler.decisions(query, store=desk.store)


approvals = APIRouter(prefix="/approvals", tags=["approvals"])
answered = problems(404, 409, 413, 415)


@approvals.get("", responses=problems(404))
async def list_approvals(
    desk: Desk, query: Annotated[ApprovalsQuery, Depends(query_of(ApprovalsQuery))]
) -> ApprovalsPage:
    """Waiting proposals; the first to expire is on top."""
    return await handler.approvals(query, store=desk.store)


@approvals.post(
    "/{cycle_id}/approve",
    responses=answered,
)
async def approve(
    desk: Desk,
    cycle_id: CycleId,
    word: Annotated[ProposalApproval, Body(ProposalApproval)],
) -> CycleAccepted:
    """Approve a proposal, in whole or in part."""
    verdict = Verdict.EDIT if word.edits else Verdict.APPROVE
    answer = await desk.requests.answer(cycle_id, verdict, word, word.edits)
    return of_cycle(answer)


@approvals.post(
    "/{cycle_id}/reject",
    responses=answered,
)
async def reject(
    desk: Desk,
    cycle_id: CycleId,
    word: Annotated[ProposalAnswer, Body(ProposalAnswer)],
) -> CycleAccepted:
    """Reject a proposal: it orders nothing, and its pipeline ends as rejected."""
    answer = await desk.requests.answer(cycle_id, Verdict.REJECT, word)
    return of_cycle(answer)
