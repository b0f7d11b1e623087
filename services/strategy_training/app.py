"""Wiring of the strategy training service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from contracts.strategy_cycle import TrainStrategy
from contracts.strategy_result import TrainingResult
from libs.bus.bodies import open_bodies
from libs.bus.route import Route, Routes
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.runtime.settings import Settings
from libs.runtime.strategy_files import StrategyFiles
from services.strategy_training.handler import KeepsModels, train_strategy

SERVICE = "strategy_training"


def routes(market: MarketData, models: KeepsModels, settings: Settings) -> Routes:
    """What the service hears and says."""
    files = StrategyFiles(settings.strategies_dir)
    handle = partial(train_strategy, market=market, models=models, files=files)
    return Routes(
        service=SERVICE,
        commands=(Route(hears=TrainStrategy, says=TrainingResult, handle=handle),),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with open_bodies(settings.nats_address, settings.secrets_path, SERVICE) as models:
        yield routes(market_of(settings), models, settings)
