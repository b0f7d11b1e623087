"""The read-only market tools that a model may call: one table, one way in.

A result is a JSON-able dict with `as_of`, `newest` (the time of its newest datum, null where it
holds none) and `source`. Every datum in it carries `session` (a date, meaning that session's close)
or `known_at` (UTC), from which `newest` is found and checked centrally: a tool cannot forget to.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from contracts.types import ToolDef
from libs.market.calendar import ExchangeCalendar
from libs.market.choice import DataKind
from libs.market.errors import (
    BadMarketToolArguments,
    LookAhead,
    MarketToolNotAllowed,
    MarketToolResultTooLarge,
)
from libs.market.kinds import answered_by
from libs.market.source import MarketData
from libs.market.tools import answers, companies, shapes
from libs.market.tools.answers import RESULT_BYTES_MAX
from libs.runtime.wording import place_of, worded

T = TypeVar("T", bound=BaseModel)
_TIME_KEYS = ("session", "known_at")
_DAY_CHARS = len("2012-06-29")


@dataclass(frozen=True)
class MarketTool:
    """One row of the table: what a model sees, what it may pass, what answers it, and how."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Any, MarketData, date], Awaitable[dict[str, Any]]]
    answer: type[shapes.Sealed]
    kinds: tuple[DataKind, ...] = (DataKind.PRICES,)
    """What its answer rests on, the main one first."""

    @cached_property
    def definition(self) -> ToolDef:
        """The tool as a model sees it; the JSON Schema comes from the argument model."""
        parameters = parameters_of(self.arguments)
        return ToolDef(name=self.name, description=self.description, parameters=parameters)


class MarketTools:
    """The market tools of one agent at one as_of.

    `allowed` is the agent's allow-list; names in it that are no market tools belong to another
    executor and are passed over here.
    """

    def __init__(self, market: MarketData, as_of: date, allowed: frozenset[str]) -> None:
        self._market = market
        self._as_of = as_of
        self._tools = {tool.name: tool for tool in TOOLS if tool.name in allowed}

    def definitions(self) -> tuple[ToolDef, ...]:
        """The allowed tools as a model sees them, always in the same order."""
        return tuple(tool.definition for tool in self._tools.values())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run one tool; raises MarketError: MarketToolNotAllowed, BadMarketToolArguments and
        others."""
        tool = self._tools.get(name)
        if tool is None:
            allowed = ", ".join(self._tools) or "none"
            raise MarketToolNotAllowed(f"no tool of this name is allowed here; allowed: {allowed}")
        wish = parsed(tool.name, tool.arguments, arguments)
        payload = await tool.run(wish, self._market, self._as_of)
        return _sealed(tool, payload, self._market, self._as_of)


def newest_datum(payload: object, calendar: ExchangeCalendar) -> datetime | None:
    """The newest `session` close or `known_at` anywhere in a tool's result; None without any."""
    texts = list(_times(payload))
    moments = [datetime.fromisoformat(text) for text in texts if len(text) > _DAY_CHARS]
    last = max(
        (date.fromisoformat(text) for text in texts if len(text) <= _DAY_CHARS), default=None
    )
    if last is not None:
        # Bars of another exchange may fall on this calendar's holidays; their close is no later
        # than that of the session after. Of earlier days it is earlier.
        moments.append(calendar.close(calendar.session_on_or_after(last)))
    return max(moments, default=None)


