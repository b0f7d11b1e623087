"""The HTTP API: one function a path. What is asked is read; what is wanted is passed on."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, FastAPI, Header, Path, Query, Response

from contracts.approval import ApprovalsPage, ApprovalsQuery, Verdict
from contracts.audit import Events, EventsAfter
from contracts.cycle import STRATEGY, CycleStatus, IdempotencyKey
from contracts.cycle_query import CycleQuery, CyclesPage, CyclesQuery, CycleView
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
from contracts.message import PAGE_MAX
from contracts.operation import (
    OperationDetail,
    OperationQuery,
    OperationsPage,
    OperationsQuery,
    Sent,
    SentQuery,
)
from contracts.types import Name, ShortText
from libs.web.problem import Refused
from services.console import handler
from services.console.http import upkeep
from services.console.http.boards import boards, tried
from services.console.http.bodies import asked, body_of, described, json_of, of_cycle, problems
from services.console.http.books import books, exits, performance, sales
from services.console.http.events import events
from services.console.http.lists import Limit, cycles_asked, operations_asked
from services.console.http.notifications import notifications
from services.console.http.prices import market
from services.console.http.problems import not_found, tell_problems
from services.console.http.queries import known_names
from services.console.http.requests import DeskAccess
from services.console.http.search import search
from services.console.http.session import session
from services.console.http.short_ids import cycle_asked, cycle_named, operation_named
from services.console.http.studies import scored, studies
from services.console.views import sent

ROOT = "/api/v1"
TITLE = "Deskbus"
REASON_DEFAULT = "cancelled by request"

Key = Annotated[
    IdempotencyKey | None,
    Header(
        alias="Idempotency-Key",
        description="Your own name for this request: sent again with the same body nothing new "
        "happens, with another body it is refused (409).",
        examples=["nightly-2012-06-29"],
    ),
]


def api(desk: DeskAccess) -> FastAPI:
    """The application."""
    app = FastAPI(
        title=TITLE,
        version="1",
        summary="Ask the desk for cycles, see what it does, answer its proposals.",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        openapi_url=f"{ROOT}/openapi.json",
        redirect_slashes=False,
        dependencies=[Depends(known_names)],
        generate_unique_id_function=lambda route: route.name,
        responses=problems(401, 403, 421, 422, 503),
    )
    for routes in (
        agent,
        operations,
        cycles,
        one_cycle,
        decisions,
        approvals,
        books,
        performance,
        exits,
        sales,
        events,
    ):
        app.include_router(routes(desk), prefix=ROOT)
    for routes in (
        session,
        market,
        boards,
        tried,
        upkeep.letters,
        upkeep.jobs,
        upkeep.switch,
        upkeep.watch,
        notifications,
        search,
        scored,
    ):
        app.include_router(routes(desk), prefix=ROOT)
    app.include_router(studies(desk, ROOT), prefix=ROOT)
    tell_problems(app)
    app.openapi = lambda: described(app)  # type: ignore[method-assign]
    return app


# --- the strategy cycle -------------------------------------------------------------------------


def agent(desk: DeskAccess) -> APIRouter:
    """Design, train, backtest and assess a strategy."""
    router = APIRouter(prefix="/agent", tags=["agent"])

    @router.post(
        "/trigger",
        status_code=HTTPStatus.ACCEPTED,
        response_model=Triggered,
        responses=problems(409, 413, 415, 429),
        openapi_extra=asked(Trigger, needed=False),
    )
    async def trigger_agent(
        wish: Annotated[Trigger, Depends(body_of(Trigger, needed=False))],
        idempotency_key: Key = None,
    ) -> Response:
        """Start a strategy cycle; one runs at a time (409 `active_cycle_exists`)."""
        accepted_cycle = of_cycle(await desk.requests.cycle(idempotency_key, wish.request))
        body = Triggered(operation_id=accepted_cycle.cycle_id, status=accepted_cycle.status)
        where = {"Location": f"{ROOT}/operations/{accepted_cycle.cycle_id}"}
        return json_of(body, HTTPStatus.ACCEPTED, where)

    @router.get("/status", response_model=AgentStatus)
    async def agent_status() -> Response:
        """Where the strategy cycle is: `active` with its phase, or `idle`."""
        page = await desk.cycles.page(CyclesQuery(kind=STRATEGY, limit=1))
        if not page.cycles:
            return json_of(AgentStatus.of(()))
        asked = OperationsQuery(cycle_id=page.cycles[0].cycle_id)
        nodes = (await handler.operations(asked, store=desk.store, lists=desk.lists)).operations
        return json_of(AgentStatus.of(nodes))

    @router.delete("/cancel", response_model=AgentCycle, responses=problems(404, 409))
    async def cancel_agent(reason: ShortText = REASON_DEFAULT) -> Response:
        """Stop the strategy cycle that runs: whatever it computes ends at once."""
        running = CyclesQuery(kind=STRATEGY, status=CycleStatus.RUNNING, limit=1)
        page = await desk.cycles.page(running)
        if not page.cycles or page.cycles[0].cycle_id is None:
            raise Refused(404, "no_active_cycle", "no strategy cycle is running")
        ended = of_cycle(await desk.requests.cancel(page.cycles[0].cycle_id, reason))
        return json_of(AgentCycle(operation_id=ended.cycle_id, status=ended.status))

    return router


# --- operations ---------------------------------------------------------------------------------


def operations(desk: DeskAccess) -> APIRouter:
    """Tracked work."""
    router = APIRouter(prefix="/operations", tags=["operations"])

    @router.get("", response_model=OperationsBody, responses=problems(404))
    async def list_operations(
        query: Annotated[OperationsQuery, Depends(operations_asked)],
    ) -> Response:
        """The newest operations and cycles; by account, session or text, operations alone."""
        return _listed(await handler.operations(query, store=desk.store, lists=desk.lists))

    @router.get("/{operation_id}", response_model=OperationBody, responses=problems(404))
    async def get_operation(
        operation_id: Annotated[UUID, Depends(operation_named(desk))],
    ) -> Response:
        """One operation, or a cycle as the parent of its operations."""
        node = await handler.node(operation_id, store=desk.store)
        if node is None:
            raise not_found(f"no operation has the id {operation_id}")
        return json_of(OperationBody(data=node))

    @router.get("/{operation_id}/record", response_model=OperationDetail, responses=problems(404))
    async def get_record(
        operation_id: Annotated[UUID, Depends(operation_named(desk))],
    ) -> Response:
        """An operation's input, its result, and every call in between."""
        query = OperationQuery(op_id=operation_id)
        detail = await handler.operation(query, store=desk.store)
        if not detail.found:
            raise not_found(f"no operation has the id {operation_id}; cycles have no record")
        return json_of(detail)

    @router.get("/{operation_id}/calls/{index}/sent", response_model=Sent, responses=problems(404))
    async def get_sent(
        operation_id: Annotated[UUID, Depends(operation_named(desk))],
        index: Annotated[int, Path(ge=0, le=10_000)],
        first: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        """The texts that a model was sent with one call, and the difference to the call before.

        System prompt, tools or answer schema, and the messages that no earlier call of the same
        transcript was sent. With `more`, ask again with `first` as the number of texts and of lines
        of the difference that you have.
        """
        query = SentQuery(op_id=operation_id, index=index, first=first)
        page = await sent.page(query, store=desk.store)
        if not page.found:
            raise not_found(page.message)
        return json_of(page)

    return router


def _listed(page: OperationsPage) -> Response:
    return json_of(OperationsBody(data=page.operations, before=page.before))


# --- cycles and decisions -----------------------------------------------------------------------


def cycles(desk: DeskAccess) -> APIRouter:
    """One run of a workflow each."""
    router = APIRouter(tags=["cycles"])

    @router.post(
        "/cycles",
        status_code=HTTPStatus.ACCEPTED,
        response_model=CycleAccepted,
        responses=problems(409, 413, 415, 429),
        openapi_extra=asked(CycleWish),
    )
    async def request_cycle(
        wish: Annotated[CycleWish, Depends(body_of(CycleWish))], idempotency_key: Key = None
    ) -> Response:
        """Ask for a cycle. The answer comes once it is on record."""
        accepted_cycle = of_cycle(
            await desk.requests.cycle(_key(wish, idempotency_key), wish.request)
        )
        where = {"Location": f"{ROOT}/cycles/{accepted_cycle.cycle_id}"}
        return json_of(accepted_cycle, HTTPStatus.ACCEPTED, where)

    @router.get("/cycles", response_model=CyclesPage, responses=problems(404))
    async def list_cycles(
        query: Annotated[CyclesQuery, Depends(cycles_asked)],
    ) -> Response:
        """The newest cycles, without their contracts, each with its outcome in one sentence."""
        return json_of(await desk.cycles.page(query))

    return router


def one_cycle(desk: DeskAccess) -> APIRouter:
    """A single one, named by its id or the first digits of it."""
    router = APIRouter(tags=["cycles"])
    named = cycle_named(desk)

    @router.get("/cycles/{cycle_id}", response_model=CycleView, responses=problems(404))
    async def get_cycle(cycle_id: Annotated[UUID, Depends(named)]) -> Response:
        """A cycle with all the contracts that its pipelines have accepted."""
        return json_of(await _cycle(desk, cycle_id))

    @router.delete("/cycles/{cycle_id}", response_model=CycleAccepted, responses=problems(404, 409))
    async def cancel_cycle(
        cycle_id: Annotated[UUID, Depends(named)], reason: ShortText = REASON_DEFAULT
    ) -> Response:
        """Stop a cycle that has not begun to execute."""
        return json_of(of_cycle(await desk.requests.cancel(cycle_id, reason)))

    @router.get(
        "/cycles/{cycle_id}/operations", response_model=OperationsBody, responses=problems(404)
    )
    async def list_operations_of_cycle(cycle_id: Annotated[UUID, Depends(named)]) -> Response:
        """A cycle's tree: pipelines, operations, single calls; parents before children."""
        query = OperationsQuery(cycle_id=cycle_id, limit=PAGE_MAX)
        page = await handler.operations(query, store=desk.store, lists=desk.lists)
        if not page.operations:
            raise not_found(f"no cycle has the id {cycle_id}")
        return _listed(page)

    @router.get("/cycles/{cycle_id}/events", response_model=Events, responses=problems(404))
    async def list_events_of_cycle(
        cycle_id: Annotated[UUID, Depends(named)],
        after: Annotated[int, Query(ge=0, le=2**31 - 1, description="A sequence number.")] = 0,
        limit: Limit = 100,
    ) -> Response:
        """A cycle's events in order, from the one after `after` on."""
        query = EventsAfter(cycle_id=cycle_id, sequence=after, limit=limit)
        return json_of(await handler.events_after(query, store=desk.store))

    return router


def _key(wish: CycleWish, header: str | None) -> str | None:
    """The idempotency key, from wherever it came."""
    body = wish.idempotency_key or None
    if header and body and header != body:
        text = "Idempotency-Key and idempotency_key differ: send one of them"
        raise Refused(422, "invalid", text, field="idempotency_key")
    return header or body


async def _cycle(desk: DeskAccess, cycle_id: UUID) -> CycleView:
    view = await handler.cycle(CycleQuery(cycle_id=str(cycle_id)), store=desk.store)
    if not view.found:
        raise not_found(view.message)
    return view


# --- decisions and approvals --------------------------------------------------------------------


def decisions(desk: DeskAccess) -> APIRouter:
    """The newest decisions."""
    router = APIRouter(tags=["decisions"])
    asked_of = cycle_asked(desk)

    @router.get("/decisions", response_model=DecisionsPage, responses=problems(404))
    async def list_decisions(
        cycle_id: Annotated[UUID | None, Depends(asked_of)],
        account: Name | None = None,
        limit: Limit = 20,
    ) -> Response:
        """The newest decisions, each with what was executed of it."""
        query = DecisionsQuery(cycle_id=cycle_id, account=account, limit=limit)
        return json_of(await handler.decisions(query, store=desk.store))

    return router


def approvals(desk: DeskAccess) -> APIRouter:
    """Proposals that wait for a person."""
    router = APIRouter(prefix="/approvals", tags=["approvals"])
    answered = problems(404, 409, 413, 415)
    named, asked_of = cycle_named(desk), cycle_asked(desk)

    @router.get("", response_model=ApprovalsPage)
    async def list_approvals(
        cycle_id: Annotated[UUID | None, Depends(asked_of)], limit: Limit = 20
    ) -> Response:
        """The proposals that wait, the one that expires first on top."""
        query = ApprovalsQuery(cycle_id=cycle_id, limit=limit)
        return json_of(await handler.approvals(query, store=desk.store))

    @router.post(
        "/{cycle_id}/approve",
        response_model=CycleAccepted,
        responses=answered,
        openapi_extra=asked(ProposalApproval),
    )
    async def approve(
        cycle_id: Annotated[UUID, Depends(named)],
        word: Annotated[ProposalApproval, Depends(body_of(ProposalApproval))],
    ) -> Response:
        """Approve a proposal, whole or smaller."""
        verdict = Verdict.EDIT if word.edits else Verdict.APPROVE
        answer = await desk.requests.answer(cycle_id, verdict, word, word.edits)
        return json_of(of_cycle(answer))

    @router.post(
        "/{cycle_id}/reject",
        response_model=CycleAccepted,
        responses=answered,
        openapi_extra=asked(ProposalAnswer),
    )
    async def reject(
        cycle_id: Annotated[UUID, Depends(named)],
        word: Annotated[ProposalAnswer, Depends(body_of(ProposalAnswer))],
    ) -> Response:
        """Reject a proposal: nothing is ordered, and its pipeline ends as rejected."""
        answer = await desk.requests.answer(cycle_id, Verdict.REJECT, word)
        return json_of(of_cycle(answer))

    return router
