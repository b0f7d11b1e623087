"""What the trader answers: the picks of a pipeline."""

from contracts.trader import DailyPicks, PicksDraft, PickTrades
from libs.llm.agent import Role
from libs.llm.loop import generate_with_tools
from libs.llm.prompt import digest_told, memory_told, sentiment_told, task_for
from libs.llm.reasoning import Reasoning
from libs.market.source import MarketData
from libs.runtime.journal import Journal
from services.trader import logic
from services.trader.tools import trader_tools


async def pick_trades(
    command: PickTrades, journal: Journal, *, market: MarketData, role: Role
) -> DailyPicks:
    """What to propose for buying and selling, with prices verified by tools."""
    task = task_for(
        command,
        facts=logic.facts_given(command),
        about=logic.asked_about(command),
        signal_digest=digest_told(command.signal_digest),
        sentiment_report=sentiment_told(command.sentiment_report),
        plan=command.plan,
        quant_report=command.quant_report,
        research_report=command.research_report,
        portfolio=command.portfolio,
        agent_memory=memory_told(command.agent_memory),
        budgets=command.request.budgets,
        constraints=dict(command.request.constraints),
    )
    reasoning = Reasoning[PicksDraft](
        task,
        lambda picks, _: logic.pick_problems(picks, command.research_report, command.portfolio),
    )
    draft, _ = await generate_with_tools(
        role.played_for(command),
        task,
        PicksDraft,
        journal,
        trader_tools(market, command.as_of, command.portfolio),
        check=reasoning,
    )
    return DailyPicks.of(
        command,
        llm=command.pipeline.provider,
        pick_date=command.as_of,
        **logic.daily_picks(draft, reasoning.facts, command.research_report),
    )
