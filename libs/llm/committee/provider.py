"""The `scripted` provider: replies by a script in a model's place, priced, for `deskbus demo` only.

It is a provider like others: it gets the requests that a model gets, asks for tools, answers in the
reasons grammar, makes mistakes and mends them, and counts tokens. Nobody is asked and nothing is
paid: its prices are invented, so that costs can be seen.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from types import MappingProxyType

from pydantic import JsonValue

from contracts.operation import Reserve
from contracts.types import ToolDef, Usage
from libs.llm.committee import lines
from libs.llm.committee.lines import chosen
from libs.llm.committee.seats import SEATS
from libs.llm.committee.slips import slip_of, text_of
from libs.llm.endpoints.remote import cost_usd
from libs.llm.errors import ProviderFault
from libs.llm.provider import (
    AssistantMessage,
    ModelReply,
    ModelRequest,
    ModelSize,
    StopReason,
    ToolCall,
    ToolMessage,
)
from libs.llm.rules.assessor import RULES as ASSESSOR
from libs.llm.rules.provider import RULE_SETS
from libs.llm.rules.rule_set import LABEL as RULES_LABEL
from libs.llm.rules.rule_set import Ask, EvidenceIndex
from libs.runtime.model_settings import SCRIPTED, Price

BYTES_PER_TOKEN = 4
OUTPUT_TOKENS_MAX = 4_000
SECOND_LOOK = frozenset({"get_news", "get_filings"})
"""Tools that are asked for once the prices are in."""
SKIPPED = frozenset({"get_earnings", "get_earnings_calendar", "search_eu_stocks"})
"""Tools that the demo's source has nothing for."""


def _price(input_usd: str, output_usd: str, cache_read: str, cache_write: str) -> Price:
    return Price(
        input=Decimal(input_usd),
        output=Decimal(output_usd),
        cache_read=Decimal(cache_read),
        cache_write=Decimal(cache_write),
    )


PRICES: Mapping[str, Price] = MappingProxyType(
    {
        "scripted-small": _price("0.10", "0.50", "0.01", "0.125"),
        "scripted-medium": _price("2", "10", "0.20", "2.50"),
        "scripted-large": _price("4", "20", "0.40", "5"),
    }
)
"""Invented, of the size of real ones: US dollars for a million tokens."""


class CommitteeProvider:
    """Deterministic and offline: the same request always has the same reply, and the same price."""

    name = SCRIPTED

    def model_for(self, stage: str, size: ModelSize) -> str:
        """A name that says what it is, with the size that the stage wants."""
        del stage
        return f"{SCRIPTED}-{size.value}"

    def reserve(self, request: ModelRequest) -> Reserve | None:
        """The whole request and the longest reply, at this model's price."""
        tokens = sum(_parts(request))
        worst = Usage(cache_write_tokens=tokens, output_tokens=OUTPUT_TOKENS_MAX)
        cost = cost_usd(_price_of(request.model), worst)
        return Reserve(tokens=tokens + OUTPUT_TOKENS_MAX, cost_usd=cost, provider=self.name)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Tools in one or two rounds, then the answer; after a refused answer the next one."""
        reply = _tool_round(request) if request.tools else _answer(request)
        usage = _usage(request, reply)
        cost = cost_usd(_price_of(request.model), usage)
        return reply.model_copy(update={"usage": usage.model_copy(update={"cost_usd": cost})})


def _price_of(model: str) -> Price:
    """A model that the script does not have costs what the largest does."""
    return PRICES.get(model, PRICES["scripted-large"])


def _answer(request: ModelRequest) -> ModelReply:
    seat = SEATS.get(request.agent)
    if seat is None:
        raise ProviderFault(
            f"the script has no agent {request.agent}; it has {', '.join(sorted(SEATS))}"
        )
    evidence = EvidenceIndex(request.evidence, request.facts, request.publishers)
    answer = seat(request.task, evidence)
    tries = sum(isinstance(message, AssistantMessage) for message in request.messages)
    day = _day(request)
    slip = None if day is None else slip_of(request.agent, day)
    return ModelReply(text=text_of(answer, slip, tries, day or date.min))


def _tool_round(request: ModelRequest) -> ModelReply:
    """First the account, prices and figures, then what was written; then enough."""
    offered = {tool.name for tool in request.tools}
    rounds = sum(isinstance(message, ToolMessage) for message in request.messages)
    wanted = [ask for ask in _asks(request) if ask.tool in offered and ask.tool not in SKIPPED]
    first = [ask for ask in wanted if ask.tool not in SECOND_LOOK]
    second = [ask for ask in wanted if ask.tool in SECOND_LOOK]
    key = (request.agent, request.task.get("as_of"))
    if rounds == 0 and first:
        return _asking(first, chosen(lines.OPENINGS, *key))
    if rounds == 1 and second:
        return _asking(second, chosen(lines.SECOND_LOOKS, *key))
    return ModelReply(text=chosen(lines.CLOSINGS, *key))


def _asks(request: ModelRequest) -> tuple[Ask, ...]:
    if request.agent == "assessor":
        return tuple(map(_relabelled, ASSESSOR.ask(request.task)))
    rules = RULE_SETS.get(request.agent)
    return () if rules is None else tuple(rules.ask(request.task))


def _relabelled(ask: Ask) -> Ask:
    """The call that the rules would make, under the script's own label."""
    return Ask(ask.tool, {name: _relabel(value) for name, value in ask.arguments.items()})


def _relabel(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_relabel(item) for item in value]
    return value.replace(RULES_LABEL, lines.LABEL, 1) if isinstance(value, str) else value


def _asking(asks: list[Ask], text: str) -> ModelReply:
    calls = tuple(
        ToolCall(id=f"call_{place}", name=ask.tool, arguments=dict(ask.arguments))
        for place, ask in enumerate(asks)
    )
    return ModelReply(text=text, tool_calls=calls, stop_reason=StopReason.TOOL_CALLS)


def _day(request: ModelRequest) -> date | None:
    day = request.task.get("as_of")
    return date.fromisoformat(day) if isinstance(day, str) else None


def _usage(request: ModelRequest, reply: ModelReply) -> Usage:
    """As a vendor with a prompt cache counts: the prompt and tools are read from it, and what was
    sent in the round before; a round of tools writes what is new into it."""
    fixed, sent, new = _parts(request)
    output = _tokens(reply.model_dump_json(exclude={"usage", "raw"}))
    if request.tools:
        return Usage(cache_read_tokens=fixed + sent, cache_write_tokens=new, output_tokens=output)
    return Usage(cache_read_tokens=fixed, input_tokens=sent + new, output_tokens=output)


def _parts(request: ModelRequest) -> tuple[int, int, int]:
    """Tokens of the prompt and tools, of what an earlier round sent, and of what is new."""
    fixed = _tokens(request.system) + sum(map(_tool_tokens, request.tools))
    sizes = [_tokens(message.model_dump_json()) for message in request.messages]
    before = max(len(sizes) - 2, 0)
    return fixed, sum(sizes[:before]), sum(sizes[before:])


def _tool_tokens(tool: ToolDef) -> int:
    return _tokens(tool.model_dump_json())


def _tokens(text: str) -> int:
    return -(-len(text.encode()) // BYTES_PER_TOKEN)
