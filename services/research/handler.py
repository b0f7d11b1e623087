"""Handlers of the research service: the plan, the quant's answer and the analyst's findings."""

from collections.abc import Sequence

from contracts.research import (
    AnswerQuestion,
    MakePlan,
    Plan,
    PlanDraft,
    QuantDraft,
    QuantReport,
    ResearchDraft,
    ResearchReport,
    ResearchTickers,
)
from libs.facts.desk import digest_facts, sentiment_facts
from libs.llm.agent import Role
from libs.llm.loop import generate, generate_with_tools
from libs.llm.prompt import digest_for_prompt, memory_for_prompt, sentiment_for_prompt, task_for
from libs.llm.reasoning import Reasoning
from libs.market.exit_terms import DeskExitRules
from libs.market.exits import AccountExits
from libs.market.source import MarketData
from libs.market.tools.own import own_tools
from libs.runtime.journal import Journal
from services.research import logic
from services.research.tools import (
    analyst_tools,
    facts_read,
    indicator_evidence,
    planner_tools,
    standard_reads,
)


async def make_plan(
    command: MakePlan,
    journal: Journal,
    *,
    market: MarketData,
    role: Role,
    tickers_max: int,
    plugins: Sequence[str] = (),
) -> Plan:
    """Make the plan of this cycle: at most `tickers_max` assets.

    Of the user's own tools those run that this service's settings name (`plugins`).
    AnswerInvalid asks for another attempt with the errors quoted.
    """
    task = task_for(
        command,
        about=command.signal_digest.tickers,
        facts=digest_facts(command.signal_digest),
        signal_digest=digest_for_prompt(command.signal_digest),
        sentiment_report=sentiment_for_prompt(command.sentiment_report),
        portfolio=command.portfolio,
        agent_memory=memory_for_prompt(command.agent_memory),
        # What models may cost is no concern of theirs.
        budgets=command.request.budgets.model_dump(mode="json", include={"money"}),
        constraints=dict(command.request.constraints),
        universe=list(command.request.universe or ()),
        assets_max=tickers_max,
    )
    own = await own_tools(journal, market, command.as_of, command.tool_plugins, plugins)
    planned = await generate_with_tools(
        role.played_for(command),
        task,
        PlanDraft,
        journal,
        planner_tools(market, command.as_of, command.portfolio, own),
        check=lambda plan, _: logic.plan_problems(
            plan, command.signal_digest, command.portfolio, tickers_max
        ),
    )
    return Plan.of(command, **logic.plan_fields(planned.answer))


async def answer_question(
    command: AnswerQuestion, journal: Journal, *, market: MarketData, role: Role
) -> QuantReport:
    """The plan's question answered from indicators that code has computed."""
    assets = command.plan.assets
    evidence = await indicator_evidence(journal, market, command.as_of, assets)
    task = task_for(command, evidence=evidence, about=assets, plan=command.plan)
    reasoning = Reasoning[QuantDraft](task, logic.quant_problems)
    draft = await generate(role.played_for(command), task, QuantDraft, journal, check=reasoning)
    return QuantReport.of(command, **logic.quant_report(draft, evidence, reasoning.facts))


async def research_tickers(
    command: ResearchTickers,
    journal: Journal,
    *,
    market: MarketData,
    role: Role,
    tickers_max: int,
    exit_rules: DeskExitRules,
    plugins: Sequence[str] = (),
) -> ResearchReport:
    """The analyst's findings from the market tools, which answer for at most `tickers_max`, each
    with the facts that the market source has of it, and what the account's exit rules
    would do with it. Of the user's own tools those run that `plugins` names.
    """
    task = task_for(
        command,
        about=command.plan.assets,
        facts=(*digest_facts(command.signal_digest), *sentiment_facts(command.sentiment_report)),
        plan=command.plan,
        signal_digest=digest_for_prompt(command.signal_digest),
        sentiment_report=sentiment_for_prompt(command.sentiment_report),
        tickers_max=tickers_max,
    )
    reasoning = Reasoning[ResearchDraft](task, logic.research_problems)
    own = await own_tools(journal, market, command.as_of, command.tool_plugins, plugins)
    answered = await generate_with_tools(
        role.played_for(command),
        task,
        ResearchDraft,
        journal,
        analyst_tools(market, command.as_of, tickers_max, own),
        check=reasoning,
        standard=standard_reads(command.plan.assets[:tickers_max]),
    )
    draft = answered.answer
    names = [finding.ticker for finding in draft.tickers]
    known = await facts_read(
        journal,
        market,
        command.as_of,
        names,
        AccountExits(exit_rules, command.pipeline.account),
    )
    return ResearchReport.of(
        command,
        reads=answered.reads,
        analysis_date=command.as_of,
        tool_calls_made=answered.calls,
        **logic.research_report(
            draft,
            reasoning.evidence,
            reasoning.facts,
            known,
            command.signal_digest.tickers,
        ),
    )
