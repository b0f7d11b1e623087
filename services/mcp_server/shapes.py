"""Shapes of the tools' answers: the desk's own views, short enough for a model to read. Pure."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from contracts.account_query import AccountView
from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.execution import DecisionView
from contracts.operation import OperationDetail, OperationStatus, OperationView, Progress
from contracts.types import Cost
from libs.facts import amounts
from libs.llm.portfolio_tool import portfolio_json
from libs.report import account, ending, results, rules, why_not
from libs.report.reports import Reports

REASON_CHARS = 400


def schema_of(shape: Any, mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """Its JSON Schema in one piece: some clients know no references, and none with siblings."""
    whole = TypeAdapter(shape).json_schema(mode=mode)
    known = whole.pop("$defs", {})

    def written_out(value: Any) -> Any:
        if isinstance(value, list):
            return [written_out(item) for item in value]
        if not isinstance(value, dict):
            return value
        own = {key: written_out(inner) for key, inner in value.items() if key != "$ref"}
        name = value.get("$ref", "").rpartition("/")[2]
        return {**written_out(known[name]), **own} if name else own

    schema: dict[str, Any] = written_out(whole)
    return schema


class Shape(BaseModel):
    """One answer. What it leaves out, `get_cycle` and `get_operation` tell."""

    model_config = ConfigDict(frozen=True)


class PipelineShape(Shape):
    """A pipeline: where it is, and which contracts it has made."""

    name: str
    account: str
    provider: str
    state: str
    status: CycleStatus
    reason: str
    substitutes: tuple[str, ...] = Field(
        description="Stages that another than the pipeline's own model answered, and why"
    )
    outcome: str | None = Field(
        description="What was traded, why nothing was, or where it stopped; null in lists"
    )
    not_bought: dict[str, str] = Field(
        description="Candidates that were not bought: why, by ticker; empty in lists"
    )
    made: tuple[str, ...] = Field(description="Names that get_cycle's `contracts` takes")
    contracts: dict[str, JsonValue] = Field(description="Those that were asked for")


class CycleShape(Shape):
    """A cycle."""

    cycle_id: UUID
    kind: str
    as_of: date
    status: CycleStatus
    reason: str
    outcome: str = Field(description="In a line: traded, held, or why not; empty while it runs")
    requester: str
    accepted_at: datetime
    ended_at: datetime | None
    tokens: int
    cost_usd: Cost
    pipelines: tuple[PipelineShape, ...]


class PositionShape(Shape):
    """A position; money in the account's currency."""

    ticker: str
    quantity: str
    average_cost: str
    price: str
    sector: str
    priced_on: date | None = Field(None, description="Only where the price is an older session's")


class OpenOrderShape(Shape):
    """An order that waits."""

    ticker: str
    side: str
    quantity: str


class PastFillShape(Shape):
    """An order that was filled."""

    session: date
    side: str
    ticker: str
    quantity: str
    price: str


class PortfolioShape(Shape):
    """An account; money in its currency. Figures, from `closed_on` to `fees`, are as of its newest
    valued close; the rest are its books now, with later fills."""

    as_of: date
    newest: date
    account: str
    currency: str
    cash: str
    equity: str
    closed_on: date | None = Field(description="The close that the figures are of; null: none yet")
    fills_not_counted: int = Field(description="Fills after that close, in no figure yet")
    equity_at_close: str
    starting_cash: str
    paid_in: str = Field(description="Starting cash and what the owner has brought in since")
    return_pct: str = Field(description="Since the opening, time-weighted")
    realised: str
    unrealised: str | None = Field(description="null where a position has no price")
    dividends: str
    fees: str
    buys_halted: str | None = Field(description="Why nothing is bought; null where it is")
    positions: tuple[PositionShape, ...] = Field(description="The largest first")
    positions_not_shown: int
    open_orders: tuple[OpenOrderShape, ...]
    fills: tuple[PastFillShape, ...] = Field(description="The newest first")


class CyclesShape(Shape):
    """Cycles, newest first."""

    cycles: tuple[CycleShape, ...]


class ShareShape(Shape):
    """So many shares of a ticker."""

    action: str
    ticker: str
    quantity: Decimal
    price: str = Field(description="With its currency; of a decision what sizing assumed")
    why: str = ""


class DecisionShape(Shape):
    """The decision: picks or exits as the rules left them, the checks, the fills."""

    cycle_id: UUID
    kind: str
    pipeline: str
    account: str
    as_of: date
    decided_at: datetime
    decisions: tuple[ShareShape, ...]
    adjustments: tuple[str, ...]
    vetoed: tuple[str, ...]
    substitutes: tuple[str, ...] = Field(
        description="Stages that another than the pipeline's own model answered, and why"
    )
    executed: bool
    outcome: str = Field(description="What was traded, or why nothing was")
    results: dict[str, str] = Field(
        description="What came of each order: its P&L after fees, and its end, by order"
    )
    fills: tuple[ShareShape, ...]


class DecisionsShape(Shape):
    """Decisions, newest first."""

    decisions: tuple[DecisionShape, ...]
    unreadable: tuple[UUID, ...] = Field(
        description="Cycles with a decision that this version of Deskbus cannot read"
    )


