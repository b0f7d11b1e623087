"""Wiring of the strategy design service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from contracts.gate import GateThresholds
from contracts.strategy import CAPITAL_MAX, CostSpec
from contracts.subjects.commands import DESIGN_STRATEGY
from libs.bus.route import Routes, on_command
from libs.llm.agent import Role
from libs.llm.prompt import Prompt
from libs.llm.provider import ModelSize, Provider
from libs.llm.registry import limits_of, providers_of
from libs.market.source import MarketData
from libs.market.sources import market_of
from libs.report.strategies.files import StrategyFiles
from libs.runtime.settings import Settings
from services.strategy_design.handler import design_strategy
from services.strategy_design.logic import Terms

PROMPTS = Path(__file__).parent / "prompts"


def routes(market: MarketData, providers: Mapping[str, Provider], settings: Settings) -> Routes:
    """The service's messages with their handlers."""
    prompt = Prompt.load(PROMPTS / "designer.md")
    role = Role("designer", "design", ModelSize.LARGE, prompt, providers, limits_of(settings))
    design = on_command(
        DESIGN_STRATEGY,
        design_strategy,
        market=market,
        role=role,
        files=StrategyFiles(settings.strategies_dir),
        gates=GateThresholds(**dict(settings.gates)),
        terms=_terms(settings),
    )
    return Routes(service="strategy_design", commands=(design,))


def _terms(settings: Settings) -> Terms:
    """The paper broker's costs, and a paper account's starting cash."""
    fee, slippage = float(settings.fee_bps), float(settings.slippage_bps)
    capital = min(float(settings.starting_cash_usd), CAPITAL_MAX)
    return Terms(CostSpec(fee_bps=fee, slippage_bps=slippage), capital)


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[Routes]:
    """The service with its adapters, as the settings say."""
    async with providers_of(settings) as providers:
        yield routes(market_of(settings), providers, settings)
