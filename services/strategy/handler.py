"""Handlers of the strategy service: design, training and backtest, each with its gate."""

from collections.abc import Sequence
from typing import Protocol

from pydantic import JsonValue

from contracts.gate import GateThresholds
from contracts.operation import CallKind
from contracts.strategy import StrategyDraft, StrategySpec
from contracts.strategy_cycle import (
    BacktestStrategy,
    DesignStrategy,
    StrategyDesign,
    TrainStrategy,
)
from contracts.strategy_result import BacktestResult, TrainingResult
from libs.llm.agent import Role
from libs.llm.loop import generate
from libs.llm.prompt import Task, task_for
from libs.market.errors import NoHistory
from libs.market.panels import bars_of, currencies_of, to_bytes
from libs.market.source import MarketData
from libs.quant.strategy.gates import backtest_gate, training_gate
from libs.report.strategies.export import report_call
from libs.report.strategies.files import StrategyFiles
from libs.runtime.errors import DeskError
from libs.runtime.extras import require
from libs.runtime.journal import Call, Journal, Reply
from libs.runtime.worker_process import computed, request_of
from services.strategy import logic

TICKERS_MAX = 20
"""Tickers whose histories a designer is told of."""
HISTORY_SESSIONS_MAX = 6_000
COMPUTE = "services.strategy.compute"


class ModelStore(Protocol):
    """Where trained models are kept."""

    async def keep(self, sha256: str, body: bytes) -> None:
        """Keep the bytes under their hash; the same ones again change nothing."""
        ...

    async def read(self, sha256: str) -> bytes:
        """The bytes of that hash."""
        ...


class SpecMisfit(DeskError):
    """The spec needs data that the prices do not cover; `field` is the part to change."""

    code = "spec_misfit"

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.field = problems[0].partition(":")[0]


async def design_strategy(
    command: DesignStrategy,
    journal: Journal,
    *,
    market: MarketData,
    role: Role,
    files: StrategyFiles,
    gates: GateThresholds,
    terms: logic.DesignTerms,
) -> StrategyDesign:
    """The request's own spec, or one that the pipeline's provider drafts; named and exported.

    AnswerInvalid asks for another attempt with the errors quoted; SpecMisfit says what of a given
    spec the prices do not reach, before anything is trained, and counted as tried.
    """
    require("strategies", "a strategy cycle")
    requested = command.request.strategy
    own_spec = requested.spec if requested else None
    if own_spec is not None:
        await _refuse_misfit(own_spec, command, journal, market)
        spec = logic.taken(own_spec, terms)
    else:
        spec = await _designed(command, journal, market, role, terms)
    named, path = await _exported(journal, files, spec)
    return StrategyDesign.of(
        command,
        spec=named,
        spec_sha256=logic.sha256_of(named),
        origin="given" if own_spec else "designed",
        path=path,
        gates=gates,
    )


async def _refuse_misfit(
    spec: StrategySpec, command: DesignStrategy, journal: Journal, market: MarketData
) -> None:
    sessions = len(market.calendar.sessions(spec.train.first, command.as_of)) + 1
    histories = await _histories(command, journal, market, spec.universe, sessions)
    if problems := logic.problems(spec, histories):
        raise SpecMisfit(problems)


async def _designed(
    command: DesignStrategy,
    journal: Journal,
    market: MarketData,
    role: Role,
    terms: logic.DesignTerms,
) -> StrategySpec:
    universe = command.request.universe
    named = universe[:TICKERS_MAX] if universe else None
    histories = await _histories(command, journal, market, named, HISTORY_SESSIONS_MAX)
    task: Task = task_for(
        command,
        histories=histories,
        indicators=logic.indicators_for_prompt(),
        constraints=dict(command.request.constraints),
        past=[past.model_dump(mode="json") for past in command.past_strategies],
        # A pipeline's every design has an operation of its own, and with it a draw of its own.
        draw=str(command.op_id),
    )
    draft = await generate(
        role.played_for(command),
        task,
        StrategyDraft,
        journal,
        check=lambda draft, _: logic.draft_problems(draft, histories),
    )
    return logic.filled(draft, histories, terms)


async def _histories(
    command: DesignStrategy,
    journal: Journal,
    market: MarketData,
    tickers: Sequence[str] | None,
    sessions: int,
) -> JsonValue:
    """By ticker: the first and last session that it has bars of, and how many; of the last
    `sessions` at most."""

    async def read() -> Reply:
        histories: dict[str, JsonValue] = {}
        whole = () if tickers else await market.universe(command.as_of)
        for ticker in tickers or [listing.ticker for listing in whole][:TICKERS_MAX]:
            days = (await market.bars(ticker, command.as_of, sessions))["date"]
            histories[ticker] = {"first": str(days[0]), "last": str(days[-1]), "bars": len(days)}
        if not histories:
            raise NoHistory(f"no ticker has a bar on {command.as_of}: nothing can be designed for")
        return Reply(histories)

    request: JsonValue = {
        "as_of": command.as_of.isoformat(),
        "tickers": list(tickers) if tickers else None,
    }
    return await journal.call(Call(CallKind.READ, "histories", request, read))


async def _exported(
    journal: Journal, files: StrategyFiles, spec: StrategySpec
) -> tuple[StrategySpec, str]:
    """The spec under the name that it got, and its file. Journalled, so that it gets one only."""
    body = spec.model_dump(mode="json")

    async def write() -> Reply:
        named, path = files.keep_spec(spec)
        return Reply({"name": named.name, "path": str(path)})

    reply = await journal.call(Call(CallKind.READ, "export of the spec", body, write))
    if not isinstance(reply, dict):
        raise TypeError(f"the export is on record as {type(reply).__name__}")
    return spec.model_copy(update={"name": str(reply["name"])}), str(reply["path"])


async def train_strategy(
    command: TrainStrategy,
    journal: Journal,
    *,
    market: MarketData,
    models: ModelStore,
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
    judged = trained.model_copy(update={"gate": training_gate(trained, design.gates)})
    await journal.call(report_call(files, design, judged))
    return judged


async def backtest_strategy(
    command: BacktestStrategy,
    journal: Journal,
    *,
    market: MarketData,
    models: ModelStore,
    files: StrategyFiles,
) -> BacktestResult:
    """Run the trained model over the held-out period, in a process of its own.

    The model's bytes are compared with the hash of the training's result. A gate that fails is a
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
    tested = BacktestResult.of(
        command,
        spec_sha256=design.spec_sha256,
        model_sha256=trained.model_sha256,
        currencies=await currencies_of(journal, market, bars),
        **answer,
    )
    judged = tested.model_copy(update={"gate": backtest_gate(tested, design.gates)})
    await journal.call(report_call(files, design, trained, judged))
    return judged
