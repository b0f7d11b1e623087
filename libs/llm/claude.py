"""The Anthropic Messages format, through the anthropic SDK.

Replies are read from the body itself: the SDK builds its objects without checking them, and an
HTML page or a null passes.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import anthropic
import orjson
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    TypeAdapter,
    ValidationError,
)

from contracts.types import ToolDef, Usage
from libs.llm import faults
from libs.llm.endpoint import Endpoint
from libs.llm.heard import spoken, tool_call
from libs.llm.provider import (
    AssistantMessage,
    ModelMessage,
    ModelReply,
    ModelRequest,
    StopReason,
    ToolMessage,
    UserMessage,
)
from libs.llm.schema import asked_for, has_maps

NOTHING_SAID = "(nothing)"
"""Stands for an empty turn, which the API does not take back."""
CACHED = {"type": "ephemeral"}
"""Kept for five minutes from its last use; written at a quarter more than its price, read at a
tenth."""
PREFIX_BYTES_MIN = 4_096
"""Tools and system prompt below about a thousand tokens are not kept, whatever is asked."""
STOPS: Mapping[str, StopReason] = {
    "max_tokens": StopReason.OUTPUT_LIMIT,
    "model_context_window_exceeded": StopReason.OUTPUT_LIMIT,
    "refusal": StopReason.REFUSAL,
}


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Text(_Body):
    type: Literal["text"]
    text: str


class _ToolUse(_Body):
    type: Literal["tool_use"]
    id: str
    name: str
    input: JsonValue


class _Other(_Body):
    type: str


_Block = Annotated[_Text | _ToolUse | _Other, Field(union_mode="left_to_right")]


class _Usage(_Body):
    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)
    cache_read_input_tokens: int | None = Field(default=0, ge=0)
    cache_creation_input_tokens: int | None = Field(default=0, ge=0)


class _Message(_Body):
    type: Literal["message"]
    content: list[_Block]
    stop_reason: str | None = None
    usage: JsonValue = None


class _Raw(_Body):
    content: list[dict[str, JsonValue]]


_MESSAGE = TypeAdapter(_Message)


def wire(endpoint: Endpoint, key: SecretStr | None, timeout_s: float) -> "ClaudeWire":
    """The format's wire to an endpoint."""
    return ClaudeWire(endpoint, key, timeout_s)


class ClaudeWire:
    """One client of the SDK, which tries nothing again by itself."""

    def __init__(self, endpoint: Endpoint, key: SecretStr | None, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._client = anthropic.AsyncAnthropic(
            api_key=key.get_secret_value() if key else "",
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=timeout_s,
        )

    async def close(self) -> None:
        """Close the SDK's client."""
        await self._client.close()

    async def send(self, request: ModelRequest) -> ModelReply:
        """One call of `messages.create`."""
        who = f"{self._endpoint.name} ({request.model})"
        async with faults.told_by(anthropic, who, self._timeout_s):
            answer = await self._client.messages.with_raw_response.create(**parameters(request))
        return reply_of(who, answer.http_response.content)


def parameters(request: ModelRequest) -> dict[str, Any]:
    """A request in the terms of `messages.create`."""
    system: Any = request.system
    rest: dict[str, Any] = {}
    if request.tools:
        # Each round repeats the transcript; the API then reads what it has seen from its cache.
        rest = {"tools": tools_of(request.tools), "cache_control": CACHED}
        if len(orjson.dumps(rest["tools"])) + len(system.encode()) >= PREFIX_BYTES_MIN:
            # What is the same for every task is kept by itself: the next operation reads it too.
            system = [{"type": "text", "text": system, "cache_control": CACHED}]
    elif request.output_schema is not None and has_maps(request.output_schema):
        system = f"{system}\n\n{asked_for(request.output_schema)}"
    elif request.output_schema is not None:
        schema = anthropic.transform_schema(request.output_schema)
        rest = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    return {
        "model": request.model,
        "max_tokens": request.output_tokens_max,
        "system": system,
        "messages": [message_of(message) for message in request.messages],
        **rest,
    }


def tools_of(tools: Sequence[ToolDef]) -> list[dict[str, Any]]:
    """The tools as the API takes them."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in tools
    ]


def message_of(message: ModelMessage) -> dict[str, Any]:
    """One turn. All results of a round go into one user turn."""
    match message:
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case AssistantMessage():
            return {"role": "assistant", "content": _said(message)}
        case ToolMessage(results=results):
            content = [
                {
                    "type": "tool_result",
                    "tool_use_id": result.call_id,
                    "content": result.content,
                    "is_error": result.is_error,
                }
                for result in results
            ]
            return {"role": "user", "content": content}


def _said(message: AssistantMessage) -> list[dict[str, Any]]:
    """The model's own blocks, thoughts with their signatures too, as they came."""
    blocks: list[dict[str, Any]] = []
    if isinstance(message.raw, list):
        blocks = [_block_sent_back(block) for block in message.raw if isinstance(block, dict)]
    elif message.text:
        blocks = [{"type": "text", "text": message.text}]
    kept = [block for block in blocks if block.get("type") != "text" or block.get("text")]
    return kept or [{"type": "text", "text": NOTHING_SAID}]


def _block_sent_back(block: Mapping[str, Any]) -> dict[str, Any]:
    known = {key: value for key, value in block.items() if value is not None}
    if known.get("type") == "tool_use" and not isinstance(known.get("input"), dict):
        known["input"] = {}
    return known


def reply_of(who: str, body: bytes) -> ModelReply:
    """The reply in an HTTP body. Raises ProviderFault where there is none."""
    try:
        message = _MESSAGE.validate_json(body)
        raw = _Raw.model_validate_json(body).content
    except ValidationError as error:
        raise faults.no_reply(who, body, error) from None
    calls = tuple(
        tool_call(block.id, block.name, block.input)
        for block in message.content
        if isinstance(block, _ToolUse)
    )
    stop = STOPS.get(message.stop_reason or "", StopReason.END)
    return ModelReply(
        text=spoken("".join(each.text for each in message.content if isinstance(each, _Text))),
        tool_calls=calls,
        stop_reason=StopReason.TOOL_CALLS if calls and stop is StopReason.END else stop,
        usage=_usage_of(message.usage),
        raw=list(raw),
    )


def _usage_of(value: JsonValue) -> Usage:
    """What the API counted; nothing where it does not say."""
    try:
        used = _Usage.model_validate(value)
    except ValidationError:
        return Usage()
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_input_tokens or 0,
        cache_write_tokens=used.cache_creation_input_tokens or 0,
    )
