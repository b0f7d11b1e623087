"""Wiring of the strategy service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from contracts.gate import GateThresholds
from contracts.strategy import CAPITAL_MAX, CostSpec
from contracts.subjects.commands import BACKTEST_STRATEGY, DESIGN_STRATEGY, TRAIN_STRATEGY
from libs.bus.bodies import open_bodies
from libs.bus.route import Route, Routes, on_command
from libs.llm.agent import Role
from libs.llm.prompt import Prompt
from libs.llm.provider import ModelSize, Provider
from libs.llm.registry import limits_of, providers_of
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.report.strategies.files import StrategyFiles
from libs.runtime.settings import Settings
from services.strategy.handler import (
    ModelStore,
    backtest_strategy,
    design_strategy,
    train_strategy,
)
from services.strategy.logic import DesignTerms

SERVICE = "strategy"
PROMPTS = Path(__file__).parent / "prompts"


def routes(
    market: MarketData, providers: Mapping[str, Provider], models: ModelStore, settings: Settings
) -> Routes:
    """The service's messages with their handlers."""
    files = StrategyFiles(settings.strategies_dir)
    train = on_command(TRAIN_STRATEGY, train_strategy, market=market, models=models, files=files)
    test = on_command(
        BACKTEST_STRATEGY, backtest_strategy, market=market, models=models, files=files
    )
    design = designing(market, providers, settings)
    return Routes(service=SERVICE, commands=(design, train, test))


def designing(market: MarketData, providers: Mapping[str, Provider], settings: Settings) -> Route:
    """The command that asks a model, with its handler."""
    prompt = Prompt.load(PROMPTS / "designer.md")
    return on_command(
        DESIGN_STRATEGY,
        design_strategy,
        market=market,
        role=Role("designer", "design", ModelSize.LARGE, prompt, providers, limits_of(settings)),
        files=StrategyFiles(settings.strategies_dir),
        gates=GateThresholds(**dict(settings.gates)),
        terms=_terms(settings),
    )


def _terms(settings: Settings) -> DesignTerms:
    """The paper broker's costs, and a paper account's starting cash."""
    fee, slippage = float(settings.broker.fee_bps), float(settings.broker.slippage_bps)
    capital = min(float(settings.broker.starting_cash_usd), CAPITAL_MAX)
    return DesignTerms(CostSpec(fee_bps=fee, slippage_bps=slippage), capital)


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with (
        providers_of(settings) as providers,
        open_bodies(settings.nats_address, settings.secrets_path, SERVICE) as models,
    ):
        yield routes(market_of(settings), providers, models, settings)