class OperationShape(Shape):
    """Tracked work."""

    operation_id: UUID
    parent_id: UUID | None
    cycle_id: UUID
    type: str
    name: str
    status: OperationStatus
    pipeline: str | None
    progress: Progress
    tokens: int
    cost_usd: Cost
    metadata: dict[str, JsonValue]
    result_summary: JsonValue
    error_message: str | None
    created_at: datetime
    finished_at: datetime | None


class OperationsShape(Shape):
    """Operations: the newest first, or of one cycle in the order of their making."""

    operations: tuple[OperationShape, ...]
    left_out: int = Field(0, description="Operations of the cycle beyond the limit")


class CallShape(Shape):
    """One journalled call of an operation."""

    index: int
    kind: str
    name: str


class OperationDetailShape(Shape):
    """One operation with its result, and the names of its calls."""

    operation: OperationShape
    result: JsonValue
    calls: tuple[CallShape, ...]


class RequestedShape(Shape):
    """The cycle that was requested."""

    cycle_id: UUID
    status: CycleStatus
    next: str = Field(description="What to do to see how it goes")


def cycle(view: CycleView, contracts: Sequence[str] = ()) -> CycleShape:
    """A cycle with the contracts that are named."""
    return CycleShape.model_validate(
        {
            **{name: getattr(view, name) for name in CycleShape.model_fields},
            "reason": amounts.cut(view.reason, REASON_CHARS),
            "outcome": amounts.cut(view.outcome, REASON_CHARS),
            "pipelines": tuple(_pipeline(lane, contracts) for lane in view.pipelines),
        }
    )


def _pipeline(view: PipelineView, contracts: Sequence[str]) -> PipelineShape:
    return PipelineShape(
        name=view.name,
        account=view.account,
        provider=view.provider,
        state=view.state,
        status=view.status,
        reason=amounts.cut(view.reason, REASON_CHARS),
        substitutes=tuple(one.in_words for one in view.substitutes),
        outcome=_outcome(view) if view.contracts else None,
        not_bought=why_not.by_ticker(view.not_bought),
        made=tuple(view.contracts),
        contracts={name: view.contracts[name] for name in contracts if name in view.contracts},
    )


def _outcome(view: PipelineView) -> str:
    whole = ending.of(view, Reports.of(view), (), view.reason).sentence
    return amounts.cut(whole, REASON_CHARS)


def decision(view: DecisionView) -> DecisionShape:
    """A decision."""
    decided, executed = view.decision, view.execution
    changed = [
        f"{check.names}: {check.check.outcome.value} by {check.check.rule}: {check.reason}"
        for check in rules.against(decided.checks)
    ]
    return DecisionShape(
        cycle_id=view.cycle_id,
        kind=view.kind,
        pipeline=view.pipeline,
        account=view.account,
        as_of=view.as_of,
        decided_at=view.decided_at,
        decisions=tuple(
            ShareShape(
                action=pick.action.value,
                ticker=pick.asset,
                quantity=pick.quantity,
                price=amounts.price(pick.price),
                why=amounts.cut(pick.reasoning, REASON_CHARS),
            )
            for pick in decided.decisions
        ),
        adjustments=tuple(amounts.cut(change, REASON_CHARS) for change in changed),
        vetoed=decided.vetoed_tickers,
        substitutes=tuple(one.in_words for one in decided.substitutes),
        executed=executed is not None,
        outcome=ending.of_decision(view),
        results=results.by_order(view.results),
        fills=tuple(
            ShareShape(
                action=fill.side.value,
                ticker=fill.asset,
                quantity=fill.quantity,
                price=amounts.price(fill.price),
            )
            for fill in (executed.fills if executed else ())
        ),
    )


def operation(view: OperationView) -> OperationShape:
    """An operation."""
    fields = {
        name: getattr(view, name) for name in OperationShape.model_fields if name != "operation_id"
    }
    return OperationShape.model_validate({**fields, "operation_id": view.op_id})


def operation_detail(detail: OperationDetail) -> OperationDetailShape | None:
    """An operation with its result; None where there is none."""
    if detail.operation is None:
        return None
    return OperationDetailShape(
        operation=operation(detail.operation),
        result=detail.result,
        calls=tuple(
            CallShape(index=call.index, kind=call.kind.value, name=call.name)
            for call in detail.journal
        ),
    )


def portfolio(view: AccountView) -> Mapping[str, JsonValue] | None:
    """An account as the desk's own models see theirs, with its gains; None where there is none."""
    if view.portfolio is None:
        return None
    halt = view.portfolio.halt
    return {
        **portfolio_json(view.portfolio),
        "closed_on": None if view.closed_on is None else view.closed_on.isoformat(),
        "fills_not_counted": view.not_counted.fills,
        "equity_at_close": str(view.equity),
        "starting_cash": str(view.starting_cash),
        "paid_in": str(view.paid_in),
        "return_pct": str(view.return_pct),
        "realised": str(view.realised),
        "unrealised": str(view.unrealised),
        "dividends": str(view.dividends),
        "fees": str(view.fees),
        "buys_halted": None if halt is None else account.halted(halt),
        "fills": [
            {
                "session": fill.session.isoformat(),
                "side": fill.side.value,
                "ticker": fill.asset,
                "quantity": str(fill.quantity),
                "price": str(fill.price.amount),
            }
            for fill in view.fills
        ],
    }
