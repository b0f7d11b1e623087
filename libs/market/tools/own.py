"""Tools of the user's that models may call: plug-ins that are asked about one ticker at as_of."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import structlog
from pydantic import JsonValue

from contracts.facts import TickerFacts
from contracts.operation import CallKind
from contracts.own_tool import TOOL_BARS_MAX, DayBar, OwnTool, ToolQuestion
from contracts.plugins import function_of
from contracts.types import ToolDef, shortened
from libs.market.errors import MarketError
from libs.market.facts import facts_of
from libs.market.source import MarketData
from libs.market.tools.answers import TickerArguments
from libs.market.tools.toolbox import parameters_of, parsed, refuse_newer
from libs.runtime.journal import Call, Journal, Reply
from libs.runtime.own_code import docstring_of, source_sha256, unparsed
from libs.runtime.own_text import NESTING_MAX
from libs.runtime.plugin_process import NOT_SET, PluginAnswer, ask_named
from libs.runtime.untrusted import clean_line

DESCRIPTION_CHARS_MAX = 300
STEP_S_MAX = 60.0
"""For all own tools of one step, the wait for a process included."""
PROBLEM_CHARS_MAX = 300
LEAVE_IT = "leave this tool out"
NO_DESCRIPTION = "its module defines no function of this name with a docstring"

log = structlog.get_logger()


class OwnToolFailed(MarketError):
    """A tool of the user's gave no valid answer."""

    code = "own_tool_failed"


class _TooDeep(Exception):
    """An answer is nested deeper than a message of the bus may be."""


async def own_tools(
    journal: Journal,
    market: MarketData,
    as_of: date,
    plugins: Sequence[str],
    allowed: Sequence[str],
) -> "OwnTools":
    """The tools of a step, put on record with their hashes: what is offered to the model. Only
    those that are `allowed` can be. Nothing of them is loaded here."""
    replies = await journal.calls([_described(plugin, allowed) for plugin in plugins])
    tools = [OwnTool.model_validate(reply) for reply in replies]
    return OwnTools(market, as_of, tools, allowed)


def _described(plugin: str, allowed: Sequence[str]) -> Call:
    async def run() -> Reply:
        if plugin in allowed:
            tool = await asyncio.to_thread(tool_of, plugin)
        else:
            tool = OwnTool(plugin=plugin, sha256="", problem=NOT_SET)
        if tool.problem:
            log.warning("market.own_tool_left_out", plugin=plugin, reason=tool.problem)
        return Reply(tool.model_dump(mode="json"))

    return Call(CallKind.READ, f"plug-in {plugin}", {"plugin": plugin}, run)


def tool_of(plugin: str) -> OwnTool:
    """A plug-in as a tool: its description is the first paragraph of its docstring."""
    module = plugin.partition(":")[0]
    doc = docstring_of(module, function_of(plugin)).partition("\n\n")[0]
    description = clean_line(" ".join(doc.split()), DESCRIPTION_CHARS_MAX)
    fault = "" if description else unparsed(module)
    problem = f"its module cannot be read: {fault}" if fault else NO_DESCRIPTION
    return OwnTool(
        plugin=plugin,
        sha256=source_sha256(module),
        description=description,
        problem="" if description else clean_line(problem, PROBLEM_CHARS_MAX),
    )


