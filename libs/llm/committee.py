"""The `scripted` provider of `deskbus demo`: the rules' answers, told and priced as a model's.

It is a provider like others: it gets the requests that a model gets, asks for tools, gives reasons
a few words, asks for more than the risk rules let pass, makes mistakes and corrects them, and
counts tokens. No model is asked and nothing is paid: its prices are invented, so that costs can be
seen. Pure but for the provider's interface: the same request has the same reply.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import orjson

from contracts.operation import Reserve
from contracts.reasons import Speaks
from contracts.types import Usage
from libs.llm.endpoints.remote import cost_usd
from libs.llm.provider import AssistantMessage, ModelReply, ModelRequest, ModelSize
from libs.llm.rules.provider import RulesProvider
from libs.llm.rules.rule_set import LABEL as RULES_LABEL
from libs.runtime.model_settings import SCRIPTED, Price

LABEL = "scripted: "
"""Begins texts that no fact stands behind, so that nobody takes them for a model's judgement."""
BYTES_PER_TOKEN = 4
OUTPUT_TOKENS_MAX = 4_000
SURER, SURE_MAX = 1.4, 0.85
"""Times the confidence of the rules, and at most."""
BOLDER, SHARE_MAX, INVESTED_MAX = 1.6, 40.0, 95.0
"""Times the rules' buys, at most for one and for all: the risk rules cut them, and say by which."""
NO_DATA = frozenset({"get_earnings", "get_earnings_calendar", "search_eu_stocks"})
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

WHYS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = MappingProxyType(
    {
        "close": (
            ("buyers still pay up for it", "each dip of the month was bought", "no sign of supply"),
            ("it has lost the line that held it", "rallies are sold", "the floor did not hold"),
        ),
        "sma_50": (
            ("momentum and trend agree", "the quarter's holders are in profit", "trend is intact"),
            ("the shorter trend has turned first", "below what most paid", "the slope is gone"),
        ),
        "macd_histogram": (
            ("the pullback has run out of sellers", "momentum turns up", "impulse is building"),
            ("momentum is fading", "each push is weaker", "the impulse is spent"),
        ),
        "change_63d_pct": (
            ("the leaders are still leading", "ahead of the others we follow", "strength persists"),
            ("it lags what we could own instead", "a quarter behind the others", "no sponsor here"),
        ),
        "rsi_14": (
            ("not stretched yet", "room before it is crowded", "a normal pace"),
            ("stretched: late buyers give it back first", "too fast to chase", "weak hands own it"),
        ),
        "volatility_3m_pct": (
            ("calm enough for a full position", "a stop has room here", "small daily swings"),
            ("it swings too much", "noise would reach any near stop", "too wild for its weight"),
        ),
        "pe_ratio": (
            ("growth is not paid for yet", "a fair price for these profits", "no premium in it"),
            ("no room for a miss at this price", "priced for perfection", "the multiple is rich"),
        ),
        "profit_growth_pct": (
            ("earnings catch up with the price", "profits lead the price", "growth is real"),
            ("profits do not confirm it", "growth has stalled", "the price ran ahead of profits"),
        ),
        "profit_margin_pct": (
            ("pricing power shows in the margin", "it keeps what it sells", "costs are in hand"),
            ("it keeps too little", "rivals eat the margin", "costs grow with sales"),
        ),
        "technical_score": (
            ("trend and momentum line up", "the chart seat votes for it", "a clean chart"),
            ("the chart seat is not convinced", "the chart is in repair", "mixed signals"),
        ),
        "fundamental_score": (
            ("the figures carry the story", "the value seat agrees", "sound accounts"),
            (
                "the value seat dissents",
                "the figures are behind the story",
                "thin support in figures",
            ),
        ),
        "sentiment": (
            ("the news flow is with us", "readers warm to it", "good news is being bought"),
            ("the news flow is against us", "readers have cooled", "good news does not lift it"),
        ),
        "measured_risk": (
            ("it sleeps well", "risk is within our usual size", "no surprise in its history"),
            ("size it for a bad week", "its history has deep holes", "half size at most"),
        ),
        "risk_score": (
            ("the risk seat has no objection", "few ways to be hurt", "risk is ordinary"),
            (
                "the risk seat asks for a near stop",
                "more ways to lose than to win",
                "handle with care",
            ),
        ),
        "quant_signal": (
            ("the quant still likes it", "the model votes yes", "signal and price agree"),
            ("the quant has turned", "the model votes no", "signal and price disagree"),
        ),
        "headline": (
            (
                "this is what holders waited for",
                "it changes the next quarter",
                "demand is confirmed",
            ),
            (
                "rarely the last bad news",
                "it will take a quarter to heal",
                "holders will ask questions",
            ),
        ),
    }
)
"""By the quantity of a fact: why it speaks for the share, and against it, in several wordings, so
that no two tickers of an answer share one. Without a number: code writes those
(docs/grounding.md)."""
OPENINGS = (
    "The account and the present prices first: without them this would be an opinion.",
    "Before anything is proposed: what is held, and what it costs now.",
    "Let us see the prices. Memory is no evidence.",
)
CLOSINGS = (
    "That is enough to answer; what is absent is said to be absent.",
    "Everything that was asked for has answered or said why it cannot.",
)
LOOSE = (
    "we would not be surprised by another 15 percent from here",
    "we see 20 percent more before the summer",
    "fair value is at least 10 percent higher",
)
"""Numbers that no fact has. They are here so that it can be seen how such a one is marked."""
SILENCE = "I would rather wait for the dust to settle before putting anything into a form."
SILENT_WEEK = (2010, 6)
"""The week in which the trader answers nothing usable, and its pipeline fails."""


