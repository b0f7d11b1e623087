"""Try an endpoint by real calls that cost a cent at most together: what it can do, and how fast.

Each call is one that the desk makes too, so what works here works there.
"""

import asyncio
import hashlib
import importlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, Literal

import httpx2
from pydantic import SecretStr

from contracts.operation import Reserve
from contracts.types import ToolDef, Usage
from libs.llm.endpoints.endpoint import Capabilities, ModelEndpoint, OutputMode
from libs.llm.endpoints.fields import GRAMMAR
from libs.llm.endpoints.refusals import one_line
from libs.llm.endpoints.remote import WIRES, RemoteProvider, without_key
from libs.llm.endpoints.streams import EVENTS
from libs.llm.errors import FieldRefused, ModelError, ProviderFault, RequestRefused
from libs.llm.provider import ModelReply, ModelRequest, ModelSize, StopReason, UserMessage
from libs.llm.reading.json_text import object_of
from libs.llm.reading.replies import unspoken, with_calls
from libs.runtime.errors import DeskError
from libs.runtime.model_settings import Price
from libs.runtime.outgoing import BoundedClient

COST_USD_MAX = Decimal("0.01")
TOKENS_MAX = 20_000
"""Bounds the trial where calls are free or of unknown cost."""
TRIAL_S_MAX = 1_800.0
LIST_S_MAX = 10.0
FIELDS_MAX = 6
"""Optional fields that an endpoint may refuse one after the other."""
PART_USD = Decimal("0.002")
"""For the reply, and for the prompt, of one call of a model with a price."""
OUTPUT_TOKENS = (64, 1_024)
PROMPT_TOKENS = (300, 4_000)
READING_TOKENS = 16
"""Of the reply to a long prompt: its time is that of reading."""
MILLION = Decimal(1_000_000)

OTHER_LIMIT: Literal["max_completion_tokens"] = "max_completion_tokens"
LIST_BYTES_MAX = 1_000_000

TOOL = ToolDef(
    name="get_price",
    description="The price of one ticker.",
    parameters={
        "type": "object",
        "properties": {"ticker": {"type": "string"}},
        "required": ["ticker"],
        "additionalProperties": False,
    },
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": ["yes"]}, "number": {"type": "integer"}},
    "required": ["word", "number"],
    "additionalProperties": False,
}
COUNT = "Write the numbers from 1 to 40, separated by blanks, and nothing else."
CALLS = "Call the tool get_price twice in this turn: once for AAA and once for BBB."
ANSWER = "Set word to yes and number to 7."


class OverBudget(DeskError):
    """Another call could exceed the budget of the trial."""

    code = "budget_exhausted"


@dataclass
class Trial:
    """The findings. None: not known, because the call before it failed or none could be paid.

    `tools`: how it writes a call, `native`, `text` (the desk reads that) or `none`; `parallel`: two
    in one turn. `output` is the strictest mode that brought a valid answer; `refused` are the modes
    and fields that it does not take. Speeds are tokens a second.
    """

    model: str
    capabilities: Capabilities
    listed: tuple[str, ...] = ()
    error: ModelError | None = None
    tools: str | None = None
    tools_error: str = ""
    parallel: bool | None = None
    output: OutputMode | None = None
    refused: list[str] = field(default_factory=list)
    streams: bool | None = None
    reports_usage: bool | None = None
    shows_thoughts: bool = False
    prompt_speed: float | None = None
    output_speed: float | None = None
    seconds: float = 0.0
    used: Usage = field(default_factory=Usage)


async def tried(
    endpoint: ModelEndpoint, key: SecretStr | None, prices: Mapping[str, Price]
) -> Trial:
    """Try the endpoint's medium model. An error of the first call ends it and is in the result."""
    caller = _Caller(endpoint, key, prices)
    started = time.perf_counter()
    try:
        async with asyncio.timeout(TRIAL_S_MAX):
            await caller.run()
    except (OverBudget, TimeoutError):
        pass  # What was not tried stays None.
    caller.trial.seconds = time.perf_counter() - started
    return caller.trial


