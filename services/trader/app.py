"""Wiring of the trader."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from contracts.subjects.commands import PICK_TRADES
from libs.bus.route import Routes, on_command
from libs.llm.agent import Role
from libs.llm.prompt import Prompt
from libs.llm.provider import ModelSize, Provider
from libs.llm.registry import limits_of, providers_of
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.runtime.settings import Settings
from services.trader.handler import pick_trades

PROMPTS = Path(__file__).parent / "prompts"


def routes(market: MarketData, providers: Mapping[str, Provider], settings: Settings) -> Routes:
    """The service's messages with their handlers."""
    prompt = Prompt.load(PROMPTS / "trader.md")
    role = Role(
        "trader",
        "trader",
        ModelSize.LARGE,
        prompt,
        providers,
        limits_of(settings),
        sessions=market.calendar,
    )
    pick = on_command(
        PICK_TRADES, pick_trades, market=market, role=role, plugins=settings.tool_plugins
    )
    return Routes(service="trader", commands=(pick,))


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    market = market_of(settings)
    async with providers_of(settings) as providers:
        yield routes(market, providers, settings)
