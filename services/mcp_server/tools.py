"""The tools: typed functions, whose docstrings are what a model reads of them.

The market tools are those of the desk's own agents (libs/market/tools/toolbox.py), with `as_of` as
one more argument. Nothing here approves, cancels or trades; `request_cycle`, `run_backtest` and
`run_study` alone start anything, and they are offered only where a person allowed it.
"""

import secrets
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any

from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp.types import CallToolResult
from pydantic import Field, StringConstraints, create_model

from contracts.account_query import AccountQuery
from contracts.constraints import ENFORCED, TAKES, ConstraintWords
from contracts.cycle import DECISION, STRATEGY, CycleRequest, CycleStatus, RequestAnswer
from contracts.cycle_query import CycleQuery, CyclesQuery, CycleView
from contracts.execution import DecisionsQuery
from contracts.exit_signal import CheckExitSignals, ExitFormat, ExitOutput
from contracts.message import Pipeline
from contracts.operation import CallKind, OperationQuery, OperationsQuery, OperationStatus
from contracts.performance import Benchmark, PerformanceQuery
from contracts.strategy import StrategySpec, StrategyWish
from contracts.strategy_query import NAMES_MAX, StrategiesQuery
from contracts.subjects.accounts import ACCOUNT, PERFORMANCE
from contracts.subjects.approvals import DECISIONS
from contracts.subjects.cycles import CYCLE, CYCLES, REQUEST_CYCLE
from contracts.subjects.exits import EXIT_SIGNALS
from contracts.subjects.operations import OPERATION, OPERATIONS
from contracts.subjects.strategies import STRATEGIES
from contracts.types import Name, ShortText, Ticker
from libs.bus.client import QuestionRefused
from libs.bus.desk_link import DeskLink
from libs.market.sessions import LatestSession
from libs.market.source import MarketData, require_session
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, TOOLS, MarketTool, MarketTools
from libs.runtime.errors import few
from libs.runtime.ids import NotFound
from libs.runtime.nearest import UnknownAccount, did_you_mean
from libs.runtime.settings import Settings
from services.mcp_server import shapes
from services.mcp_server.exit_shapes import ExitShape
from services.mcp_server.server import answer_of, failed, tool_of
from services.mcp_server.studies import StudyTools

LIMIT_MAX = 50
CONTRACTS_MAX = 5
TRIPS_MAX = 20
EXIT_SIGNALS_TIMEOUT_S = 60.0
"""A live source may be asked for the prices of a whole basket."""
LEAVES = {kind.value for kind in CallKind}
DIGITS = "The id, or its first digits (at least four)"
CONSTRAINTS_DOC = "Only tighten. Code enforces {}; any other name is a note to the agents".format(
    ", ".join(f"{name} ({TAKES[name]})" for name in ENFORCED)
)
NO_CONSTRAINTS: ConstraintWords = {}
SPEC_DOC = (
    "The content of a strategy's file: features, label, model, entry and exit rules, a training "
    "period and a later held-out period"
)
KEY_DOC = "Your own key for this request: sending it again with the same key starts nothing new"

IdDigits = Annotated[
    str, StringConstraints(pattern=r"^[0-9A-Fa-f-]{4,36}$"), Field(description=DIGITS)
]
Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX)]


def tools_of(
    desk: DeskLink,
    market: MarketData,
    latest: LatestSession,
    settings: Settings,
    *,
    may_request: bool = False,
) -> Sequence[Tool]:
    """All tools; those that start something where the server `may_request`."""
    ours, studies = DeskTools(desk), StudyTools(desk, settings)
    starting = (ours.request_cycle, ours.run_backtest, studies.run_study) if may_request else ()
    return [
        *(market_tool(tool, market, latest) for tool in TOOLS),
        tool_of(ours.get_portfolio),
        tool_of(ours.performance),
        # `output: file` writes one, a new one each time
        tool_of(ours.check_exit_signals, reads=False, repeatable=False),
        tool_of(ours.list_cycles),
        tool_of(ours.get_cycle),
        tool_of(ours.why_not),
        tool_of(ours.list_decisions),
        tool_of(ours.list_operations),
        tool_of(ours.get_operation),
        tool_of(ours.list_strategies),
        tool_of(studies.plan_study),
        tool_of(studies.list_studies),
        tool_of(studies.study_score),
        *(tool_of(tool, reads=False, repeatable=False) for tool in starting),
    ]


