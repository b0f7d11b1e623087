"""The strategy cycle's commands, and the design that it begins with."""

from typing import Literal

from contracts.cycle import CycleRequest
from contracts.gate import GateThresholds
from contracts.message import Command, Contract
from contracts.strategy import StrategySpec
from contracts.strategy_result import BacktestResult, Sha256, TrainingResult
from contracts.types import ShortText


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


class DesignStrategy(Command):
    """Write a design, or take the one that the request gives; name it and export it."""

    request: CycleRequest


class TrainStrategy(Command):
    """Train the design's model on its training period and say what it is worth out of sample."""

    strategy_design: StrategyDesign


class BacktestStrategy(Command):
    """Run the trained design over its held-out period."""

    strategy_design: StrategyDesign
    training_result: TrainingResult


class AssessStrategy(Command):
    """Let a model judge the results; it has to save what it thinks with its tool."""

    strategy_design: StrategyDesign
    training_result: TrainingResult
    backtest_result: BacktestResult
