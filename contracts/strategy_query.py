"""Queries about the strategies that a desk has tried. Served by the console, read-only."""

from datetime import date, datetime
from typing import Literal

from pydantic import Field

from contracts.gate import GateResult
from contracts.message import Limit, Message
from contracts.reasons import FIGURES_MAX, LOOSE_MAX, Figure, Loose
from contracts.strategy import STRATEGY_UNIVERSE_MAX, Period
from contracts.strategy_result import Verdict
from contracts.types import Currency, CycleId, OperationId, ShortText, Text, Ticker, Value

NAMES_MAX = 8
"""Strategies that are asked for by name at once."""
CURVE_POINTS_MAX = 60
NEAR_MAX = 3


class TrainingFigures(Value):
    """See contracts.strategy_result.TrainingResult."""

    accuracy: float
    base_rate: float
    initial_loss: float
    final_loss: float
    rows: int
    gate: GateResult | None = None


class BacktestFigures(Value):
    """See contracts.strategy_result.BacktestResult; both curves have the same few points."""

    total_return: float
    benchmark_return: float
    cagr: float | None = None
    sharpe_ratio: float | None = None
    benchmark_sharpe_ratio: float | None = None
    sortino_ratio: float | None = None
    deflated_sharpe: float | None = None
    trials: int = 1
    max_drawdown: float
    win_rate: float | None = None
    total_trades: int
    turnover: float
    exposure: float
    equity: tuple[float, ...] = Field(default=(), max_length=CURVE_POINTS_MAX)
    benchmark: tuple[float, ...] = Field(default=(), max_length=CURVE_POINTS_MAX)
    currencies: dict[Ticker, Currency] = Field(min_length=1, max_length=STRATEGY_UNIVERSE_MAX)
    gate: GateResult | None = None


class AssessmentView(Value):
    """See contracts.strategy_result.StrategyAssessment."""

    verdict: Verdict
    strengths: tuple[Text, ...] = ()
    weaknesses: tuple[Text, ...] = ()
    suggestions: tuple[Text, ...] = ()
    op_id: OperationId | None = None
    figures: tuple[Figure, ...] = Field(default=(), max_length=FIGURES_MAX)
    loose: tuple[Loose, ...] = Field(default=(), max_length=LOOSE_MAX)


class StrategyView(Value):
    """A strategy as its newest run left it, of `runs` in all.

    `ended` says how far it came, `reason` why no further. `path` is the exported spec; report and
    assessment lie in the folder of the same name.
    """

    name: ShortText
    cycle_id: CycleId
    as_of: date
    designed_at: datetime
    runs: int = 1
    path: ShortText
    hypothesis: Text
    universe: tuple[Ticker, ...]
    features: tuple[ShortText, ...]
    model: ShortText
    horizon_bars: int
    train: Period
    held_out: Period
    ended: Literal["running", "training_gate", "backtest_gate", "assessed", "failed", "cancelled"]
    reason: Text = ""
    training: TrainingFigures | None = None
    backtest: BacktestFigures | None = None
    assessment: AssessmentView | None = None


class StrategiesQuery(Message):
    """The strategies designed last, the newest first, or those of these names in their order."""

    names: tuple[ShortText, ...] = Field(
        default=(), max_length=NAMES_MAX, description="Only these strategies, for comparison."
    )
    limit: Limit = 20


class UnknownStrategy(Value):
    """A name that no strategy has, and those that come near it."""

    name: ShortText
    near: tuple[ShortText, ...] = Field(default=(), max_length=NEAR_MAX)


class StrategiesPage(Message):
    """The strategies found. `more` where the limit or the message's size cut the list.
    `unreadable` are those among them that a later release wrote."""

    strategies: tuple[StrategyView, ...] = ()
    unknown: tuple[UnknownStrategy, ...] = ()
    more: bool = False
    unreadable: tuple[ShortText, ...] = ()
