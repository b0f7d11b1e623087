"""Handler of the strategy backtest service: the held-out period, and the backtest gate."""

from typing import Protocol

from contracts.strategy_cycle import BacktestStrategy
from contracts.strategy_result import BacktestResult
from libs.market.panels import bars_of, currencies_of, to_bytes
from libs.market.source import MarketData
from libs.quant.strategy.gates import backtest_gate
from libs.report.strategies.export import report_call
from libs.report.strategies.files import StrategyFiles
from libs.runtime.computing import computed, request_of
from libs.runtime.journal import Journal

COMPUTE = "services.strategy_backtest.compute"


class ReadsModels(Protocol):
    """Where trained models are."""

    async def read(self, sha256: str) -> bytes:
        """The bytes of that hash."""
        ...


async def backtest_strategy(
    command: BacktestStrategy,
    journal: Journal,
    *,
    market: MarketData,
    models: ReadsModels,
    files: StrategyFiles,
) -> BacktestResult:
    """Run the trained model over the held-out period, in a process of its own.

    The model's bytes are compared with the hash that the training told. A gate that fails is a
    result like any other: the workflow ends the cycle with its reason.
    """
    design, trained = command.strategy_design, command.training_result
    spec = design.spec
    bars = await bars_of(journal, market, spec.universe, command.as_of, spec.held_out)
    model = await models.read(trained.model_sha256)
    request = {
        "spec": spec.model_dump(mode="json"),
        "model": model.decode(),
        "model_sha256": trained.model_sha256,
        "trials": command.trials.model_dump() if command.trials else None,
    }
    answer = await computed(COMPUTE, request_of(request, to_bytes(bars)), journal.progress)
    backtest = BacktestResult.of(
        command,
        spec_sha256=design.spec_sha256,
        model_sha256=trained.model_sha256,
        currencies=await currencies_of(journal, market, bars),
        **answer,
    )
    gate = backtest_gate(backtest, design.gates)
    judged = backtest.model_copy(update={"gate": gate})
    await journal.call(report_call(files, design, trained, judged))
    return judged
