"""Wiring of the assessment service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from contracts.assessment import Memorize
from contracts.memory import AgentMemory
from libs.bus.route import Route, Routes
from libs.llm.agent import Role
from libs.llm.prompt import Prompt
from libs.llm.provider import ModelSize, Provider
from libs.llm.registry import limits_of, providers_of
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.runtime.settings import Settings
from services.assessment.handler import memorize

PROMPTS = Path(__file__).parent / "prompts"


def routes(market: MarketData, providers: Mapping[str, Provider], settings: Settings) -> Routes:
    """What the service hears and says."""
    prompt = Prompt.load(PROMPTS / "memory.md")
    role = Role("memory", "memory", ModelSize.SMALL, prompt, providers, limits_of(settings))
    handle = partial(memorize, market=market, role=role)
    return Routes(
        service="assessment", commands=(Route(hears=Memorize, says=AgentMemory, handle=handle),)
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with providers_of(settings) as providers:
        yield routes(market_of(settings), providers, settings)
