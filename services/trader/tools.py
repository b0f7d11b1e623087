"""Tools of the trader: prices to verify, and its own account. Nothing writes."""

from collections.abc import Sequence
from datetime import date

from contracts.account import Portfolio
from contracts.operation import GET_PORTFOLIO
from libs.llm.loop import StandardReads
from libs.llm.portfolio_tool import PortfolioTool
from libs.llm.toolbox import Toolbox
from libs.market.source import MarketData
from libs.market.tools.own import OwnTools
from libs.market.tools.toolbox import MarketTools

PRICE = "get_stock_price"
TRADER_TOOLS = frozenset({PRICE, GET_PORTFOLIO})


def trader_tools(market: MarketData, as_of: date, portfolio: Portfolio, own: OwnTools) -> Toolbox:
    """The two verification tools, and the user's own."""
    executors = (PortfolioTool(portfolio), MarketTools(market, as_of, TRADER_TOOLS), own)
    return Toolbox(executors, TRADER_TOOLS | own.names)


def standard_reads(tickers: Sequence[str]) -> StandardReads:
    """The reads of code for a trader that calls no tool: the account, and each ticker's price."""
    return [(GET_PORTFOLIO, {}), *((PRICE, {"ticker": ticker}) for ticker in tickers)]
