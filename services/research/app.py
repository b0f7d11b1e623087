"""Wiring of the research service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from contracts.research import (
    AnswerQuestion,
    MakePlan,
    Plan,
    QuantReport,
    ResearchReport,
    ResearchTickers,
)
from libs.bus.route import Route, Routes
from libs.llm.agent import Role
from libs.llm.prompt import Prompt
from libs.llm.provider import ModelSize, Provider
from libs.llm.registry import limits_of, providers_of
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.runtime.settings import Settings
from services.research.handler import answer_question, make_plan, research_tickers

PROMPTS = Path(__file__).parent / "prompts"


def routes(market: MarketData, providers: Mapping[str, Provider], settings: Settings) -> Routes:
    """What the service hears and says."""

    def role(name: str, stage: str) -> Role:
        prompt = Prompt.load(PROMPTS / f"{name}.md")
        return Role(name, stage, ModelSize.MEDIUM, prompt, providers, limits_of(settings))

    tickers_max = settings.research_tickers_max
    plan = partial(
        make_plan, market=market, role=role("planner", "planner"), tickers_max=tickers_max
    )
    quant = partial(answer_question, market=market, role=role("quant", "quant"))
    analyst = partial(
        research_tickers, market=market, role=role("analyst", "research"), tickers_max=tickers_max
    )
    return Routes(
        service="research",
        commands=(
            Route(hears=MakePlan, says=Plan, handle=plan),
            Route(hears=AnswerQuestion, says=QuantReport, handle=quant),
            Route(hears=ResearchTickers, says=ResearchReport, handle=analyst),
        ),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    market = market_of(settings)
    async with providers_of(settings) as providers:
        yield routes(market, providers, settings)
