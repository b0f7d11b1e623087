"""Wiring of the strategy training service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from contracts.strategy_cycle import TrainStrategy
from contracts.strategy_result import TrainingResult
from libs.bus.bodies import BusBodies
from libs.bus.client import open_client
from libs.bus.route import Route, Routes
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.runtime.settings import Settings
from services.strategy_training.handler import KeepsModels, train_strategy

SERVICE = "strategy_training"


def routes(market: MarketData, models: KeepsModels) -> Routes:
    """What the service hears and says."""
    handle = partial(train_strategy, market=market, models=models)
    return Routes(
        service=SERVICE,
        commands=(Route(hears=TrainStrategy, says=TrainingResult, handle=handle),),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with open_client(settings.nats_address, settings.secrets_path, SERVICE) as client:
        yield routes(market_of(settings), BusBodies(client))
