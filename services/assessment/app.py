"""Wiring of the assessment service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from contracts.subjects.commands import ASSESS_STRATEGY, MEMORIZE
from libs.bus.route import Routes, on_command
from libs.llm.agent import Role
from libs.llm.prompt import Prompt
from libs.llm.provider import ModelSize, Provider
from libs.llm.registry import limits_of, providers_of
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.report.strategies.files import StrategyFiles
from libs.runtime.settings import Settings
from services.assessment.handler import memorize
from services.assessment.strategy import assess_strategy

PROMPTS = Path(__file__).parent / "prompts"


def routes(market: MarketData, providers: Mapping[str, Provider], settings: Settings) -> Routes:
    """The service's messages with their handlers."""

    def role(name: str, size: ModelSize) -> Role:
        loaded = Prompt.load(PROMPTS / f"{name}.md")
        limits = limits_of(settings)
        return Role(name, name, size, loaded, providers, limits)

    memory = role("memory", ModelSize.SMALL)
    assessor = role("assessor", ModelSize.LARGE)
    return Routes(
        service="assessment",
        commands=(
            on_command(MEMORIZE, memorize, market=market, role=memory),
            on_command(
                ASSESS_STRATEGY,
                assess_strategy,
                role=assessor,
                files=StrategyFiles(settings.strategies_dir),
                clock=partial(datetime.now, UTC),
            ),
        ),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with providers_of(settings) as providers:
        yield routes(market_of(settings), providers, settings)
