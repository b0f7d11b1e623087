"""Wiring of the research service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from contracts.subjects.commands import ANSWER_QUESTION, MAKE_PLAN, PROBE_INPUTS, RESEARCH_TICKERS
from libs.bus.route import Routes, on_command
from libs.llm.agent import Role
from libs.llm.prompt import Prompt
from libs.llm.provider import ModelSize, Provider
from libs.llm.registry import limits_of, providers_of
from libs.market.exit_terms import DeskExitRules
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.runtime.settings import Settings
from services.research.handler import answer_question, make_plan, research_tickers
from services.research.probe import probe_inputs

PROMPTS = Path(__file__).parent / "prompts"


def routes(market: MarketData, providers: Mapping[str, Provider], settings: Settings) -> Routes:
    """The service's messages with their handlers."""

    def role(name: str, stage: str, size: ModelSize = ModelSize.MEDIUM) -> Role:
        prompt = Prompt.load(PROMPTS / f"{name}.md")
        return Role(
            name,
            stage,
            size,
            prompt,
            providers,
            limits_of(settings),
            sessions=market.calendar,
        )

    tickers_max = settings.model.research_tickers_max
    plugins = settings.tool_plugins
    planner, quant, analyst = (
        role("planner", "planner"),
        role("quant", "quant"),
        role("analyst", "research"),
    )
    # Whoever trades is whose memory counts.
    probe = role("probe", "trader", ModelSize.LARGE)
    return Routes(
        service="research",
        commands=(
            on_command(
                MAKE_PLAN,
                make_plan,
                market=market,
                role=planner,
                tickers_max=tickers_max,
                plugins=plugins,
            ),
            on_command(ANSWER_QUESTION, answer_question, market=market, role=quant),
            on_command(
                RESEARCH_TICKERS,
                research_tickers,
                market=market,
                role=analyst,
                tickers_max=tickers_max,
                exit_rules=DeskExitRules(settings.exit_rules_file),
                plugins=plugins,
            ),
            on_command(
                PROBE_INPUTS, probe_inputs, market=market, role=probe, tickers_max=tickers_max
            ),
        ),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    market = market_of(settings)
    async with providers_of(settings) as providers:
        yield routes(market, providers, settings)
