"""The strategy cycle's commands, and the design that it begins with."""

from datetime import date
from typing import ClassVar, Literal

from pydantic import Field

from contracts.cycle import CycleRequest
from contracts.gate import GateThresholds
from contracts.message import Command, Contract
from contracts.stages import Stage
from contracts.strategy import StrategySpec
from contracts.strategy_result import BacktestResult, Sha256, TrainingResult, Verdict
from contracts.types import ShortText, Ticker, Value

PAST_STRATEGIES_MAX = 12
PAST_TICKERS_MAX = 20


class StrategyDesign(Contract):
    """The design that the cycle runs, under the name that it got, and how it will be judged.

    `path` is where it was exported to. `gates` are fixed here, before anything is known of how it
    does, and travel with it.
    """

    spec: StrategySpec
    spec_sha256: Sha256
    origin: Literal["designed", "given"]
    path: ShortText
    gates: GateThresholds = GateThresholds()


class PastStrategy(Value):
    """A strategy tried before: its design, how far it came, and what was found and thought of it.

    `reason` is the gate's that stopped it. Texts are cut, figures that were not reached are None.
    """

    name: ShortText
    as_of: date
    hypothesis: ShortText
    universe: tuple[Ticker, ...] = Field(max_length=PAST_TICKERS_MAX)
    features: tuple[ShortText, ...]
    horizon_bars: int
    model: ShortText
    ended: Literal["training_gate", "backtest_gate", "assessed", "not_finished"]
    reason: ShortText = ""
    accuracy: float | None = None
    base_rate: float | None = None
    sharpe_ratio: float | None = None
    benchmark_sharpe_ratio: float | None = None
    max_drawdown: float | None = None
    win_rate: float | None = None
    total_trades: int | None = None
    verdict: Verdict | None = None
    strengths: tuple[ShortText, ...] = ()
    weaknesses: tuple[ShortText, ...] = ()
    suggestions: tuple[ShortText, ...] = ()


class DesignStrategy(Command):
    """Write a design, or use the request's; name it and export it.

    `past_strategies` are the desk's last ones, at or before as_of, newest first.
    """

    STAGE: ClassVar[Stage | None] = "design"

    request: CycleRequest
    past_strategies: tuple[PastStrategy, ...] = Field(default=(), max_length=PAST_STRATEGIES_MAX)


class TrainStrategy(Command):
    """Train the design's model on its training period and say what it is worth out of sample."""

    strategy_design: StrategyDesign


class Trials(Value):
    """All other strategies that this desk has tried, whoever designed them and whatever became of
    them; one counts from when it was trained, and the same spec counts once.

    `with_ratio` of them came to a yearly Sharpe ratio on their held-out periods, whose mean and
    sample variance these are.
    """

    count: int = Field(default=0, ge=0)
    with_ratio: int = Field(default=0, ge=0)
    ratio_mean: float = 0.0
    ratio_variance: float = Field(default=0.0, ge=0)


class BacktestStrategy(Command):
    """Run the trained design over its held-out period.

    `trials` is None where an older orchestrator did not count them: no figure may then need them.
    """

    strategy_design: StrategyDesign
    training_result: TrainingResult
    trials: Trials | None = None


class AssessStrategy(Command):
    """Let a model judge the results; it has to save what it thinks with its tool."""

    STAGE: ClassVar[Stage | None] = "assessor"

    strategy_design: StrategyDesign
    training_result: TrainingResult
    backtest_result: BacktestResult
