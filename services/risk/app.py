"""Wiring of the risk service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from contracts.subjects.commands import (
    PREVIEW_DECISION,
    REVIEW_PICKS,
    VALIDATE_DECISION,
    VALIDATE_EXITS,
)
from libs.bus.route import Routes, on_command
from libs.llm.provider import Provider
from libs.llm.registry import providers_of
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.runtime.settings import Settings
from services.risk.handler import validate_decision, validate_exits
from services.risk.review import review_picks, review_role


def routes(market: MarketData, providers: Mapping[str, Provider], settings: Settings) -> Routes:
    """The service's messages with their handlers. It holds no account."""
    reviewer = review_role(providers, settings, market.calendar)
    decide = partial(validate_decision, market=market, plugins=settings.plugins)
    return Routes(
        service="risk",
        commands=(
            on_command(REVIEW_PICKS, review_picks, role=reviewer),
            on_command(VALIDATE_DECISION, decide),
            on_command(PREVIEW_DECISION, decide),
            on_command(VALIDATE_EXITS, validate_exits),
        ),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    market = market_of(settings)
    async with providers_of(settings) as providers:
        yield routes(market, providers, settings)
