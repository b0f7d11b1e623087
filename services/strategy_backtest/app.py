"""Wiring of the strategy backtest service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contracts.subjects.commands import BACKTEST_STRATEGY
from libs.bus.bodies import open_bodies
from libs.bus.route import Routes, on_command
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.report.strategies.files import StrategyFiles
from libs.runtime.settings import Settings
from services.strategy_backtest.handler import ReadsModels, backtest_strategy

SERVICE = "strategy_backtest"


def routes(market: MarketData, models: ReadsModels, settings: Settings) -> Routes:
    """The service's messages with their handlers."""
    files = StrategyFiles(settings.strategies_dir)
    test = on_command(
        BACKTEST_STRATEGY, backtest_strategy, market=market, models=models, files=files
    )
    return Routes(service=SERVICE, commands=(test,))


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with open_bodies(settings.nats_address, settings.secrets_path, SERVICE) as models:
        yield routes(market_of(settings), models, settings)
