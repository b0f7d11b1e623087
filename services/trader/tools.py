"""Tools of the trader: prices to verify, and its own account. Nothing writes."""

from datetime import date

from contracts.account import Portfolio
from libs.llm.portfolio_tool import GET_PORTFOLIO, PortfolioTool
from libs.llm.toolbox import Toolbox
from libs.market.source import MarketData
from libs.market.tools.toolbox import MarketTools

TRADER_TOOLS = frozenset({"get_stock_price", GET_PORTFOLIO})


def trader_tools(market: MarketData, as_of: date, portfolio: Portfolio) -> Toolbox:
    """The two verification tools."""
    executors = (PortfolioTool(portfolio), MarketTools(market, as_of, TRADER_TOOLS))
    return Toolbox(executors, TRADER_TOOLS)
