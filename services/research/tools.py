"""Tools of the research agents, and the data that code reads for them: indicators and facts."""

from collections.abc import Mapping, Sequence
from datetime import date

from pydantic import JsonValue

from contracts.account import Portfolio
from contracts.facts import TickerFacts
from contracts.operation import GET_PORTFOLIO, CallKind
from contracts.types import Failure, ToolDef
from libs.llm.loop import StandardReads
from libs.llm.portfolio_tool import PortfolioTool
from libs.llm.provider import ToolEvidence, is_error
from libs.llm.toolbox import Toolbox
from libs.market.errors import UNPRICED, LookAhead, MarketError, NoHistory
from libs.market.exits import AccountExits
from libs.market.facts import facts_of
from libs.market.source import MarketData
from libs.market.tools.own import OwnTools
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from libs.quant.indicators import BadBars
from libs.runtime.errors import DeskError, few
from libs.runtime.journal import Call, Journal, Reply

INDICATORS = "get_technical_indicators"
PLANNER_TOOLS = MARKET_TOOL_NAMES | {GET_PORTFOLIO}
ANALYST_TOOLS = MARKET_TOOL_NAMES
STANDARD_READS: Mapping[str, Mapping[str, JsonValue]] = {
    "get_stock_price": {},
    INDICATORS: {},
    "get_stock_history": {"days": 63},
    "get_fundamentals": {},
    "get_news": {},
    "get_earnings": {},
}
"""What code reads of each ticker for an analyst that calls no tool."""
PROBE_TOOLS: Mapping[str, Mapping[str, JsonValue]] = {
    INDICATORS: {},
    "get_stock_history": {"days": 63},
    "get_fundamentals": {},
    "get_earnings": {},
}
"""What a probe is shown of each ticker: as much as the analyst of a masked arm can see."""


class TickerLimit(DeskError):
    """The analyst has reached its limit of researched tickers."""

    code = "ticker_limit"


class NoIndicators(DeskError):
    """No asset of the plan has prices for indicators."""

    code = "no_indicators"


def planner_tools(market: MarketData, as_of: date, portfolio: Portfolio, own: OwnTools) -> Toolbox:
    """The market tools, the account, and the user's own tools."""
    executors = (PortfolioTool(portfolio), MarketTools(market, as_of, PLANNER_TOOLS), own)
    return Toolbox(executors, PLANNER_TOOLS | own.names)


def analyst_tools(market: MarketData, as_of: date, tickers_max: int, own: OwnTools) -> Toolbox:
    """The market tools and the user's own, for at most `tickers_max` tickers."""
    allowed = ANALYST_TOOLS | own.names
    every = Toolbox((MarketTools(market, as_of, ANALYST_TOOLS), own), allowed)
    return Toolbox((FewTickers(every, tickers_max),), allowed)


def standard_reads(tickers: Sequence[str]) -> StandardReads:
    """The calls of `STANDARD_READS` for each ticker, in order."""
    return [
        (tool, {"ticker": ticker, **more})
        for ticker in tickers
        for tool, more in STANDARD_READS.items()
    ]


class FewTickers:
    """Tools that answer for the first `tickers_max` tickers asked about, then for no other one.

    So a digest of 25 costs the data calls of the few that are worth a closer look. Tools that
    name no ticker always answer. An operation that goes on after a crash counts from 0: what the
    journal answers does not come here.
    """

    def __init__(self, tools: Toolbox, tickers_max: int) -> None:
        self._tools = tools
        self._tickers_max = tickers_max
        self._asked: dict[str, None] = {}

    def definitions(self) -> Sequence[ToolDef]:
        """The tools behind it."""
        return self._tools.definitions

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The tool's answer; TickerLimit for a ticker too many."""
        ticker = arguments.get("ticker")
        if isinstance(ticker, str):
            self._admit(ticker.upper())
        return await self._tools.call(name, arguments)

    def _admit(self, ticker: str) -> None:
        if ticker not in self._asked and len(self._asked) >= self._tickers_max:
            raise TickerLimit(
                f"{self._tickers_max} tickers were looked into already, and no more are allowed; "
                f"answer with {few([*self._asked])}"
            )
        self._asked[ticker] = None


