"""Shapes of the tools' answers: the desk's own views, short enough for a model to read. Pure."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
)

from contracts.account_query import AccountView
from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.execution import DecisionView
from contracts.gate import GateResult
from contracts.operation import OperationStatus, Progress
from contracts.performance import (
    PerformanceFigures,
    PerformanceView,
    RoundTrip,
    TickerReturn,
    TradeFigures,
    YearReturn,
)
from contracts.strategy import Period
from contracts.strategy_query import StrategyView, TrainingFigures
from contracts.types import Cost
from libs.facts import amounts
from libs.llm.portfolio_tool import portfolio_json
from libs.report import account, ending, performance, results, rules, why_not
from libs.report.reports import Reports
from libs.runtime.errors import few
from libs.runtime.ids import NotFound
from libs.runtime.nearest import did_you_mean, nearest

REASON_CHARS = 400
SHOWN_CHARS_MAX = 20_000
"""Of texts in an answer: with their names and signs they stay below its limit of bytes."""
TICKERS_SHOWN = 20


def _short(text: str) -> str:
    return amounts.cut(text, REASON_CHARS)


Short = Annotated[str, AfterValidator(_short)]
Substitutes = Annotated[
    tuple[Annotated[str, BeforeValidator(lambda one: getattr(one, "in_words", one))], ...],
    Field(description="Stages answered by another model than the pipeline's, and why"),
]


class ToolShape(BaseModel):
    """One answer. `get_cycle` and `get_operation` have the parts that it leaves out."""

    model_config = ConfigDict(frozen=True, from_attributes=True, validate_by_name=True)


class PipelineShape(ToolShape):
    """A pipeline: its stage, and the contracts that it has produced."""

    name: str
    account: str
    provider: str
    state: str
    status: CycleStatus
    reason: Short
    substitutes: Substitutes
    outcome: Short | None = Field(
        description="What was traded, why nothing was traded, or where it stopped; null in lists"
    )
    not_bought: dict[str, str] = Field(
        description="Reasons for candidates not bought, by ticker; empty in lists"
    )
    made: tuple[str, ...] = Field(description="Names for `contracts` of get_cycle")
    contracts: dict[str, JsonValue] = Field(description="The requested contracts")


class CycleShape(ToolShape):
    """A cycle."""

    cycle_id: UUID
    kind: str
    as_of: date
    status: CycleStatus
    reason: Short
    outcome: Short = Field(
        description="In one line: traded, held, or why not; empty while the cycle runs"
    )
    requester: str
    accepted_at: datetime
    ended_at: datetime | None
    tokens: int
    cost_usd: Cost
    pipelines: tuple[PipelineShape, ...]


class WhyNotShape(ToolShape):
    """A pipeline's candidates."""

    name: str
    account: str
    status: CycleStatus
    outcome: Short = Field(
        description="What was traded, why nothing was traded, or its current stage"
    )
    not_bought: dict[str, str] = Field(
        description="Reasons for candidates not bought, by ticker; quoted from rules and models"
    )
    no_cause: tuple[str, ...] = Field(
        description="Candidates that were bought or are not decided yet"
    )
    more: tuple[str, ...] = Field(
        description="Not bought, but the reason did not fit: call with a ticker"
    )


class WhyNotsShape(ToolShape):
    """Why the candidates of a cycle were not bought."""

    cycle_id: UUID
    kind: str
    as_of: date
    status: CycleStatus
    pipelines: tuple[WhyNotShape, ...]


class PerformanceShape(ToolShape):
    """An account's performance from its opening at `first` to the close of `last`: percentages, and
    money in its currency. Nothing later is included."""

    account: str
    currency: str | None
    first: date | None
    last: date | None
    sessions: int
    fills_not_counted: int = Field(
        description="Fills after that close, not included in the numbers yet"
    )
    equity: Decimal
    paid_in: Decimal
    figures: PerformanceFigures | None = Field(description="null: the account has only one session")
    benchmark: str = Field(description="The benchmark")
    compared: PerformanceFigures | None
    exposed: PerformanceFigures | None = Field(
        description="The benchmark at the account's exposure of each session"
    )
    benchmark_message: str = Field(description="Why there is no comparison")
    years: tuple[YearReturn, ...]
    trades: TradeFigures
    tickers: tuple[TickerReturn, ...]
    tickers_more: int
    trips: tuple[RoundTrip, ...] = Field(description="Open ones first, then the newest")
    trips_more: bool
    message: str


class BacktestShape(ToolShape):
    """A strategy on its held-out period, after costs, in fractions. `benchmark_*`: buy-and-hold of
    the same tickers. `deflated_sharpe`: probability that the result is not luck, given the number
    of `trials`."""

    total_return: float
    benchmark_return: float
    cagr: float | None
    sharpe_ratio: float | None
    benchmark_sharpe_ratio: float | None
    sortino_ratio: float | None
    deflated_sharpe: float | None
    trials: int
    max_drawdown: float
    win_rate: float | None
    total_trades: int
    turnover: float
    exposure: float
    gate: GateResult | None


