"""Wiring of the strategy training service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contracts.subjects.commands import TRAIN_STRATEGY
from libs.bus.bodies import open_bodies
from libs.bus.route import Routes, on_command
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.report.strategies.files import StrategyFiles
from libs.runtime.settings import Settings
from services.strategy_training.handler import KeepsModels, train_strategy

SERVICE = "strategy_training"


def routes(market: MarketData, models: KeepsModels, settings: Settings) -> Routes:
    """The service's messages with their handlers."""
    files = StrategyFiles(settings.strategies_dir)
    train = on_command(TRAIN_STRATEGY, train_strategy, market=market, models=models, files=files)
    return Routes(service=SERVICE, commands=(train,))


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with open_bodies(settings.nats_address, settings.secrets_path, SERVICE) as models:
        yield routes(market_of(settings), models, settings)
