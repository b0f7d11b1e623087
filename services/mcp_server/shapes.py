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
    Field(description="Stages that another than the pipeline's own model answered, and why"),
]


class ToolShape(BaseModel):
    """One answer. What it leaves out, `get_cycle` and `get_operation` tell."""

    model_config = ConfigDict(frozen=True, from_attributes=True, validate_by_name=True)


class PipelineShape(ToolShape):
    """A pipeline: where it is, and which contracts it has made."""

    name: str
    account: str
    provider: str
    state: str
    status: CycleStatus
    reason: Short
    substitutes: Substitutes
    outcome: Short | None = Field(
        description="What was traded, why nothing was, or where it stopped; null in lists"
    )
    not_bought: dict[str, str] = Field(
        description="Candidates that were not bought: why, by ticker; empty in lists"
    )
    made: tuple[str, ...] = Field(description="Names that get_cycle's `contracts` takes")
    contracts: dict[str, JsonValue] = Field(description="Those that were asked for")


class CycleShape(ToolShape):
    """A cycle."""

    cycle_id: UUID
    kind: str
    as_of: date
    status: CycleStatus
    reason: Short
    outcome: Short = Field(description="In a line: traded, held, or why not; empty while it runs")
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
    outcome: Short = Field(description="What was traded, why nothing was, or where it is")
    not_bought: dict[str, str] = Field(
        description="Candidates that were not bought: why, by ticker. Quoted from rules and models"
    )
    no_cause: tuple[str, ...] = Field(
        description="Candidates that were bought, or of which nothing is decided yet"
    )
    more: tuple[str, ...] = Field(description="Not bought, and no room for why: ask by ticker")


class WhyNotsShape(ToolShape):
    """Why the candidates of a cycle were not bought."""

    cycle_id: UUID
    kind: str
    as_of: date
    status: CycleStatus
    pipelines: tuple[WhyNotShape, ...]


class PerformanceShape(ToolShape):
    """How an account did, from its opening at `first` to the close of `last`; percentages, and
    money in its currency. Nothing later is in any figure."""

    account: str
    currency: str | None
    first: date | None
    last: date | None
    sessions: int
    fills_not_counted: int = Field(description="Fills after that close, in no figure yet")
    equity: Decimal
    paid_in: Decimal
    figures: PerformanceFigures | None = Field(description="null: it has no second session yet")
    benchmark: str = Field(description="What it is compared with")
    compared: PerformanceFigures | None
    exposed: PerformanceFigures | None = Field(
        description="The benchmark held at each session as much as the account was invested"
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
    """A strategy on its held-out period, after costs; fractions. `benchmark_*`: buying and holding
    the same tickers. `deflated_sharpe`: how probable it is no luck of so many `trials`."""

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
    """What a model, or the rules, made of the figures."""

    verdict: str
    strengths: tuple[Short, ...]
    weaknesses: tuple[Short, ...]
    suggestions: tuple[Short, ...]


class StrategyShape(ToolShape):
    """A strategy that was tried, as its newest run left it."""

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
    reason: Short = Field(description="Why it came no further")
    training: TrainingFigures | None
    backtest: BacktestShape | None
    assessment: JudgedShape | None


class StrategiesShape(ToolShape):
    """Strategies, the newest first or in the order of the names; `unreadable` ones were written by
    a later release."""

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
    priced_on: date | None = Field(None, description="Only where the price is an older session's")


class OpenOrderShape(ToolShape):
    """An order that waits."""

    ticker: str
    side: str
    quantity: Decimal


class PastFillShape(ToolShape):
    """An order that was filled."""

    session: date
    side: str
    ticker: str
    quantity: Decimal
    price: Decimal


class PortfolioShape(ToolShape):
    """An account; money in its currency. Figures, from `closed_on` to `fees`, are as of its newest
    valued close; the rest are its books now, with later fills."""

    as_of: date
    newest: date
    account: str
    currency: str
    cash: Decimal
    equity: Decimal
    closed_on: date | None = Field(description="The close that the figures are of; null: none yet")
    fills_not_counted: int = Field(description="Fills after that close, in no figure yet")
    equity_at_close: Decimal
    starting_cash: Decimal
    paid_in: Decimal = Field(description="Starting cash and what the owner has brought in since")
    return_pct: Decimal = Field(description="Since the opening, time-weighted")
    realised: Decimal
    unrealised: Decimal
    dividends: Decimal
    fees: Decimal
    buys_halted: str | None = Field(description="Why nothing is bought; null where it is")
    positions: tuple[PositionShape, ...] = Field(description="The largest first")
    positions_not_shown: int
    open_orders: tuple[OpenOrderShape, ...]
    fills: tuple[PastFillShape, ...] = Field(description="The newest first")


class CyclesShape(ToolShape):
    """Cycles, newest first."""

    cycles: tuple[CycleShape, ...]


class ShareShape(ToolShape):
    """So many shares of a ticker."""

    action: str
    ticker: str
    quantity: Decimal
    price: str = Field(description="With its currency; of a decision what sizing assumed")
    why: Short = ""


class DecisionShape(ToolShape):
    """The decision: picks or exits as the rules left them, the checks, the fills."""

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
    outcome: str = Field(description="What was traded, or why nothing was")
    results: dict[str, str] = Field(
        description="What came of each order: its P&L after fees, and its end, by order"
    )
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
    """Operations: the newest first, or of one cycle in the order of their making."""

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
    next: str = Field(description="What to do to see how it goes")


def cycle(view: CycleView, contracts: Sequence[str] = ()) -> CycleShape:
    """A cycle with the contracts that are named."""
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