class Slip(StrEnum):
    """A mistake of one answer, made on purpose.

    `loose`: a number that no fact has. `unknown_name`: a fact that does not exist, corrected when
    asked. `broken`: an answer without a field, then one about an unknown ticker, then a right one.
    `silent`: prose in place of the answer, however often it is asked.
    """

    LOOSE = "loose"
    UNKNOWN_NAME = "unknown_name"
    BROKEN = "broken"
    SILENT = "silent"


def slip_of(agent: str, day: date) -> Slip | None:
    """The mistake of an agent on a day; None on most."""
    year, week, _ = day.isocalendar()
    match agent:
        case "trader" if (year, week) == SILENT_WEEK:
            return Slip.SILENT
        case "trader" if week % 4 == 1:
            return Slip.LOOSE
        case "quant" if week % 6 == 3:
            return Slip.UNKNOWN_NAME
        case "sentiment" if week % 8 == 4:
            return Slip.BROKEN
        case _:
            return None


class CommitteeProvider(RulesProvider):
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
        """Tools in one round, then the answer; after a refused answer the next one."""
        offered = tuple(tool for tool in request.tools if tool.name not in NO_DATA)
        reply = await super().complete(request.model_copy(update={"tools": offered}))
        if request.tools:
            lines = OPENINGS if reply.tool_calls else CLOSINGS
            calls = tuple(
                call.model_copy(update={"arguments": _retold(call.arguments, Wordings())})
                for call in reply.tool_calls
            )
            text = _chosen(lines, request.agent, request.task.get("as_of"))
            reply = reply.model_copy(update={"text": text, "tool_calls": calls})
        else:
            reply = ModelReply(text=_answer(request, orjson.loads(reply.text)))
        usage = _usage(request, reply)
        cost = cost_usd(_price_of(request.model), usage)
        return reply.model_copy(update={"usage": usage.model_copy(update={"cost_usd": cost})})


def _answer(request: ModelRequest, answer: dict[str, Any]) -> str:
    """The rules' answer in the script's words, with the day's mistake in it."""
    day = request.task.get("as_of")
    body = _retold(answer, Wordings(f"{request.agent}/{day}"))
    picks = body.get("picks", ())
    if request.agent == "trader":
        asked = sum(float(pick["allocation_pct"]) for pick in picks)
        bolder = min(BOLDER, INVESTED_MAX / asked) if asked else 1
        for pick in picks:
            share = min(float(pick["allocation_pct"]) * bolder, SHARE_MAX)
            pick["allocation_pct"] = round(share, 1)
    slip = slip_of(request.agent, date.fromisoformat(day)) if isinstance(day, str) else None
    tries = sum(isinstance(message, AssistantMessage) for message in request.messages)
    match slip:
        case Slip.SILENT:
            return SILENCE
        case Slip.LOOSE if picks and picks[0]["reasons"]:
            picks[0]["reasons"][0]["why"] = _chosen(LOOSE, day)
        case Slip.UNKNOWN_NAME if tries == 0 and body["assets"][0]["reasons"]:
            body["assets"][0]["reasons"][0]["fact"] += "_whispered"
        case Slip.BROKEN if tries == 0:
            del body["market_mood"]
        case Slip.BROKEN if tries == 1 and body["tickers"]:
            body["tickers"][0]["ticker"] = "ZZZZ"
    return orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()


class Wordings:
    """The few words beside each fact of one answer: the next wording of it at every use."""

    def __init__(self, key: str = "") -> None:
        self._key = key
        self._used: Counter[tuple[str, bool]] = Counter()

    def why(self, quantity: str, *, against: bool) -> str:
        """The words for a quantity; empty for one that has none."""
        lines = WHYS.get(quantity, ((), ()))[against]
        number = self._used[quantity, against]
        self._used[quantity, against] += 1
        first = lines.index(_chosen(lines, self._key, quantity)) if lines else 0
        return lines[(first + number) % len(lines)] if lines else ""


def _retold(value: Any, wordings: Wordings, *, sale: bool = False) -> Any:
    """Under the script's label, surer, and with a few words beside each fact; what speaks for a
    `sale` speaks against the share."""
    if isinstance(value, list):
        return [_retold(item, wordings, sale=sale) for item in value]
    if isinstance(value, str):
        return value.replace(RULES_LABEL, LABEL, 1)
    if not isinstance(value, dict):
        return value
    body = {
        key: _retold(item, wordings, sale=sale or key == "sell_recommendations")
        for key, item in value.items()
    }
    if "confidence" in body:
        body["confidence"] = round(min(body["confidence"] * SURER, SURE_MAX), 2)
    if "fact" in body and not body.get("why"):
        quantity = body["fact"].partition(".")[2].partition("@")[0]
        against = (body["speaks"] == Speaks.AGAINST) is not sale
        body["why"] = wordings.why(quantity, against=against)
    return body


def _chosen(lines: Sequence[str], *key: object) -> str:
    """One of the lines, the same for the same key in every process."""
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    return lines[digest[0] % len(lines)]


def _price_of(model: str) -> Price:
    """A model that the script does not have costs what the largest does."""
    return PRICES.get(model, PRICES["scripted-large"])


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
    fixed = _tokens(request.system) + sum(_tokens(tool.model_dump_json()) for tool in request.tools)
    sizes = [_tokens(message.model_dump_json()) for message in request.messages]
    before = max(len(sizes) - 2, 0)
    return fixed, sum(sizes[:before]), sum(sizes[before:])


def _tokens(text: str) -> int:
    return -(-len(text.encode()) // BYTES_PER_TOKEN)