async def indicator_evidence(
    journal: Journal, market: MarketData, as_of: date, assets: Sequence[str]
) -> tuple[ToolEvidence, ...]:
    """The indicators of each asset as evidence; NoIndicators where none has any, SourceUnavailable
    where one may have some and the source cannot be reached."""
    tools = MarketTools(market, as_of, frozenset({INDICATORS}))
    results = await journal.calls([_indicators(tools, ticker, as_of) for ticker in assets])
    if all(is_error(result) for result in results):
        raise NoIndicators(
            f"no indicators for any of {', '.join(assets)} at {as_of}: {_first_reason(results)}"
        )
    return tuple(
        ToolEvidence(id=f"E{place}", tool=INDICATORS, result=result)
        for place, result in enumerate(results)
    )


async def probe_evidence(
    journal: Journal, market: MarketData, as_of: date, tickers: Sequence[str]
) -> tuple[ToolEvidence, ...]:
    """The answers about each ticker of the tools that show figures, errors among them."""
    tools = MarketTools(market, as_of, frozenset(PROBE_TOOLS))
    asked = [
        (tool, {"ticker": ticker, **more})
        for ticker in tickers
        for tool, more in PROBE_TOOLS.items()
    ]
    results = await journal.calls([_answer(tools, tool, wish) for tool, wish in asked])
    return tuple(
        ToolEvidence(id=f"E{place}", tool=tool, result=result)
        for place, ((tool, _), result) in enumerate(zip(asked, results, strict=True))
    )


async def facts_read(
    journal: Journal,
    market: MarketData,
    as_of: date,
    tickers: Sequence[str],
    exits: AccountExits,
) -> dict[str, TickerFacts | Failure]:
    """The market source's facts of each ticker, or why it has no price of it; with how the
    account's exit rules judge a buy.

    Raises what says nothing about a ticker, such as a source that is away.
    """
    results = await journal.calls([_facts(market, ticker, as_of, exits) for ticker in tickers])
    return {
        ticker: Failure.model_validate(result["error"])
        if isinstance(result, dict) and is_error(result)
        else TickerFacts.model_validate(result)
        for ticker, result in zip(tickers, results, strict=True)
    }


def _facts(market: MarketData, ticker: str, as_of: date, exits: AccountExits) -> Call:
    async def run() -> Reply:
        terms = await exits.of(ticker)
        try:
            facts = await facts_of(
                market, ticker, as_of, terms, terms_note=exits.note, without_events=True
            )
            return Reply(facts.model_dump(mode="json"))
        except UNPRICED as error:
            return Reply(_error(ticker, error.code, error.message))

    request: JsonValue = {"ticker": ticker, "as_of": as_of.isoformat()}
    return Call(CallKind.READ, f"facts {ticker}", request, run)


def _answer(tools: MarketTools, tool: str, wish: Mapping[str, JsonValue]) -> Call:
    async def run() -> Reply:
        return Reply(await tools.call(tool, wish))

    def failed(error: DeskError) -> Reply:
        if isinstance(error, LookAhead) or not isinstance(error, MarketError):
            raise error
        return Reply(_error(str(wish["ticker"]), error.code, error.message))

    return Call(CallKind.TOOL, tool, {"arguments": dict(wish)}, run, failed=failed)


def _indicators(tools: MarketTools, ticker: str, as_of: date) -> Call:
    async def run() -> Reply:
        try:
            return Reply(await tools.call(INDICATORS, {"ticker": ticker}))
        except BadBars as error:
            raise NoHistory(str(error)) from error

    def failed(error: DeskError) -> Reply:
        if isinstance(error, LookAhead) or not isinstance(error, MarketError):
            raise error
        return Reply(_error(ticker, error.code, error.message))

    request: JsonValue = {"ticker": ticker, "as_of": as_of.isoformat()}
    return Call(CallKind.READ, f"indicators {ticker}", request, run, failed=failed)


def _error(ticker: str, code: str, message: str) -> JsonValue:
    return {"error": {"code": code, "message": f"{ticker}: {message}"}}


def _first_reason(results: Sequence[JsonValue]) -> str:
    first = results[0] if results else None
    error = first.get("error") if isinstance(first, dict) else None
    return str(error.get("message")) if isinstance(error, dict) else "nothing was asked for"
