"""The tools, as one table: what a model is told of each, what it may pass, and what answers.

The market tools are those of the desk's own agents (libs/market/tools.py), with `as_of` as one more
argument. Nothing here approves, cancels or trades; only `request_cycle` starts anything, and it is
in the table only where a person has said so.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from contracts.cycle import STRATEGY, CycleRequest, RequestAnswer
from contracts.exit_signal import CheckExitSignals, ExitSignals
from contracts.message import Pipeline
from contracts.operation import CallKind
from contracts.query import (
    AccountQuery,
    AccountView,
    CycleQuery,
    CyclesPage,
    CyclesQuery,
    CycleView,
    DecisionsPage,
    DecisionsQuery,
    OperationDetail,
    OperationQuery,
    OperationsPage,
    OperationsQuery,
)
from contracts.subjects import (
    ACCOUNT,
    CYCLE,
    CYCLES,
    DECISIONS,
    EXIT_SIGNALS,
    OPERATION,
    OPERATIONS,
    REQUEST_CYCLE,
)
from libs.market.source import MarketData
from libs.market.tools import MARKET_TOOL_NAMES, TOOLS, MarketTools
from libs.runtime.errors import DeskError, few
from libs.runtime.wording import describe
from services.mcp_server import exit_shapes, shapes
from services.mcp_server.arguments import (
    Arguments,
    CycleArguments,
    CyclesArguments,
    DecisionsArguments,
    ExitArguments,
    OperationArguments,
    OperationsArguments,
    PortfolioArguments,
    RequestArguments,
)
from services.mcp_server.desk import Desk

EXIT_SIGNALS_TIMEOUT_S = 60.0
"""A live source may be asked for the prices of a whole basket."""
LEAVES = {each.value for each in CallKind}

Answer = Mapping[str, Any]
Schema = Mapping[str, Any]
A = TypeVar("A", bound="Arguments")


class ToolFailed(DeskError):
    """A tool's no, in words that a model can act on; `answer` where it has said more."""

    def __init__(self, code: str, message: str, answer: Answer | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.answer = answer


@dataclass(frozen=True)
class Tool:
    """One tool. `run` takes raw arguments; `reads` is whether it changes nothing anywhere."""

    name: str
    title: str
    description: str
    takes: Schema
    gives: Schema
    run: Callable[[Mapping[str, Any]], Awaitable[Answer]]
    reads: bool = True
    repeatable: bool = True
    outside: bool = False


def tools_of(
    desk: Desk,
    market: MarketData,
    latest: Callable[[], Awaitable[date]],
    *,
    may_request: bool = False,
) -> Sequence[Tool]:
    """The table."""
    asked = [request_cycle(desk)] if may_request else []
    return [*market_tools(market, latest), *desk_tools(desk), *asked]


# --- the market -----------------------------------------------------------------------------------

AS_OF = "as_of"
AS_OF_SCHEMA: Schema = {
    "type": "string",
    "format": "date",
    "description": "A session, YYYY-MM-DD: nothing is told that was not known at its close. The "
    "newest one where it is left out",
}


class _AsOf(BaseModel):
    as_of: date | None = None


def market_tools(market: MarketData, latest: Callable[[], Awaitable[date]]) -> Sequence[Tool]:
    """The desk's market tools, each with its as_of."""

    async def run(name: str, arguments: Mapping[str, Any]) -> Answer:
        given = dict(arguments)
        as_of = _AsOf.model_validate({AS_OF: given.pop(AS_OF, None)}).as_of or await latest()
        if not market.calendar.is_session(as_of):
            text = f"{as_of} is no session; the next one is"
            raise ToolFailed(
                "not_a_session", f"{text} {market.calendar.session_on_or_after(as_of)}"
            )
        return await MarketTools(market, as_of, MARKET_TOOL_NAMES).call(name, given)

    return [
        Tool(
            name=each.name,
            title=each.name.replace("_", " ").capitalize(),
            description=each.description,
            takes=_with_as_of(each.definition.parameters),
            gives=shapes.schema_of(each.answer, "serialization"),
            run=partial(run, each.name),
            outside=True,
        )
        for each in TOOLS
    ]


def _with_as_of(schema: Schema) -> Schema:
    return {**schema, "properties": {**schema.get("properties", {}), AS_OF: AS_OF_SCHEMA}}


# --- the desk -------------------------------------------------------------------------------------


def _tool(
    name: str,
    description: str,
    takes: type[A],
    gives: type[BaseModel],
    run: Callable[[A], Awaitable[Answer]],
    **traits: bool,
) -> Tool:
    async def checked(arguments: Mapping[str, Any]) -> Answer:
        try:
            given = takes.model_validate(arguments)
        except ValidationError as error:
            wrong = describe(error, takes)
            raise ToolFailed("bad_arguments", f"{wrong}; correct the arguments of {name}") from None
        return await run(given)

    said = shapes.schema_of(gives, "serialization")
    schema = shapes.schema_of(takes, "validation")
    schema.pop("description", None)
    title = name.replace("_", " ").capitalize()
    return Tool(name, title, description, schema, said, checked, **traits)


def _plain(shape: BaseModel) -> Answer:
    return shape.model_dump(mode="json")


def desk_tools(desk: Desk) -> Sequence[Tool]:
    """What may be asked of the desk."""
    return [
        _tool(
            "get_portfolio",
            "Cash, equity, positions, open orders, gains and the newest fills of an account of the "
            "desk (on paper).",
            PortfolioArguments,
            shapes.PortfolioShape,
            partial(_portfolio, desk),
        ),
        _tool(
            "check_exit_signals",
            "Whether a held position should be sold, how much of it and why, by the desk's exit "
            "rules. Orders nothing.",
            ExitArguments,
            exit_shapes.ExitShape,
            partial(_exit_signals, desk),
            reads=False,  # `output: file` writes one, a new one each time
            repeatable=False,
        ),
        _tool(
            "list_cycles",
            "The newest cycles: runs of the desk from a question to a decision.",
            CyclesArguments,
            shapes.CyclesShape,
            partial(_cycles, desk),
        ),
        _tool(
            "get_cycle",
            "One cycle, and which contracts (plan, reports, picks, decision) its pipelines have "
            "made; those named in `contracts` are shown whole.",
            CycleArguments,
            shapes.CycleShape,
            partial(_cycle, desk),
        ),
        _tool(
            "list_decisions",
            "The newest decisions: what the rules left of the picks or exits, why the rest was cut "
            "or vetoed, and what was filled.",
            DecisionsArguments,
            shapes.DecisionsShape,
            partial(_decisions, desk),
        ),
        _tool(
            "list_operations",
            "Tracked work with status, progress and errors: the newest, or those of one cycle.",
            OperationsArguments,
            shapes.OperationsShape,
            partial(_operations, desk),
        ),
        _tool(
            "get_operation",
            "One operation with its result and the names of its calls.",
            OperationArguments,
            shapes.OperationDetailShape,
            partial(_operation, desk),
        ),
    ]


async def _portfolio(desk: Desk, given: PortfolioArguments) -> Answer:
    query = AccountQuery(account=given.account, fills=given.fills)
    view: AccountView = await desk.ask(ACCOUNT, query)
    found = shapes.portfolio(view)
    if found is None:
        there = few(view.accounts, "none yet: a cycle opens them")
        raise ToolFailed("unknown_account", f"no account is named {given.account}: {there}")
    return found


async def _exit_signals(desk: Desk, given: ExitArguments) -> Answer:
    query = CheckExitSignals.model_validate(given.model_dump())
    said: ExitSignals = await desk.ask(EXIT_SIGNALS, query, EXIT_SIGNALS_TIMEOUT_S)
    answer = said.answer
    if answer["status"] != "success":
        raise ToolFailed(str(answer["error_code"]), str(answer["error"]), answer)
    return answer


async def _cycles(desk: Desk, given: CyclesArguments) -> Answer:
    page: CyclesPage = await desk.ask(CYCLES, CyclesQuery.model_validate(given.model_dump()))
    return _plain(shapes.CyclesShape(cycles=tuple(map(shapes.cycle, page.cycles))))


async def _cycle(desk: Desk, given: CycleArguments) -> Answer:
    view: CycleView = await desk.ask(CYCLE, CycleQuery(cycle_id=given.cycle_id))
    if not view.found:
        raise ToolFailed("not_found", f"{view.message}; list_cycles has the newest")
    shape = shapes.cycle(view, given.contracts)
    made = {name for each in shape.pipelines for name in each.made}
    if unknown := sorted(set(given.contracts) - made):
        there_are = ", ".join(sorted(made)) or "none yet"
        raise ToolFailed("not_found", f"contracts: {unknown[0]} is none; there are: {there_are}")
    return _plain(shape)


async def _decisions(desk: Desk, given: DecisionsArguments) -> Answer:
    query = DecisionsQuery.model_validate(given.model_dump())
    page: DecisionsPage = await desk.ask(DECISIONS, query)
    return _plain(shapes.DecisionsShape(decisions=tuple(map(shapes.decision, page.decisions))))


async def _operations(desk: Desk, given: OperationsArguments) -> Answer:
    kind = given.type.lower() if given.type else None
    query = OperationsQuery(
        cycle_id=given.cycle_id, type=kind, status=given.status, limit=given.limit
    )
    page: OperationsPage = await desk.ask(OPERATIONS, query)
    found = [each for each in page.operations if given.calls or each.type not in LEAVES]
    shown = tuple(map(shapes.operation, found[: given.limit]))
    return _plain(shapes.OperationsShape(operations=shown, left_out=len(found) - len(shown)))


async def _operation(desk: Desk, given: OperationArguments) -> Answer:
    query = OperationQuery(op_id=given.operation_id)
    detail: OperationDetail = await desk.ask(OPERATION, query)
    shape = shapes.operation_detail(detail)
    if shape is None:
        raise ToolFailed("not_found", f"{detail.message}; a cycle's id is for get_cycle")
    return _plain(shape)


# --- the one that starts something ----------------------------------------------------------------


def request_cycle(desk: Desk) -> Tool:
    """A cycle on request. Approvals stay with people."""

    async def run(given: RequestArguments) -> Answer:
        answer: RequestAnswer = await desk.ask(REQUEST_CYCLE, _request(given))
        if answer.outcome != "accepted" or answer.cycle_id is None or answer.status is None:
            raise ToolFailed(answer.code or "refused", answer.message)
        following = "get_cycle tells how it goes"
        if given.approval_required and given.kind != STRATEGY:
            following += "; before anything is ordered a person answers its proposal"
        return _plain(
            shapes.RequestedShape(cycle_id=answer.cycle_id, status=answer.status, next=following)
        )

    return _tool(
        "request_cycle",
        "Start a cycle of the desk: it researches, decides, and trades on paper once a person has "
        "approved (unless approval_required is false).",
        RequestArguments,
        shapes.RequestedShape,
        run,
        reads=False,
        repeatable=False,
    )


def _request(given: RequestArguments) -> CycleRequest:
    body: dict[str, JsonValue] = {
        "idempotency_key": given.idempotency_key or f"mcp-{secrets.token_hex(8)}",
        "kind": given.kind,
        "as_of": given.as_of.isoformat() if given.as_of else None,
        "universe": list(given.universe) if given.universe else None,
        "constraints": dict(given.constraints),
    }
    line = Pipeline(name=given.provider, provider=given.provider, account=given.account)
    asks = given.approval_required and given.kind != STRATEGY
    return CycleRequest.model_validate({**body, "pipelines": (line,), "approval_required": asks})
