"""The Anthropic Messages format, through the anthropic SDK.

Replies are read from the body itself: the SDK builds its objects without checking them, and an
HTML page or a null passes.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal

import anthropic
import orjson
from pydantic import (
    AliasPath,
    BaseModel,
    Field,
    JsonValue,
    SecretStr,
    TypeAdapter,
    ValidationError,
)

from contracts.types import ToolDef, Usage
from libs.llm.endpoints import faults
from libs.llm.endpoints.endpoint import ModelEndpoint
from libs.llm.endpoints.fields import GRAMMAR, Fields
from libs.llm.endpoints.refusals import one_line
from libs.llm.endpoints.streams import ClaudeAssembly, received
from libs.llm.endpoints.usage import TokenCount
from libs.llm.errors import RequestRefused
from libs.llm.provider import (
    AssistantMessage,
    ModelMessage,
    ModelReply,
    ModelRequest,
    StopReason,
    ToolMessage,
    UserMessage,
)
from libs.llm.reply_values import spoken, tool_call
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
    "model_context_window_exceeded": StopReason.CONTEXT_LIMIT,
    "refusal": StopReason.REFUSAL,
}
OPTIONAL: Mapping[str, Sequence[str]] = {
    GRAMMAR: (GRAMMAR, "schema", "output_config.format", "output_format"),
    "effort": ("effort",),
}
"""Fields that an endpoint may refuse, and the words by which it names them."""


class _Text(BaseModel):
    type: Literal["text"]
    text: str


class _ToolUse(BaseModel):
    type: Literal["tool_use"]
    id: str
    name: str
    input: JsonValue


class _Other(BaseModel):
    type: str


_Block = Annotated[_Text | _ToolUse | _Other, Field(union_mode="left_to_right")]


class _Usage(BaseModel):
    input_tokens: TokenCount
    output_tokens: TokenCount
    cache_read_input_tokens: TokenCount | None = 0
    cache_creation_input_tokens: TokenCount | None = 0


class _StopDetails(BaseModel):
    category: str | None = None
    explanation: str | None = None


class _Message(BaseModel):
    type: Literal["message"]
    content: list[dict[str, JsonValue]]
    blocks: list[_Block] = Field(validation_alias=AliasPath("content"))
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    usage: JsonValue = None


_MESSAGE = TypeAdapter(_Message)


def wire(
    endpoint: ModelEndpoint, key: SecretStr | None, on_answer: faults.OnAnswer | None = None
) -> "ClaudeWire":
    """The format's wire to an endpoint; `on_answer` as for `faults.client`."""
    return ClaudeWire(endpoint, key, on_answer)


class ClaudeWire:
    """One client of the SDK, which tries nothing again by itself."""

    def __init__(
        self, endpoint: ModelEndpoint, key: SecretStr | None, on_answer: faults.OnAnswer | None
    ) -> None:
        self._endpoint = endpoint
        self._fields = Fields(OPTIONAL)
        self._client = anthropic.AsyncAnthropic(
            api_key=key.get_secret_value() if key else "",
            base_url=endpoint.base_url,
            max_retries=0,
            http_client=faults.client(endpoint, on_answer),
        )

    async def close(self) -> None:
        """Close the SDK's client."""
        await self._client.close()

    async def send(self, request: ModelRequest) -> ModelReply:
        """One call of `messages.create`."""
        who = f"{self._endpoint.name} ({request.model})"
        body = parameters(request, self._endpoint, self._fields.left_out(request))
        try:
            async with (
                faults.told_by(anthropic, who, self._endpoint),
                self._client.messages.with_streaming_response.create(**body) as answer,
            ):
                content = await received(
                    who, answer.http_response, ClaudeAssembly(), self._endpoint
                )
        except RequestRefused as error:
            config = body.get("output_config", {})
            sent = [GRAMMAR] * ("format" in config) + ["effort"] * ("effort" in config)
            raise self._fields.learn(request, sent, error) from None
        return reply_of(who, content)


def parameters(
    request: ModelRequest, endpoint: ModelEndpoint, left_out: Collection[str] = ()
) -> dict[str, Any]:
    """A request in the terms of `messages.create`, with no field that the endpoint refused."""
    system: Any = request.system
    rest: dict[str, Any] = {}
    config: dict[str, Any] = {}
    effort = endpoint.capabilities.effort_for(request)
    if effort and "effort" not in left_out:
        config["effort"] = effort
    if request.tools:
        # Each round repeats the transcript; the API then reads what it has seen from its cache.
        rest = {"tools": tools_of(request.tools), "cache_control": CACHED}
        if len(orjson.dumps(rest["tools"])) + len(system.encode()) >= PREFIX_BYTES_MIN:
            # What is the same for every task is kept by itself: the next operation reads it too.
            system = [{"type": "text", "text": system, "cache_control": CACHED}]
    elif request.output_schema is not None:
        if GRAMMAR in left_out or has_maps(request.output_schema):
            system = f"{system}\n\n{asked_for(request.output_schema)}"
        else:
            schema = anthropic.transform_schema(request.output_schema)
            config["format"] = {"type": "json_schema", "schema": schema}
    if config:
        rest["output_config"] = config
    if endpoint.capabilities.stream:
        rest["stream"] = True
    return {
        "model": request.model,
        "max_tokens": endpoint.tokens_max(request),
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
            return {"role": "assistant", "content": _blocks_of(message)}
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


def _blocks_of(message: AssistantMessage) -> list[dict[str, Any]]:
    """The model's own blocks, thoughts with their signatures too, as they came; else its text and
    the calls that were read of it."""
    if isinstance(message.raw, list):
        blocks = [_block_sent_back(block) for block in message.raw if isinstance(block, dict)]
    else:
        blocks = [{"type": "text", "text": message.text}]
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
            for call in message.tool_calls
        ]
    sendable = [block for block in blocks if block.get("type") != "text" or block.get("text")]
    return sendable or [{"type": "text", "text": NOTHING_SAID}]


def _block_sent_back(block: Mapping[str, Any]) -> dict[str, Any]:
    known = {key: value for key, value in block.items() if value is not None}
    if known.get("type") == "tool_use" and not isinstance(known.get("input"), dict):
        known["input"] = {}
    return known


def reply_of(who: str, body: bytes) -> ModelReply:
    """The reply in an HTTP body. Raises ProviderFault where there is none."""
    message = faults.reply_in(who, body, _MESSAGE)
    calls = tuple(
        tool_call(block.id, block.name, block.input)
        for block in message.blocks
        if isinstance(block, _ToolUse)
    )
    stop = STOPS.get(message.stop_reason or "", StopReason.END)
    return ModelReply(
        text=spoken("".join(block.text for block in message.blocks if isinstance(block, _Text))),
        tool_calls=calls,
        stop_reason=StopReason.TOOL_CALLS if calls and stop is StopReason.END else stop,
        why=_why(message.stop_details),
        usage=_usage_of(message.usage),
        raw=list(message.content),
    )


def _why(details: _StopDetails | None) -> str:
    """The policy that a refusal rests on, where the API says it."""
    parts = (details.category, details.explanation) if details else ()
    return one_line(": ".join(part for part in parts if part))


def _usage_of(value: JsonValue) -> Usage:
    """The tokens that the API counted; none where it does not say."""
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
