"""What the strategy design service answers: the design that the cycle runs."""

from collections.abc import Sequence

from pydantic import JsonValue

from contracts.gate import GateThresholds
from contracts.operation import CallKind
from contracts.strategy import StrategyDraft, StrategySpec
from contracts.strategy_cycle import DesignStrategy, StrategyDesign
from libs.llm.agent import Role
from libs.llm.loop import generate
from libs.llm.prompt import Task, task_for
from libs.market.errors import NoHistory
from libs.market.source import MarketData
from libs.report.strategies.files import StrategyFiles
from libs.runtime.errors import DeskError
from libs.runtime.journal import Call, Journal, Reply
from services.strategy_design import logic

TICKERS_MAX = 20
"""Tickers whose histories a designer is told of."""
HISTORY_SESSIONS_MAX = 6_000


class SpecMisfit(DeskError):
    """A given spec asks for what the prices do not reach; `field` is its part to change."""

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
    terms: logic.Terms,
) -> StrategyDesign:
    """The request's own spec, or one that the pipeline's provider drafts; named and exported.

    AnswerInvalid asks for another attempt with the errors quoted; SpecMisfit says what of a given
    spec the prices do not reach, before anything is trained, and counted as tried.
    """
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
    command: DesignStrategy, journal: Journal, market: MarketData, role: Role, terms: logic.Terms
) -> StrategySpec:
    universe = command.request.universe
    told_of = universe[:TICKERS_MAX] if universe else None
    histories = await _histories(command, journal, market, told_of, HISTORY_SESSIONS_MAX)
    task: Task = task_for(
        command,
        histories=histories,
        indicators=logic.indicators_told(),
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
