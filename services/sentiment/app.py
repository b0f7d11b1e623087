"""Wiring of the sentiment service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from contracts.subjects.commands import BUILD_DIGEST, SCORE_SENTIMENT
from contracts.subjects.preflight import PROVIDERS, REACH
from libs.bus.route import Routes, on_command, on_query
from libs.llm.agent import Role
from libs.llm.prompt import Prompt
from libs.llm.provider import ModelSize, Provider
from libs.llm.registry import limits_of, providers_of
from libs.market.source import MarketData
from libs.market.sources import market_of, tickers_of
from libs.runtime.settings import Settings
from services.sentiment.handler import (
    build_digest,
    score_sentiment,
    tell_providers,
    tell_reach,
)
from services.sentiment.reads import Sources
from services.sentiment.sources import sources_of

PROMPTS = Path(__file__).parent / "prompts"


def routes(market: MarketData, providers: Mapping[str, Provider], settings: Settings) -> Routes:
    """The service's messages with their handlers."""
    prompt = Prompt.load(PROMPTS / "sentiment.md")
    role = Role(
        "sentiment",
        "sentiment",
        ModelSize.SMALL,
        prompt,
        providers,
        limits_of(settings),
    )
    plugins = sources_of(settings.candidates.sources, market)
    sources = Sources(plugins, market, settings.candidates.timeout_s)
    return Routes(
        service="sentiment",
        commands=(
            on_command(BUILD_DIGEST, build_digest, market=market, sources=sources),
            on_command(SCORE_SENTIMENT, score_sentiment, role=role),
        ),
        questions=(
            on_query(PROVIDERS, tell_providers, providers=providers, endpoints=settings.providers),
            on_query(
                REACH, tell_reach, market=market, sources=sources, tickers=tickers_of(settings)
            ),
        ),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with providers_of(settings) as providers:
        yield routes(market_of(settings), providers, settings)
