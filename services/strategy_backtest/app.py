"""Wiring of the strategy backtest service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from contracts.strategy_cycle import BacktestStrategy
from contracts.strategy_result import BacktestResult
from libs.bus.bodies import BusBodies
from libs.bus.client import open_client
from libs.bus.route import Route, Routes
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.runtime.settings import Settings
from services.strategy_backtest.handler import ReadsModels, backtest_strategy

SERVICE = "strategy_backtest"


def routes(market: MarketData, models: ReadsModels) -> Routes:
    """What the service hears and says."""
    handle = partial(backtest_strategy, market=market, models=models)
    return Routes(
        service=SERVICE,
        commands=(Route(hears=BacktestStrategy, says=BacktestResult, handle=handle),),
    )


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with open_client(settings.nats_address, settings.secrets_path, SERVICE) as client:
        yield routes(market_of(settings), BusBodies(client))