class _AsOf(ArgModelBase):
    as_of: date | None = Field(
        None,
        description="A session, YYYY-MM-DD: only data known at its close is returned. By default "
        "the newest",
    )


def market_tool(tool: MarketTool, market: MarketData, latest: LatestSession) -> Tool:
    """A market tool with its as_of."""

    async def run(as_of: date | None, **arguments: Any) -> CallToolResult:
        session = as_of or await latest()
        require_session(market.calendar, session)
        own = MarketTools(market, session, MARKET_TOOL_NAMES)
        return answer_of(await own.call(tool.name, arguments))

    takes = create_model("Arguments", __base__=(tool.arguments, _AsOf))
    return tool_of(
        run,
        name=tool.name,
        description=tool.description,
        takes=takes,
        gives=tool.answer,
        outside=True,
    )


class DeskTools:
    """The tools for questions to the desk."""

    def __init__(self, desk: DeskLink) -> None:
        self._desk = desk

    async def get_portfolio(
        self,
        account: Annotated[Name, Field(description="The account's name")] = "main",
        fills: Annotated[
            int, Field(ge=0, le=LIMIT_MAX, description="How many of the newest fills to show")
        ] = 10,
    ) -> shapes.PortfolioShape:
        """Cash, equity, positions, open orders, P&L and newest fills of a paper account."""
        view = await self._desk.ask(ACCOUNT, AccountQuery(account=account, fills=fills))
        shape = shapes.portfolio(view)
        if shape is None:
            raise UnknownAccount(account, view.accounts)
        return shape

    async def performance(
        self,
        account: Annotated[Name, Field(description="The account's name")] = "main",
        benchmark: Annotated[
            Benchmark | None,
            Field(description="candidates, cash or a ticker, instead of the setting"),
        ] = None,
        trips: Annotated[
            int, Field(ge=0, le=TRIPS_MAX, description="How many of the newest round trips to show")
        ] = 10,
    ) -> shapes.PerformanceShape:
        """An account's performance since its opening against a benchmark: return, risk, years,
        closed and open round trips."""
        query = PerformanceQuery(account=account, benchmark=benchmark, trips=trips, points=2)
        view = await self._desk.ask(PERFORMANCE, query)
        if not view.found:
            raise UnknownAccount(account, view.accounts)
        return shapes.account_performance(account, view)

    async def check_exit_signals(
        self,
        ticker: Annotated[Ticker, Field(description="A ticker that the account holds")],
        format: Annotated[  # noqa: A002
            ExitFormat, Field(description="How much detail to return")
        ] = ExitFormat.AGENT,
        output: Annotated[
            ExitOutput, Field(description="`file` also saves the full result")
        ] = ExitOutput.INLINE,
        account: Annotated[Name, Field(description="The account of the position")] = "main",
        as_of: Annotated[
            date | None, Field(description="A session; not later than the account's newest session")
        ] = None,
    ) -> Annotated[CallToolResult, ExitShape]:
        """Check by the desk's exit rules whether to sell a held position, how much and why. Orders
        nothing."""
        query = CheckExitSignals(
            ticker=ticker, format=format, output=output, account=account, as_of=as_of
        )
        answer = (await self._desk.ask(EXIT_SIGNALS, query, EXIT_SIGNALS_TIMEOUT_S)).answer
        if answer["status"] != "success":
            return failed(str(answer["error_code"]), str(answer["error"]), answer)
        return answer_of(answer)

    async def list_cycles(
        self,
        status: CycleStatus | None = None,
        kind: Annotated[Name | None, Field(description="decision, strategy, ...")] = None,
        limit: Limit = 10,
    ) -> shapes.CyclesShape:
        """The newest cycles: runs of the desk from a request to a decision."""
        query = CyclesQuery(status=status, kind=kind, limit=limit)
        page = await self._desk.ask(CYCLES, query)
        return shapes.CyclesShape(cycles=tuple(map(shapes.cycle, page.cycles)))

    async def get_cycle(
        self,
        cycle_id: IdDigits,
        contracts: Annotated[
            tuple[Name, ...],
            Field(
                max_length=CONTRACTS_MAX,
                description="Contracts to show in full, from `made`",
            ),
        ] = (),
    ) -> shapes.CycleShape:
        """One cycle, and the contracts (plan, reports, picks, decision) that its pipelines have
        produced; those named in `contracts` are shown in full."""
        shape = shapes.cycle(await self._cycle(cycle_id), contracts)
        known = {name for pipeline in shape.pipelines for name in pipeline.made}
        if unknown := sorted({*contracts} - known):
            there_are = ", ".join(sorted(known)) or "none yet"
            raise NotFound(f"contracts: {unknown[0]} is unknown; the names are: {there_are}")
        return shape

    async def why_not(
        self,
        cycle_id: IdDigits,
        ticker: Annotated[Ticker | None, Field(description="Only this candidate")] = None,
    ) -> shapes.WhyNotsShape:
        """Why a cycle's candidates were not bought: the rule with its value and limit, the model's
        own words, a person's decision, or the order."""
        return shapes.why_nots(await self._cycle(cycle_id), ticker)

    async def _cycle(self, cycle_id: str) -> CycleView:
        view = await self._desk.ask(CYCLE, CycleQuery(cycle_id=cycle_id))
        if not view.found:
            raise NotFound(f"{view.message}; list_cycles has the newest")
        return view

    async def list_strategies(
        self,
        names: Annotated[
            tuple[ShortText, ...], Field(max_length=NAMES_MAX, description="Only these strategies")
        ] = (),
        limit: Limit = 5,
    ) -> shapes.StrategiesShape:
        """The desk's strategies, with the results of training and of a backtest against
        buy-and-hold."""
        page = await self._desk.ask(STRATEGIES, StrategiesQuery(names=names, limit=limit))
        if page.unknown:
            one = page.unknown[0]
            near = (
                did_you_mean(few(one.near)) if one.near else "; without names the newest are listed"
            )
            raise NotFound(f"no strategy is named {one.name!r}{near}")
        return shapes.StrategiesShape(
            strategies=tuple(map(shapes.strategy, page.strategies)),
            more=page.more,
            unreadable=page.unreadable,
        )

    async def list_decisions(
        self,
        cycle_id: IdDigits | None = None,
        account: Name | None = None,
        limit: Limit = 5,
    ) -> shapes.DecisionsShape:
        """The newest decisions: picks or exits after the rules, why others were reduced or vetoed,
        and the fills."""
        query = DecisionsQuery(cycle_id=cycle_id, account=account, limit=limit)
        page = await self._desk.ask(DECISIONS, query)
        return shapes.DecisionsShape(
            decisions=tuple(map(shapes.decision, page.decisions)),
            unreadable=tuple(one.cycle_id for one in page.unreadable),
        )

    async def list_operations(
        self,
        cycle_id: Annotated[
            IdDigits | None, Field(description=f"Only this cycle's, in their order. {DIGITS}")
        ] = None,
        type: Annotated[  # noqa: A002
            ShortText | None,
            Field(description="cycle, agent_research, training, or a step such as plan"),
        ] = None,
        status: OperationStatus | None = None,
        calls: Annotated[bool, Field(description="Include single model and tool calls")] = False,
        limit: Limit = 20,
    ) -> shapes.OperationsShape:
        """Tracked work with status, progress and errors: the newest, or those of one cycle."""
        kind = type.lower() if type else None
        query = OperationsQuery(cycle_id=cycle_id, type=kind, status=status, limit=limit)
        page = await self._desk.ask(OPERATIONS, query)
        shown = [one for one in page.operations if calls or one.type not in LEAVES]
        return shapes.OperationsShape(
            operations=tuple(map(shapes.OperationShape.model_validate, shown[:limit])),
            left_out=max(0, len(shown) - limit),
        )

    async def get_operation(self, operation_id: IdDigits) -> shapes.OperationDetailShape:
        """One operation with its result and the names of its calls."""
        detail = await self._desk.ask(OPERATION, OperationQuery(op_id=operation_id))
        if detail.operation is None:
            raise NotFound(f"{detail.message}; a cycle's id is for get_cycle")
        return shapes.OperationDetailShape.model_validate(detail)

    async def request_cycle(
        self,
        kind: Annotated[Name, Field(description="decision, exit or strategy")] = DECISION,
        as_of: Annotated[date | None, Field(description="A session; by default the newest")] = None,
        universe: Annotated[
            tuple[Ticker, ...] | None, Field(min_length=1, max_length=LIMIT_MAX)
        ] = None,
        provider: Annotated[Name, Field(description="Provider: rules, claude, ...")] = "rules",
        account: Annotated[Name, Field(description="The account that trades")] = "main",
        approval_required: Annotated[
            bool, Field(description="Whether a person must approve before orders are placed")
        ] = True,
        constraints: Annotated[
            ConstraintWords, Field(description=CONSTRAINTS_DOC)
        ] = NO_CONSTRAINTS,
        idempotency_key: Annotated[ShortText | None, Field(description=KEY_DOC)] = None,
    ) -> shapes.RequestedShape:
        """Start a cycle: the desk researches, decides, and trades on paper after a person has
        approved (unless approval_required is false)."""
        asks = approval_required and kind != STRATEGY
        request = CycleRequest(
            idempotency_key=idempotency_key or f"mcp-{secrets.token_hex(8)}",
            kind=kind,
            as_of=as_of,
            universe=universe,
            constraints=constraints,
            pipelines=(Pipeline(name=provider, provider=provider, account=account),),
            approval_required=asks,
        )
        following = "get_cycle shows its progress"
        if asks:
            following += "; before anything is ordered a person answers its proposal"
        return await self._requested(request, following)

    async def run_backtest(
        self,
        spec: Annotated[StrategySpec, Field(description=SPEC_DOC)],
        provider: Annotated[
            Name, Field(description="Provider that assesses the result: rules, ...")
        ] = "rules",
        idempotency_key: Annotated[ShortText | None, Field(description=KEY_DOC)] = None,
    ) -> shapes.RequestedShape:
        """Train a strategy's model and backtest it on its held-out period: a strategy cycle of the
        desk with this design. It trades nothing. What models cost is limited by the desk's budgets
        of a cycle and of a day; each try counts in the figures of later ones."""
        request = CycleRequest(
            idempotency_key=idempotency_key or f"mcp-{secrets.token_hex(8)}",
            kind=STRATEGY,
            pipelines=(Pipeline(name=provider, provider=provider),),
            strategy=StrategyWish(spec=spec),
        )
        following = (
            "get_cycle shows its progress, list_strategies the numbers of the strategy with this "
            "cycle_id"
        )
        return await self._requested(request, following)

    async def _requested(self, request: CycleRequest, following: str) -> shapes.RequestedShape:
        answer = await self._desk.ask(REQUEST_CYCLE, request)
        if answer.outcome != "accepted" or answer.cycle_id is None or answer.status is None:
            text = f"{answer.message}{_instead(answer, request.kind)}"
            raise QuestionRefused(answer.code or "refused", text)
        return shapes.RequestedShape(cycle_id=answer.cycle_id, status=answer.status, next=following)


ARGUMENT_OF = {"as_of": "as_of", "kind": "kind", "pipelines": "provider", "universe": "universe"}
"""By the field of a cycle's request: what the tool calls it."""


def _instead(answer: RequestAnswer, kind: str) -> str:
    """The call that would be taken, where one is known."""
    argument = ARGUMENT_OF.get(answer.field or "")
    if answer.suggestion is None or argument is None:
        return ""
    tool = "run_backtest" if kind == STRATEGY else "request_cycle"
    return f"; call {tool} with {argument}: {answer.suggestion}"