class _Caller:
    def __init__(
        self, endpoint: ModelEndpoint, key: SecretStr | None, prices: Mapping[str, Price]
    ) -> None:
        self._endpoint, self._key, self._prices = endpoint, key, prices
        model = endpoint.model_for("", ModelSize.MEDIUM)
        self.trial = Trial(model, endpoint.capabilities)
        price = None if endpoint.free else prices.get(model)
        self._output_tokens = _bounded(OUTPUT_TOKENS, price.output if price else None)
        self._prompt_tokens = _bounded(PROMPT_TOKENS, price.cache_write if price else None)

    async def run(self) -> None:
        """All calls, the most telling first."""
        trial = self.trial
        trial.listed = await listed_models(self._endpoint, self._key)
        try:
            await self._count()
        except ModelError as error:
            trial.error = error
            return
        await self._tools()
        await self._answer()
        await self._read()

    async def _count(self) -> None:
        """The first call: does it answer, in pieces, with its usage, and how fast does it write?"""
        reply, took_s = await self._first()
        trial = self.trial
        trial.reports_usage = not reply.usage_estimated
        trial.shows_thoughts = any(True for _ in unspoken(reply))
        trial.output_speed = reply.usage.output_tokens / took_s

    async def _first(self) -> tuple[ModelReply, float]:
        """The reply, where need be with another name of the output limit, or not in pieces."""
        can = self.trial.capabilities
        try:
            return await self._call(COUNT)
        except (ProviderFault, RequestRefused) as error:
            if OTHER_LIMIT in error.message and can.max_tokens_field != OTHER_LIMIT:
                self.trial.capabilities = replace(can, max_tokens_field=OTHER_LIMIT)
            elif can.stream:
                self.trial.capabilities = replace(can, stream=False)
            else:
                raise
            first = error
        try:
            return await self._call(COUNT)
        except ModelError:
            self.trial.capabilities = can
            raise first from None

    async def _tools(self) -> None:
        trial = self.trial
        try:
            reply, _ = await self._call(CALLS, tools=(TOOL,))
        except ModelError as error:
            trial.tools, trial.tools_error = "none", error.message
            return
        calls = with_calls(reply, (TOOL,)).tool_calls
        good = [call for call in calls if call.name == TOOL.name and call.arguments.get("ticker")]
        if good:
            trial.tools = "native" if reply.tool_calls else "text"
            trial.parallel = len(good) > 1
        elif reply.stop_reason is StopReason.OUTPUT_LIMIT:
            trial.tools_error = f"its reply was cut off at {self._output_tokens:,} tokens"
        else:
            trial.tools = "none"
            trial.tools_error = "the model answered in words where it was to call a tool"

    async def _answer(self) -> None:
        """The strictest mode first; each of the others only where that brings no valid answer."""
        modes = [*OutputMode]
        if self._endpoint.wire == "claude":
            modes.remove(OutputMode.JSON_OBJECT)
        for mode in modes:
            can = replace(self.trial.capabilities, output=mode)
            try:
                reply, _ = await self._call(ANSWER, can=can, output_schema=dict(SCHEMA))
            except ModelError:
                self.trial.refused.append(mode)
                continue
            if _is_valid(reply.text):
                self.trial.output = mode
                return

    async def _read(self) -> None:
        """A long prompt and a short reply: how fast does it read?"""
        # Random, so that no server has it in its cache.
        words = " ".join(secrets.token_hex(2) for _ in range(self._prompt_tokens // 3))
        can = self.trial.capabilities
        try:
            reply, took_s = await self._call(f"Answer OK. {words}", can=can, room=READING_TOKENS)
        except ModelError:
            return
        used = reply.usage
        written_s = used.output_tokens / (self.trial.output_speed or 1)
        taken = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens
        self.trial.prompt_speed = taken / max(took_s - written_s, took_s / 10)

    async def _call(
        self,
        text: str,
        *,
        can: Capabilities | None = None,
        room: int | None = None,
        **fields: Any,
    ) -> tuple[ModelReply, float]:
        """The reply and its seconds. Optional fields that are refused are left out, but a mode of
        output. Raises OverBudget before a call that the trial cannot pay."""
        endpoint = replace(
            self._endpoint,
            capabilities=can or self.trial.capabilities,
            output_tokens_max=room or self._output_tokens,
        )
        wire = importlib.import_module(WIRES[endpoint.wire]).wire
        opened = partial(wire, endpoint, self._key, self._begins)
        provider = RemoteProvider(endpoint, self._key, self._prices, opened)
        system = "You help to test a connection. Do exactly what is asked."
        request = ModelRequest(
            agent="doctor",
            model=self.trial.model,
            system=system,
            system_sha256=hashlib.sha256(system.encode()).hexdigest(),
            messages=(UserMessage(text=text),),
            **fields,
        )
        try:
            for _ in range(FIELDS_MAX):
                held = provider.reserve(request)
                self._afford(held)
                started = time.perf_counter()
                try:
                    reply = await provider.complete(request)
                except FieldRefused as error:
                    if GRAMMAR in error.fields:
                        raise
                except ModelError as error:
                    if getattr(error, "may_have_cost", False):
                        self._spend(Usage(unsorted_tokens=held.tokens, cost_usd=held.cost_usd))
                    raise
                else:
                    self._spend(reply.usage)
                    return reply, max(time.perf_counter() - started, 1e-6)
        finally:
            await provider.close()
        raise RequestRefused(f"{endpoint.name} refuses more than {FIELDS_MAX} optional fields")

    async def _begins(self, response: httpx2.Response) -> None:
        if response.is_success and self.trial.streams is None:
            self.trial.streams = response.headers.get("content-type", "").startswith(EVENTS)

    def _afford(self, held: Reserve) -> None:
        used = self.trial.used
        if used.tokens + held.tokens > TOKENS_MAX:
            raise OverBudget(f"a further call could pass {TOKENS_MAX:,} tokens")
        if (used.cost_usd or 0) + (held.cost_usd or 0) > COST_USD_MAX:
            raise OverBudget(f"a further call could pass {COST_USD_MAX} USD")

    def _spend(self, usage: Usage) -> None:
        self.trial.used += usage


async def listed_models(endpoint: ModelEndpoint, key: SecretStr | None) -> tuple[str, ...]:
    """The ids that the endpoint's list of models has; empty where it has none that can be read."""
    if endpoint.wire == "claude":
        return ()
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    try:
        async with BoundedClient(LIST_BYTES_MAX, timeout=LIST_S_MAX) as client:
            answer = await client.get(f"{endpoint.base_url}/models", headers=headers)
        rows = answer.json()["data"] if answer.is_success else ()
        ids = [one_line(row["id"], 100) for row in rows]
    except (httpx2.HTTPError, ValueError, LookupError, TypeError):
        return ()
    return tuple(without_key(name, key) for name in ids)


def _bounded(limits: tuple[int, int], usd_per_million: Decimal | None) -> int:
    """As many tokens as a part of the cent pays; the most where they are free or of no price."""
    least, most = limits
    if not usd_per_million:
        return most
    return max(least, min(most, int(PART_USD * MILLION / usd_per_million)))


def _is_valid(text: str) -> bool:
    answer = object_of(text)
    return isinstance(answer, dict) and answer.get("word") == "yes" and answer.get("number") == 7
