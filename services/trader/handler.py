"""Handler of the trader: the picks of a pipeline."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from contracts.account import HORIZON_SESSIONS_MAX
from contracts.not_bought import NotBought
from contracts.trader import DailyPicks, PicksDraft, PickTrades
from libs.llm.agent import Role
from libs.llm.loop import sample_with_tools
from libs.llm.prompt import digest_for_prompt, memory_for_prompt, sentiment_for_prompt, task_for
from libs.llm.provider import COMPUTING, FREE, ToolEvidence
from libs.llm.reasoning import Reasoning
from libs.llm.rules import coin, trader
from libs.llm.rules.rule_set import EvidenceIndex, TaskData
from libs.market.calendar import ExchangeCalendar, OutsideCalendar
from libs.market.moves import moves_read
from libs.market.source import MarketData
from libs.market.tools.own import own_tools
from libs.quant.risk.evaluation import Room
from libs.quant.risk.evidence import evidence_of
from libs.runtime.journal import Journal
from libs.runtime.model_settings import PROPOSAL
from services.trader import logic
from services.trader.samples import agreed
from services.trader.tools import standard_reads, trader_tools


def _ahead(calendar: ExchangeCalendar, as_of: date) -> logic.Ahead:
    """The sessions that a plan may reach, as far as the calendar knows them."""
    sessions: list[date] = []
    with contextlib.suppress(OutsideCalendar):
        while len(sessions) < HORIZON_SESSIONS_MAX:
            sessions.append(calendar.next_session(sessions[-1] if sessions else as_of))
    return logic.Ahead(sessions)


@dataclass
class _Problems:
    """The problems of an answer. A buy that no rule can let pass is asked about once: the rules
    veto it after that, and say why.
    """

    command: PickTrades
    rooms: Mapping[str, Room]
    _has_asked: bool = False

    def __call__(self, picks: PicksDraft, _: Sequence[ToolEvidence]) -> tuple[str, ...]:
        command = self.command
        problems = logic.pick_problems(picks, command.research_report, command.portfolio)
        closed = () if self._has_asked else logic.closed_problems(picks, self.rooms)
        self._has_asked = self._has_asked or bool(closed)
        return (*problems, *closed)


def _thresholds(
    player: str, task: TaskData, evidence: EvidenceIndex, draft: PicksDraft
) -> Iterable[NotBought]:
    """Why the rules or the lot passed others over; a model says it in its own words."""
    if player == FREE:
        return trader.passed(task, evidence)
    if player == coin.COIN:
        return coin.passed(task, evidence, {pick.ticker for pick in draft.picks})
    return ()


def _proposed(command: PickTrades) -> dict[str, Any]:
    """What a proposer asked for, without its words; nothing in any other cycle."""
    proposal = command.request.proposal
    if proposal is None:
        return {}
    return {PROPOSAL: proposal.model_dump(mode="json", exclude={"picks": {"__all__": {"reason"}}})}


async def pick_trades(
    command: PickTrades,
    journal: Journal,
    *,
    market: MarketData,
    role: Role,
    plugins: Sequence[str] = (),
) -> DailyPicks:
    """Propose buys and sales, with prices verified by tools. Of the user's own tools those run that
    this service's settings name (`plugins`).

    No model is asked where only one answer is possible: nothing was researched, nothing is held.
    """
    player = role.player(command)
    if not any(logic.tradable(command)):
        return DailyPicks.of(
            command, llm=player, pick_date=command.as_of, **logic.nothing_to_trade()
        )
    evidence = evidence_of(command.research_report, command.quant_report, command.portfolio)
    tickers = {*command.portfolio.exposed, *(item.ticker for item in evidence)}
    moves = await moves_read(journal, market, tickers, command.as_of)
    rooms = logic.rooms_of(command, evidence, moves)
    task = task_for(
        command,
        facts=logic.facts_given(command, rooms),
        about=logic.asked_about(command),
        signal_digest=digest_for_prompt(command.signal_digest),
        sentiment_report=sentiment_for_prompt(command.sentiment_report),
        plan=command.plan,
        quant_report=command.quant_report,
        research_report=command.research_report,
        portfolio=command.portfolio,
        agent_memory=memory_for_prompt(command.agent_memory),
        # What models may cost is no concern of theirs.
        budgets=command.request.budgets.model_dump(mode="json", include={"money"}),
        constraints=dict(command.request.constraints),
        **_proposed(command),
    )
    reasoning = Reasoning[PicksDraft](task, _Problems(command, rooms))
    own = await own_tools(journal, market, command.as_of, command.tool_plugins, plugins)
    # Whoever computes says the same whenever it is asked.
    computes = player in COMPUTING
    answered = await sample_with_tools(
        role.played_for(command),
        task,
        PicksDraft,
        journal,
        trader_tools(market, command.as_of, command.portfolio, own),
        count=1 if computes else command.request.samples or 1,
        check=reasoning,
        standard=standard_reads([*dict.fromkeys(logic.tradable(command))]),
    )
    answer = agreed(answered.answer)
    known = EvidenceIndex(reasoning.evidence, reasoning.facts.values)
    return DailyPicks.of(
        command,
        reads=answered.reads,
        llm=player,
        pick_date=command.as_of,
        unstable=answer.unstable,
        **logic.daily_picks(
            answer.draft,
            reasoning.facts,
            command.research_report,
            _ahead(market.calendar, command.as_of),
            answer.notes,
            rooms=rooms,
            thresholds=_thresholds(player, task.data, known, answer.draft),
        ),
    )
