"""What the strategy training service answers: a trained model's figures, and the training gate."""

from typing import Protocol

from contracts.strategy_cycle import TrainStrategy
from contracts.strategy_result import TrainingResult
from libs.market.panels import bars_of, to_bytes
from libs.market.source import MarketData
from libs.quant.strategy.gates import training_gate
from libs.report.strategies.export import report_call
from libs.report.strategies.files import StrategyFiles
from libs.runtime.computing import computed, request_of
from libs.runtime.journal import Journal

COMPUTE = "services.strategy_training.compute"


class KeepsModels(Protocol):
    """Where trained models stay."""

    async def keep(self, sha256: str, body: bytes) -> None:
        """Keep the bytes under their hash; the same ones again change nothing."""
        ...


async def train_strategy(
    command: TrainStrategy,
    journal: Journal,
    *,
    market: MarketData,
    models: KeepsModels,
    files: StrategyFiles,
) -> TrainingResult:
    """Train in a process of its own, keep the model, hold the figures against the training gate.

    A gate that fails is a result like any other: the workflow ends the cycle with its reason. What
    the prices do not allow is CannotCompute, with the spec's field.
    """
    design = command.strategy_design
    spec = design.spec
    bars = await bars_of(journal, market, spec.universe, command.as_of, spec.train)
    request = request_of({"spec": spec.model_dump(mode="json")}, to_bytes(bars))
    answer = await computed(COMPUTE, request, journal.progress)
    trained = TrainingResult.of(command, spec_sha256=design.spec_sha256, **answer["result"])
    await models.keep(trained.model_sha256, answer["model"].encode())
    gate = training_gate(trained, design.gates)
    judged = trained.model_copy(update={"gate": gate})
    await journal.call(report_call(files, design, judged))
    return judged
