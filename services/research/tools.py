"""What the research agents may call, and the indicators that code computes for the quant."""

from collections.abc import Sequence
from datetime import date

from pydantic import JsonValue

from contracts.account import Portfolio
from contracts.operation import CallKind
from libs.llm.portfolio_tool import GET_PORTFOLIO, PortfolioTool
from libs.llm.provider import Evidence
from libs.llm.toolbox import Toolbox
from libs.market.errors import LookAhead, MarketError, NoHistory
from libs.market.source import MarketData
from libs.market.tools import MARKET_TOOL_NAMES, MarketTools
from libs.quant.indicators import BadBars
from libs.runtime.errors import DeskError
from libs.runtime.journal import Call, Journal, Reply
from services.research.logic import is_error

INDICATORS = "get_technical_indicators"
PLANNER_TOOLS = MARKET_TOOL_NAMES | {GET_PORTFOLIO}
ANALYST_TOOLS = MARKET_TOOL_NAMES


class NoIndicators(DeskError):
    """Not one asset of the plan has prices to compute indicators from."""

    code = "no_indicators"


def planner_tools(market: MarketData, as_of: date, portfolio: Portfolio) -> Toolbox:
    """The market tools and the own account."""
    executors = (PortfolioTool(portfolio), MarketTools(market, as_of, PLANNER_TOOLS))
    return Toolbox(executors, PLANNER_TOOLS)


def analyst_tools(market: MarketData, as_of: date) -> Toolbox:
    """The eight market tools."""
    return Toolbox((MarketTools(market, as_of, ANALYST_TOOLS),), ANALYST_TOOLS)


async def indicator_evidence(
    journal: Journal, market: MarketData, as_of: date, assets: Sequence[str]
) -> tuple[Evidence, ...]:
    """The indicators of each asset as evidence; NoIndicators where none has any."""
    tools = MarketTools(market, as_of, frozenset({INDICATORS}))
    results = await journal.calls([_indicators(tools, ticker, as_of) for ticker in assets])
    if all(is_error(result) for result in results):
        raise NoIndicators(
            f"no indicators for any of {', '.join(assets)} at {as_of}: {_first_reason(results)}"
        )
    return tuple(
        Evidence(id=f"E{place}", tool=INDICATORS, result=result)
        for place, result in enumerate(results)
    )


def _indicators(tools: MarketTools, ticker: str, as_of: date) -> Call:
    async def run() -> Reply:
        try:
            return Reply(await tools.call(INDICATORS, {"ticker": ticker}))
        except LookAhead:
            raise
        except MarketError as error:
            return Reply(_error(ticker, error.code, error.message))
        except BadBars as error:
            return Reply(_error(ticker, NoHistory.code, str(error)))

    request: JsonValue = {"ticker": ticker, "as_of": as_of.isoformat()}
    return Call(CallKind.READ, f"indicators {ticker}", request, run)


def _error(ticker: str, code: str, message: str) -> JsonValue:
    return {"error": {"code": code, "message": f"{ticker}: {message}"}}


def _first_reason(results: Sequence[JsonValue]) -> str:
    first = results[0] if results else None
    error = first.get("error") if isinstance(first, dict) else None
    return str(error.get("message")) if isinstance(error, dict) else "nothing was asked for"