class JudgedShape(ToolShape):
    """The assessment of the numbers by a model or the rules."""

    verdict: str
    strengths: tuple[Short, ...]
    weaknesses: tuple[Short, ...]
    suggestions: tuple[Short, ...]


class StrategyShape(ToolShape):
    """A strategy with the result of its newest run."""

    name: str
    cycle_id: UUID
    as_of: date
    runs: int
    hypothesis: Short
    features: tuple[str, ...]
    model: str
    horizon_bars: int
    train: Period
    held_out: Period
    ended: str = Field(description="running, training_gate, backtest_gate, assessed, failed, ...")
    reason: Short = Field(description="Why it stopped")
    training: TrainingFigures | None
    backtest: BacktestShape | None
    assessment: JudgedShape | None


class StrategiesShape(ToolShape):
    """Strategies, newest first or in the order of the names. `unreadable` ones are from a later
    release."""

    strategies: tuple[StrategyShape, ...]
    more: bool
    unreadable: tuple[str, ...]


class PositionShape(ToolShape):
    """A position; money in the account's currency."""

    ticker: str
    quantity: Decimal
    average_cost: Decimal
    price: Decimal
    sector: str
    priced_on: date | None = Field(None, description="Only if the price is from an older session")


class OpenOrderShape(ToolShape):
    """A waiting order."""

    ticker: str
    side: str
    quantity: Decimal


class PastFillShape(ToolShape):
    """A filled order."""

    session: date
    side: str
    ticker: str
    quantity: Decimal
    price: Decimal


class PortfolioShape(ToolShape):
    """An account; money in its currency. The fields from `closed_on` to `fees` are as of its newest
    valued close; the others are its books now, with later fills."""

    as_of: date
    newest: date
    account: str
    currency: str
    cash: Decimal
    equity: Decimal
    closed_on: date | None = Field(description="The close of these numbers; null: none yet")
    fills_not_counted: int = Field(
        description="Fills after that close, not included in the numbers yet"
    )
    equity_at_close: Decimal
    starting_cash: Decimal
    paid_in: Decimal = Field(description="Starting cash and the owner's net deposits")
    return_pct: Decimal = Field(description="Since the opening, time-weighted")
    realised: Decimal
    unrealised: Decimal
    dividends: Decimal
    fees: Decimal
    buys_halted: str | None = Field(description="Why buys are blocked; null if they are not")
    positions: tuple[PositionShape, ...] = Field(description="Largest first")
    positions_not_shown: int
    open_orders: tuple[OpenOrderShape, ...]
    fills: tuple[PastFillShape, ...] = Field(description="Newest first")


class CyclesShape(ToolShape):
    """Cycles, newest first."""

    cycles: tuple[CycleShape, ...]


class ShareShape(ToolShape):
    """A number of shares of a ticker."""

    action: str
    ticker: str
    quantity: Decimal
    price: str = Field(
        description="With its currency; for a decision, the price assumed for sizing"
    )
    why: Short = ""


class DecisionShape(ToolShape):
    """The decision: picks or exits after the rules, the checks, the fills."""

    cycle_id: UUID
    kind: str
    pipeline: str
    account: str
    as_of: date
    decided_at: datetime
    decisions: tuple[ShareShape, ...]
    adjustments: tuple[Short, ...]
    vetoed: tuple[str, ...]
    substitutes: Substitutes
    executed: bool
    outcome: str = Field(description="What was traded, or why nothing was traded")
    results: dict[str, str] = Field(description="Result of each order, with its P&L after fees")
    fills: tuple[ShareShape, ...]


class DecisionsShape(ToolShape):
    """Decisions, newest first."""

    decisions: tuple[DecisionShape, ...]
    unreadable: tuple[UUID, ...] = Field(
        description="Cycles with a decision that this version of Deskbus cannot read"
    )


class OperationShape(ToolShape):
    """Tracked work."""

    operation_id: UUID = Field(validation_alias="op_id")
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


class OperationsShape(ToolShape):
    """Operations: newest first, or those of one cycle in order of creation."""

    operations: tuple[OperationShape, ...]
    left_out: int = Field(0, description="Operations of the cycle beyond the limit")


class CallShape(ToolShape):
    """One journalled call of an operation."""

    index: int
    kind: str
    name: str


class OperationDetailShape(ToolShape):
    """One operation with its result, and the names of its calls."""

    operation: OperationShape
    result: JsonValue
    calls: tuple[CallShape, ...] = Field(validation_alias="journal")


class RequestedShape(ToolShape):
    """The cycle that was requested."""

    cycle_id: UUID
    status: CycleStatus
    next: str = Field(description="How to see its progress")


def cycle(view: CycleView, contracts: Sequence[str] = ()) -> CycleShape:
    """A cycle with the named contracts."""
    pipelines = tuple(_pipeline(pipeline, contracts) for pipeline in view.pipelines)
    return CycleShape.model_validate(_fields(view, CycleShape) | {"pipelines": pipelines})


