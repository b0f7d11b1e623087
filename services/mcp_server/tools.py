"""The tools, as one table: what a model is told of each, what it may pass, and what answers.

The market tools are those of the desk's own agents (libs/market/tools/toolbox.py), with `as_of` as
one more argument. Nothing here approves, cancels or trades; only `request_cycle` starts anything,
and it is in the table only where a person has said so.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from contracts.account_query import AccountQuery
from contracts.cycle import STRATEGY, CycleRequest, RequestAnswer
from contracts.cycle_query import CycleQuery, CyclesQuery
from contracts.execution import DecisionsQuery
from contracts.exit_signal import CheckExitSignals
from contracts.message import Pipeline
from contracts.operation import CallKind, OperationQuery, OperationsQuery
from contracts.subjects.accounts import ACCOUNT
from contracts.subjects.approvals import DECISIONS
from contracts.subjects.cycles import CYCLE, CYCLES, REQUEST_CYCLE
from contracts.subjects.exits import EXIT_SIGNALS
from contracts.subjects.operations import OPERATION, OPERATIONS
from libs.market.source import MarketData, require_session
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, TOOLS, MarketTools
from libs.runtime.errors import DeskError
from libs.runtime.nearest import UnknownAccount
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
from services.mcp_server.desk import DeskLink

EXIT_SIGNALS_TIMEOUT_S = 60.0
"""A live source may be asked for the prices of a whole basket."""
LEAVES = {kind.value for kind in CallKind}

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
    desk: DeskLink,
    market: MarketData,
    latest: Callable[[], Awaitable[date]],
    *,
    may_request: bool = False,
) -> Sequence[Tool]:
    """The table."""
    requesting = [request_cycle(desk)] if may_request else []
    return [*market_tools(market, latest), *desk_tools(desk), *requesting]


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
        parameters = dict(arguments)
        as_of = _AsOf.model_validate({AS_OF: parameters.pop(AS_OF, None)}).as_of or await latest()
        require_session(market.calendar, as_of)
        return await MarketTools(market, as_of, MARKET_TOOL_NAMES).call(name, parameters)

    return [
        Tool(
            name=tool.name,
            title=tool.name.replace("_", " ").capitalize(),
            description=tool.description,
            takes=_with_as_of(tool.definition.parameters),
            gives=shapes.schema_of(tool.answer, "serialization"),
            run=partial(run, tool.name),
            outside=True,
        )
        for tool in TOOLS
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
    async def validated(arguments: Mapping[str, Any]) -> Answer:
        try:
            query = takes.model_validate(arguments)
        except ValidationError as error:
            wrong = describe(error, takes)
            raise ToolFailed("bad_arguments", f"{wrong}; correct the arguments of {name}") from None
        return await run(query)

    gives_schema = shapes.schema_of(gives, "serialization")
    schema = shapes.schema_of(takes, "validation")
    schema.pop("description", None)
    title = name.replace("_", " ").capitalize()
    return Tool(name, title, description, schema, gives_schema, validated, **traits)


def _plain(shape: BaseModel) -> Answer:
    return shape.model_dump(mode="json")


def desk_tools(desk: DeskLink) -> Sequence[Tool]:
    """The tools for questions to the desk."""
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


async def _portfolio(desk: DeskLink, arguments: PortfolioArguments) -> Answer:
    query = AccountQuery(account=arguments.account, fills=arguments.fills)
    view = await desk.ask(ACCOUNT, query)
    shape = shapes.portfolio(view)
    if shape is None:
        raise UnknownAccount(arguments.account, view.accounts)
    return shape


async def _exit_signals(desk: DeskLink, arguments: ExitArguments) -> Answer:
    query = CheckExitSignals.model_validate(arguments.model_dump())
    signals = await desk.ask(EXIT_SIGNALS, query, EXIT_SIGNALS_TIMEOUT_S)
    answer = signals.answer
    if answer["status"] != "success":
        raise ToolFailed(str(answer["error_code"]), str(answer["error"]), answer)
    return answer


async def _cycles(desk: DeskLink, query: CyclesArguments) -> Answer:
    page = await desk.ask(CYCLES, CyclesQuery.model_validate(query.model_dump()))
    return _plain(shapes.CyclesShape(cycles=tuple(map(shapes.cycle, page.cycles))))


async def _cycle(desk: DeskLink, query: CycleArguments) -> Answer:
    view = await desk.ask(CYCLE, CycleQuery(cycle_id=query.cycle_id))
    if not view.found:
        raise ToolFailed("not_found", f"{view.message}; list_cycles has the newest")
    shape = shapes.cycle(view, query.contracts)
    contracts = {name for pipeline in shape.pipelines for name in pipeline.made}
    if unknown := sorted(set(query.contracts) - contracts):
        there_are = ", ".join(sorted(contracts)) or "none yet"
        raise ToolFailed("not_found", f"contracts: {unknown[0]} is none; there are: {there_are}")
    return _plain(shape)


async def _decisions(desk: DeskLink, arguments: DecisionsArguments) -> Answer:
    query = DecisionsQuery.model_validate(arguments.model_dump())
    page = await desk.ask(DECISIONS, query)
    return _plain(
        shapes.DecisionsShape(
            decisions=tuple(map(shapes.decision, page.decisions)),
            unreadable=tuple(one.cycle_id for one in page.unreadable),
        )
    )


async def _operations(desk: DeskLink, arguments: OperationsArguments) -> Answer:
    kind = arguments.type.lower() if arguments.type else None
    query = OperationsQuery(
        cycle_id=arguments.cycle_id, type=kind, status=arguments.status, limit=arguments.limit
    )
    page = await desk.ask(OPERATIONS, query)
    operations = [
        operation
        for operation in page.operations
        if arguments.calls or operation.type not in LEAVES
    ]
    listing = tuple(map(shapes.operation, operations[: arguments.limit]))
    return _plain(
        shapes.OperationsShape(operations=listing, left_out=len(operations) - len(listing))
    )


async def _operation(desk: DeskLink, arguments: OperationArguments) -> Answer:
    query = OperationQuery(op_id=arguments.operation_id)
    detail = await desk.ask(OPERATION, query)
    shape = shapes.operation_detail(detail)
    if shape is None:
        raise ToolFailed("not_found", f"{detail.message}; a cycle's id is for get_cycle")
    return _plain(shape)


# --- the one that starts something ----------------------------------------------------------------

ARGUMENT_OF = {"as_of": "as_of", "kind": "kind", "pipelines": "provider", "universe": "universe"}
"""By the field of a cycle's request: what the tool calls it."""


