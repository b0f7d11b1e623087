"""A provider behind an endpoint: prices its calls, knows its key, and lets nobody see that.

The SDK is imported at the first call, in a thread: that takes seconds, and a desk without keys
never pays for it.
"""

import asyncio
import importlib
from collections.abc import Callable, Mapping
from decimal import ROUND_UP, Decimal

import orjson
import structlog
from pydantic import SecretStr, ValidationError

from contracts.operation import Reserve
from contracts.types import Usage
from libs.llm.endpoints import usage
from libs.llm.endpoints.endpoint import ModelEndpoint, Wire
from libs.llm.errors import (
    ModelError,
    ProviderFault,
    ProviderNotUsable,
    ReplyTooLarge,
)
from libs.llm.json_values import storable
from libs.llm.provider import ModelReply, ModelRequest, ModelSize
from libs.runtime.model_settings import Price

WIRES: Mapping[str, str] = {
    "claude": "libs.llm.endpoints.claude",
    "openai": "libs.llm.endpoints.openai",
    "command": "libs.llm.endpoints.command",
}
"""The module of each wire format; it has a function `wire`."""
KEY_CHARS_MIN = 8
"""Anything shorter is no key, and would be found in every text."""
REPLY_BYTES_MAX = 200_000
"""A reply is one entry of the journal and must leave room for the others in its message."""
HIDDEN = "[key]"
CENT_PARTS = Decimal("0.00000001")
MILLION = Decimal(1_000_000)
FREE = Price.model_validate({"input": 0, "output": 0})

log = structlog.get_logger()


class RemoteProvider:
    """Answers through one endpoint. `open_wire` is for tests; else the endpoint's SDK is used."""

    def __init__(
        self,
        endpoint: ModelEndpoint,
        key: SecretStr | None,
        prices: Mapping[str, Price],
        open_wire: Callable[[], Wire] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._key = key
        self._prices = prices
        self._open_wire = open_wire or self._load
        self._opening = asyncio.Lock()
        self._wire: Wire | None = None

    @property
    def name(self) -> str:
        """The name that pipelines call it by."""
        return self._endpoint.name

    def model_for(self, stage: str, size: ModelSize) -> str:
        """The model for a stage; raises ProviderNotUsable where none is set."""
        model = self._endpoint.model_for(stage, size)
        if not model:
            raise ProviderNotUsable(
                f"{self.name} has no model for {stage}: set {size} or {stage} in "
                f"[providers.{self.name}.models] of deskbus.toml"
            )
        return model

    def reserve(self, request: ModelRequest) -> Reserve:
        """The whole request and the longest reply, at this model's price; the cost is None where
        that is unknown."""
        tokens = usage.estimated_tokens(_sent_bytes(request))
        price = self._price(request.model)
        output_tokens = self._endpoint.tokens_max(request)
        longest = Usage(output_tokens=output_tokens)
        worst = price and max(
            cost_usd(price, longest + Usage(input_tokens=tokens)),
            cost_usd(price, longest + Usage(cache_write_tokens=tokens)),
        )
        return Reserve(tokens=tokens + output_tokens, cost_usd=worst, provider=self.name)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One call, with its usage and cost; `usage_estimated` of the reply says why the usage is
        not as the endpoint reported it, where that is so."""
        price = self._price(request.model)
        wire = await self._opened()
        try:
            answered = await wire.send(request)
            reply = self._without_key(answered.model_copy(update={"usage": Usage()}))
        except ModelError as error:
            error.args = (self._hidden(error.message),)
            raise
        except ValidationError as error:
            raise ProviderFault(
                f"{self.name}: the reply cannot be kept: {error.errors()[0]['msg']}",
                may_have_cost=True,
            ) from None
        used, why = usage.checked(
            answered.usage,
            sent_bytes=_sent_bytes(request),
            received_bytes=_received_bytes(reply),
            output_tokens_max=self._endpoint.tokens_max(request),
        )
        if why:
            log.warning("llm.usage_estimated", provider=self.name, model=request.model, why=why)
        cost = answered.usage.cost_usd or (price and cost_usd(price, used))
        paid = used.model_copy(update={"cost_usd": cost})
        return reply.model_copy(update={"usage": paid, "usage_estimated": why})

    async def unproven(self) -> ModelError | None:
        """Why its program may not be asked, tried now; None where it is none, or reaches nothing of
        the desk."""
        if self._endpoint.command is None:
            return None
        from libs.llm.endpoints.command import unproven  # noqa: PLC0415 - for programs alone

        return await unproven(self._endpoint)

    async def close(self) -> None:
        """Give the connections back; a later call opens new ones."""
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    def _price(self, model: str) -> Price | None:
        """None where nobody knows it."""
        return FREE if self._endpoint.free else self._prices.get(model)

    async def _opened(self) -> Wire:
        async with self._opening:
            if self._wire is None:
                self._wire = await asyncio.to_thread(self._open_wire)
            return self._wire

    def _load(self) -> Wire:
        module = importlib.import_module(WIRES[self._endpoint.wire])
        wire: Wire = module.wire(self._endpoint, self._key)
        return wire

    def _without_key(self, reply: ModelReply) -> ModelReply:
        """The reply, where an endpoint that echoes its request has put the key into it."""
        try:
            body = orjson.dumps(storable(reply.model_dump(mode="json"))).decode()
        except (ValueError, TypeError) as error:
            raise ProviderFault(
                f"{self.name}: the reply cannot be kept: {error}", may_have_cost=True
            ) from error
        if len(body.encode()) > REPLY_BYTES_MAX:
            raise ReplyTooLarge(
                f"lower output_tokens_max in [providers.{self.name}] of deskbus.toml, or use a "
                f"model that answers more briefly; {self.name}: the reply has {len(body):,} "
                f"characters, the limit is {REPLY_BYTES_MAX:,} bytes"
            )
        hidden = self._hidden(body)
        if hidden != body:
            log.warning("llm.key_echoed", provider=self.name)
        # What goes on is what was checked, and nothing else.
        return ModelReply.model_validate_json(hidden)

    def _hidden(self, text: str) -> str:
        return without_key(text, self._key)


def without_key(text: str, key: SecretStr | None) -> str:
    """The text without the key in it."""
    secret = key.get_secret_value() if key else ""
    return text.replace(secret, HIDDEN) if len(secret) >= KEY_CHARS_MIN else text


def cost_usd(price: Price, used: Usage) -> Decimal:
    """The cost of the tokens, rounded up to a hundred-millionth of a dollar."""
    whole_input = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens
    is_long = price.long_from_tokens is not None and whole_input > price.long_from_tokens
    taken = (
        used.input_tokens * price.input
        + used.cache_read_tokens * price.cache_read
        + used.cache_write_tokens * price.cache_write
    )
    output_cost = used.output_tokens * price.output
    if is_long:
        taken, output_cost = taken * price.long_input_factor, output_cost * price.long_output_factor
    return ((taken + output_cost) / MILLION).quantize(CENT_PARTS, rounding=ROUND_UP)


def _sent_bytes(request: ModelRequest) -> int:
    """About what travels; `task` and `evidence` do not, they stand in the messages."""
    return len(request.model_dump_json(exclude={"task", "evidence"}).encode())


def _received_bytes(reply: ModelReply) -> int:
    """About what came: the reply as it is read, or with the thoughts as the endpoint wrote it."""
    read = reply.model_dump_json(exclude={"raw", "usage"})
    return max(len(read.encode()), len(orjson.dumps(reply.raw)))