def _pipeline(view: PipelineView, contracts: Sequence[str]) -> PipelineShape:
    ended = ending.of(view, Reports.of(view), (), view.reason) if view.contracts else None
    return PipelineShape.model_validate(
        _fields(view, PipelineShape)
        | {
            "outcome": ended and ended.sentence,
            "not_bought": why_not.by_ticker(view.not_bought),
            "made": tuple(view.contracts),
            "contracts": {name: view.contracts[name] for name in {*contracts} & {*view.contracts}},
        }
    )


def decision(view: DecisionView) -> DecisionShape:
    """A decision."""
    decided, executed = view.decision, view.execution
    changed = [
        f"{check.names}: {check.check.outcome.value} by {check.check.rule}: {check.reason}"
        for check in rules.against(decided.checks)
    ]
    return DecisionShape.model_validate(
        _fields(view, DecisionShape)
        | {
            "decisions": tuple(
                ShareShape(
                    action=pick.action.value,
                    ticker=pick.asset,
                    quantity=pick.quantity,
                    price=amounts.price(pick.price),
                    why=pick.reasoning,
                )
                for pick in decided.decisions
            ),
            "adjustments": changed,
            "vetoed": decided.vetoed_tickers,
            "substitutes": decided.substitutes,
            "executed": executed is not None,
            "outcome": ending.of_decision(view),
            "results": results.by_order(view.results),
            "fills": tuple(
                ShareShape(
                    action=fill.side.value,
                    ticker=fill.asset,
                    quantity=fill.quantity,
                    price=amounts.price(fill.price),
                )
                for fill in (executed.fills if executed else ())
            ),
        }
    )


def portfolio(view: AccountView) -> PortfolioShape | None:
    """An account as the desk's own models see theirs, with its gains; None where there is none."""
    if view.portfolio is None:
        return None
    halt = view.portfolio.halt
    return PortfolioShape.model_validate(
        _fields(view, PortfolioShape)
        | portfolio_json(view.portfolio)
        | {
            "fills_not_counted": view.not_counted.fills,
            "equity_at_close": view.equity,
            "buys_halted": None if halt is None else account.halted(halt),
            "fills": [
                PastFillShape(
                    session=fill.session,
                    side=fill.side.value,
                    ticker=fill.asset,
                    quantity=fill.quantity,
                    price=fill.price.amount,
                )
                for fill in view.fills
            ],
        }
    )


def why_nots(view: CycleView, ticker: str | None) -> WhyNotsShape:
    """The candidates of a cycle that were not bought, or this one. Raises NotFound where it was no
    candidate."""
    of = {it.name: why_not.candidates(Reports.of(it)) for it in view.pipelines}
    if ticker is not None:
        known = tuple(dict.fromkeys(name for names in of.values() for name in names))
        if not known:
            raise NotFound(f"this cycle has no candidates on record: {view.outcome or view.status}")
        if ticker not in known:
            there = did_you_mean(nearest(ticker, known)) or f"; there are: {few(known)}"
            raise NotFound(f"{ticker} was no candidate of this cycle{there}")
        of = {name: tuple({ticker} & {*names}) for name, names in of.items()}
    room = SHOWN_CHARS_MAX // max(1, len(of))
    shapes = tuple(_why_not(it, of[it.name], view.reason, room) for it in view.pipelines)
    return WhyNotsShape.model_validate(_fields(view, WhyNotsShape) | {"pipelines": shapes})


def _why_not(view: PipelineView, names: Sequence[str], reason: str, room: int) -> WhyNotShape:
    causes = why_not.by_ticker([it for it in view.not_bought if it.ticker in names])
    shown, more = fitting(causes, room)
    return WhyNotShape(
        name=view.name,
        account=view.account,
        status=view.status,
        outcome=ending.of(view, Reports.of(view), (), reason).sentence,
        not_bought=shown,
        no_cause=tuple(name for name in names if name not in causes),
        more=more,
    )


def fitting(texts: Mapping[str, str], room: int) -> tuple[dict[str, str], tuple[str, ...]]:
    """The first texts that have room, one at least, and the names of the others."""
    shown: dict[str, str] = {}
    used = 0
    for name, text in texts.items():
        used += len(name) + len(text)
        if shown and used > room:
            break
        shown[name] = text if len(text) <= room else f"{text[: room - 1]}…"
    return shown, tuple(texts)[len(shown) :]


def account_performance(name: str, view: PerformanceView) -> PerformanceShape:
    """How an account did."""
    return PerformanceShape.model_validate(
        _fields(view, PerformanceShape)
        | {
            "account": name,
            "fills_not_counted": view.not_counted.fills,
            "figures": view.account,
            "benchmark": performance.benchmark(view),
            "tickers": view.tickers[:TICKERS_SHOWN],
            "tickers_more": view.tickers_more + len(view.tickers[TICKERS_SHOWN:]),
        }
    )


def strategy(view: StrategyView) -> StrategyShape:
    """A strategy without its curves."""
    return StrategyShape.model_validate(view)


def _fields(view: object, shape: type[ToolShape]) -> dict[str, Any]:
    """The shape's fields that the view has under the same name."""
    return {name: getattr(view, name) for name in shape.model_fields if hasattr(view, name)}