def _instead(answer: RequestAnswer) -> str:
    """The call that would be taken, where one is known."""
    argument = ARGUMENT_OF.get(answer.field or "")
    if answer.suggestion is None or argument is None:
        return ""
    return f"; call request_cycle with {argument}: {answer.suggestion}"


def request_cycle(desk: DeskLink) -> Tool:
    """A cycle on request. Approvals stay with people."""

    async def run(arguments: RequestArguments) -> Answer:
        answer = await desk.ask(REQUEST_CYCLE, _request(arguments))
        if answer.outcome != "accepted" or answer.cycle_id is None or answer.status is None:
            raise ToolFailed(answer.code or "refused", f"{answer.message}{_instead(answer)}")
        following = "get_cycle tells how it goes"
        if arguments.approval_required and arguments.kind != STRATEGY:
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


def _request(arguments: RequestArguments) -> CycleRequest:
    body: dict[str, JsonValue] = {
        "idempotency_key": arguments.idempotency_key or f"mcp-{secrets.token_hex(8)}",
        "kind": arguments.kind,
        "as_of": arguments.as_of.isoformat() if arguments.as_of else None,
        "universe": list(arguments.universe) if arguments.universe else None,
        "constraints": dict(arguments.constraints),
    }
    line = Pipeline(name=arguments.provider, provider=arguments.provider, account=arguments.account)
    asks = arguments.approval_required and arguments.kind != STRATEGY
    return CycleRequest.model_validate({**body, "pipelines": (line,), "approval_required": asks})