class OwnTools:
    """The user's tools of one step. They are asked one at a time; one that failed is asked no more,
    and what they may take together is limited: a step always comes to its end."""

    def __init__(
        self,
        market: MarketData,
        as_of: date,
        tools: Sequence[OwnTool] = (),
        allowed: Sequence[str] = (),
    ) -> None:
        self._market = market
        self._as_of = as_of
        self._allowed = allowed
        self._tools = {tool.name: tool for tool in tools if tool.description}
        self._failed: set[str] = set()
        self._left_s = STEP_S_MAX
        self._turn = asyncio.Lock()

    @property
    def names(self) -> frozenset[str]:
        """Those that are offered."""
        return frozenset(self._tools)

    def definitions(self) -> Sequence[ToolDef]:
        """The tools as a model sees them: each takes a ticker and nothing else."""
        return [
            ToolDef(
                name=name,
                description=f"{tool.description} (A tool of the desk's owner.)",
                parameters=parameters_of(TickerArguments),
            )
            for name, tool in self._tools.items()
        ]

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """What the tool says of the ticker. Raises OwnToolFailed, and MarketError where the ticker
        has no price at as_of."""
        tool = self._tools[name]
        ticker = parsed(name, TickerArguments, arguments).ticker
        question = await question_of(self._market, ticker, self._as_of)
        asked = question.model_dump(mode="json")
        refuse_newer(f"what {name} is given", asked, self._market, self._as_of)
        async with self._turn:
            values = await self._answer(tool, asked)
        return {
            "ticker": ticker,
            "as_of": self._as_of.isoformat(),
            "session": self._as_of.isoformat(),
            "source": f"plug-in {tool.plugin}",
            "plugin": tool.plugin,
            "values": values,
        }

    async def _answer(self, tool: OwnTool, asked: JsonValue) -> dict[str, JsonValue]:
        if tool.name in self._failed:
            raise OwnToolFailed(f"{tool.name} has failed in this step; {LEAVE_IT}")
        if self._left_s <= 0:
            why = f"own tools have {STEP_S_MAX:g} s in a step, and they are used up"
            raise OwnToolFailed(f"{why}; answer with what you have")
        began = time.monotonic()
        try:
            said = await ask_named(tool.plugin, [asked], self._allowed, self._left_s)
        finally:
            self._left_s -= time.monotonic() - began
        values = answered(said.answers[0])
        if said.sha256 != tool.sha256 and not isinstance(values, str):
            values = "its code was changed within this step"
        if not isinstance(values, str):
            return values
        self._failed.add(tool.name)
        log.warning("market.own_tool_failed", plugin=tool.plugin, reason=values)
        raise OwnToolFailed(f"{tool.name}: {clean_line(values, PROBLEM_CHARS_MAX)}; {LEAVE_IT}")


def answered(answer: PluginAnswer) -> dict[str, JsonValue] | str:
    """What a tool says, or why that does not count."""
    if answer.problem:
        return answer.problem
    if not isinstance(answer.value, dict):
        return f"it returned {shortened(repr(answer.value), 60)}, and not a dict"
    try:
        return {_line(name): _cleaned(value, 1) for name, value in answer.value.items()}
    except _TooDeep:
        return f"its answer is nested more than {NESTING_MAX} levels deep"


def _cleaned(value: JsonValue, depth: int) -> JsonValue:
    """The value with nothing hidden in its texts, which may be those of strangers."""
    if depth > NESTING_MAX:
        raise _TooDeep
    if isinstance(value, str):
        return _line(value)
    if isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_line(name): _cleaned(item, depth + 1) for name, item in value.items()}
    return value


def _line(text: str) -> str:
    return clean_line(text, len(text))


async def question_of(market: MarketData, ticker: str, as_of: date) -> ToolQuestion:
    """All that a tool is given: the ticker's facts and its bars up to as_of. Raises MarketError
    where it has no price there."""
    facts: TickerFacts = await facts_of(market, ticker, as_of, None, without_events=True)
    bars = await market.bars(ticker, as_of, TOOL_BARS_MAX)
    fields: tuple[str, ...] = tuple(DayBar.model_fields)
    rows: list[dict[str, Any]] = [dict(zip(fields, row, strict=True)) for row in bars.iter_rows()]
    return ToolQuestion(
        as_of=as_of,
        ticker=ticker,
        name=facts.name,
        currency=facts.currency,
        sector=facts.sector,
        price=float(facts.price),
        measured_risk=facts.measured_risk,
        atr=None if facts.atr is None else float(facts.atr),
        report_on=None if facts.report is None else facts.report.on,
        bars=tuple(DayBar(**row) for row in rows),
        events=facts.events,
    )