def _times(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in _TIME_KEYS:
                yield str(inner)
            else:
                yield from _times(inner)
        columns = value.get("columns", ())
        if columns and columns[0] in _TIME_KEYS:
            yield from (str(row[0]) for row in value["rows"])
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _times(inner)


def _sealed(
    tool: MarketTool, payload: dict[str, Any], market: MarketData, as_of: date
) -> dict[str, Any]:
    newest = refuse_newer(f"the result of {tool.name}", payload, market, as_of)
    sealed = {
        "as_of": as_of.isoformat(),
        "newest": None if newest is None else newest.isoformat(),
        "source": answered_by(market, tool.kinds),
        **payload,
    }
    size = len(orjson.dumps(sealed))
    if size > RESULT_BYTES_MAX:
        raise MarketToolResultTooLarge(
            f"the result of {tool.name} has {size} bytes, over the limit of {RESULT_BYTES_MAX}; "
            f"ask for fewer days or items"
        )
    return sealed


def refuse_newer(what: str, payload: object, market: MarketData, as_of: date) -> datetime | None:
    """`newest_datum` of the payload. Raises LookAhead where it is newer than as_of's close."""
    newest = newest_datum(payload, market.calendar)
    if newest is not None and newest > market.calendar.close(as_of):
        raise LookAhead(what, newest, as_of)
    return newest


def parsed(tool: str, model: type[T], arguments: Mapping[str, Any]) -> T:
    """The arguments of a call. Raises BadMarketToolArguments."""
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        # Not str(error): it quotes the input, which may be large and is not to be trusted.
        problems = "; ".join(
            f"{place_of(problem['loc'], 'arguments')[:40]}: {worded(problem, model)[:160]}"
            for problem in error.errors(include_url=False)[:3]
        )
        raise BadMarketToolArguments(f"{tool}: {problems}; correct the arguments") from None


def parameters_of(arguments: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments as a model sees it."""
    schema: dict[str, Any] = _without_titles(arguments.model_json_schema())
    schema.pop("description", None)  # the model's docstring is for readers of the code
    return schema


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _without_titles(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema


TOOLS: tuple[MarketTool, ...] = (
    MarketTool(
        "get_stock_price",
        "Closing price of a ticker at as_of, its change from the session before in percent, its "
        "volume and currency.",
        answers.TickerArguments,
        answers.stock_price,
        shapes.StockPrice,
    ),
    MarketTool(
        "get_fundamentals",
        "Newest fundamentals known at as_of: P/E, EPS, growth, market cap, margins, debt ratio, "
        "sector. What is absent says why; `notes` name reports that are missing.",
        answers.TickerArguments,
        companies.fundamentals,
        shapes.CompanyFundamentals,
        (DataKind.FUNDAMENTALS, DataKind.PRICES),
    ),
    MarketTool(
        "get_filings",
        "What a company filed with the SEC up to as_of, newest first: form, day, period and what "
        "an 8-K is about.",
        answers.TickerArguments,
        companies.filings,
        shapes.Filings,
        (DataKind.EVENTS,),
    ),
    MarketTool(
        "get_technical_indicators",
        "RSI, MACD, Bollinger Bands, SMA, EMA, ATR, momentum and volatility at as_of. What has too "
        "few bars is null, with the reason under `absent`.",
        answers.TickerArguments,
        answers.technical_indicators,
        shapes.TechnicalIndicators,
    ),
    MarketTool(
        "get_stock_history",
        "Daily open, high, low, close and volume of the last sessions up to as_of, oldest first, "
        "adjusted for splits and dividends.",
        answers.HistoryArguments,
        answers.stock_history,
        shapes.StockHistory,
    ),
    MarketTool(
        "get_news",
        "Recent headlines about a ticker, newest first. Quoted from third parties.",
        answers.NewsArguments,
        answers.news,
        shapes.Headlines,
        (DataKind.HEADLINES,),
    ),
    MarketTool(
        "get_earnings",
        "Next earnings date of a ticker with the EPS estimate, and the last report.",
        answers.TickerArguments,
        answers.earnings,
        shapes.Earnings,
        (DataKind.CALENDAR,),
    ),
    MarketTool(
        "get_earnings_calendar",
        "All earnings reports expected within seven days after as_of.",
        answers.NoArguments,
        answers.earnings_calendar,
        shapes.EarningsCalendar,
        (DataKind.CALENDAR,),
    ),
    MarketTool(
        "search_eu_stocks",
        "Search European listings by name, ticker or sector.",
        answers.SearchArguments,
        answers.search_eu_stocks,
        shapes.EuropeanListings,
    ),
)
MARKET_TOOL_NAMES = frozenset(tool.name for tool in TOOLS)
