"""The OpenAI Chat Completions format, through the openai SDK, at any endpoint that speaks it.

What an endpoint takes stands in its capabilities. Replies are read from the body itself: the SDK
builds its objects without checking them, and `{"choices": null}` passes.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import openai
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
from libs.llm.endpoint import Capabilities, Endpoint, OutputMode
from libs.llm.heard import spoken, tool_call
from libs.llm.provider import (
    AssistantMessage,
    ModelMessage,
    ModelReply,
    ModelRequest,
    StopReason,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from libs.llm.schema import asked_for

NO_KEY = "none"
"""The SDK wants some key; servers without keys ignore it."""
SEED_MAX = 2**31 - 1
STOPS: Mapping[str, StopReason] = {
    "length": StopReason.OUTPUT_LIMIT,
    "content_filter": StopReason.REFUSAL,
}
REASONING_FIELDS = ("reasoning_content", "reasoning_details", "reasoning")
"""Where servers put a model's thoughts, beside or instead of `<think>` in the text."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Function(_Body):
    name: str | None = None
    arguments: JsonValue = None


class _Call(_Body):
    id: str | None = None
    function: _Function


class _Said(_Body):
    model_config = ConfigDict(extra="allow")

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(_Body):
    message: _Said
    finish_reason: str | None = None


class _Completion(_Body):
    choices: list[_Choice] = Field(min_length=1)
    usage: JsonValue = None


class _Details(_Body):
    cached_tokens: int | None = Field(default=0, ge=0)
    cache_write_tokens: int | None = Field(default=0, ge=0)


class _Usage(_Body):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    prompt_tokens_details: _Details | None = None


_COMPLETION = TypeAdapter(_Completion)


def wire(endpoint: Endpoint, key: SecretStr | None, timeout_s: float) -> "OpenAIWire":
    """The format's wire to an endpoint."""
    return OpenAIWire(endpoint, key, timeout_s)


class OpenAIWire:
    """One client of the SDK, which tries nothing again by itself."""

    def __init__(self, endpoint: Endpoint, key: SecretStr | None, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        # Organisation and project of the environment belong to OpenAI and to nobody else.
        elsewhere: dict[str, Any] = (
            {} if endpoint.name == "openai" else {"organization": "", "project": ""}
        )
        self._client = openai.AsyncOpenAI(
            api_key=key.get_secret_value() if key else NO_KEY,
            admin_api_key="",
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=timeout_s,
            **elsewhere,
        )

    async def close(self) -> None:
        """Close the SDK's client."""
        await self._client.close()

    async def send(self, request: ModelRequest) -> ModelReply:
        """One call of `chat.completions.create`."""
        who = f"{self._endpoint.name} ({request.model})"
        can = self._endpoint.capabilities
        async with faults.told_by(openai, who, self._timeout_s):
            answer = await self._client.chat.completions.with_raw_response.create(
                **parameters(request, can)
            )
        return reply_of(who, answer.http_response.content)


def parameters(request: ModelRequest, can: Capabilities) -> dict[str, Any]:
    """A request in the terms of `chat.completions.create`, with no field the endpoint lacks."""
    system, rest = request.system, _tooling(request, can)
    if request.output_schema is not None:
        # Grammars bind the text; the model itself sees the schema only here.
        system = f"{system}\n\n{asked_for(request.output_schema)}"
        rest |= _bound(request.output_schema, can.output)
    if can.seed:
        rest["seed"] = request.seed % SEED_MAX
    return {
        "model": request.model,
        can.max_tokens_field: request.output_tokens_max,
        "messages": [
            {"role": "system", "content": system},
            *(turn for message in request.messages for turn in turns_of(message, can)),
        ],
        **rest,
    }


def _tooling(request: ModelRequest, can: Capabilities) -> dict[str, Any]:
    if not request.tools:
        return {}
    rest: dict[str, Any] = {"tools": tools_of(request.tools)}
    if can.tool_choice:
        rest["tool_choice"] = "auto"
    if can.parallel_calls:
        rest["parallel_tool_calls"] = True
    if can.effort_with_tools:
        rest["reasoning_effort"] = can.effort_with_tools
    return rest


def _bound(schema: Mapping[str, JsonValue], mode: OutputMode) -> dict[str, Any]:
    match mode:
        case OutputMode.JSON_SCHEMA:
            # Not strict: that knows no optional fields and no maps. We validate all the same.
            answer = {"name": "answer", "schema": dict(schema), "strict": False}
            return {"response_format": {"type": "json_schema", "json_schema": answer}}
        case OutputMode.JSON_OBJECT:
            return {"response_format": {"type": "json_object"}}
        case OutputMode.NONE:
            return {}


def tools_of(tools: Sequence[ToolDef]) -> list[dict[str, Any]]:
    """The tools as the API takes them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]


def turns_of(message: ModelMessage, can: Capabilities) -> list[dict[str, Any]]:
    """One turn of ours as messages of theirs: each tool result is one of its own."""
    match message:
        case UserMessage(text=text):
            return [{"role": "user", "content": text}]
        case AssistantMessage():
            return [_said(message, can)]
        case ToolMessage(results=results):
            return [
                {"role": "tool", "tool_call_id": result.call_id, "content": result.content}
                for result in results
            ]


def _said(message: AssistantMessage, can: Capabilities) -> dict[str, Any]:
    raw = message.raw if isinstance(message.raw, dict) else {}
    thoughts = {name: raw[name] for name in REASONING_FIELDS if raw.get(name)}
    text = raw.get("content", message.text) if can.reasoning_echo else message.text
    said = {"role": "assistant", "content": text, **(thoughts if can.reasoning_echo else {})}
    if message.tool_calls:
        # Made anew: arguments that were no JSON would trip servers that read them again.
        said["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
    return said


def reply_of(who: str, body: bytes) -> ModelReply:
    """The reply in an HTTP body. Raises ProviderFault where there is none."""
    try:
        completion = _COMPLETION.validate_json(body)
    except ValidationError as error:
        raise faults.no_reply(who, body, error) from None
    choice = completion.choices[0]
    said = choice.message
    calls = _calls_of(said.tool_calls or ())
    stop = STOPS.get(choice.finish_reason or "", StopReason.END)
    if said.refusal:
        stop = StopReason.REFUSAL
    raw: dict[str, JsonValue] = {"content": said.content}
    raw |= {
        name: value for name, value in (said.model_extra or {}).items() if name in REASONING_FIELDS
    }
    return ModelReply(
        text=spoken(said.content or said.refusal or ""),
        tool_calls=calls,
        stop_reason=StopReason.TOOL_CALLS if calls and stop is StopReason.END else stop,
        usage=_usage_of(completion.usage),
        raw=raw,
    )


def _calls_of(calls: Sequence[_Call]) -> tuple[ToolCall, ...]:
    """The calls, each with an id of its own: some servers give none, or the same to all."""
    given = [call.id for call in calls]
    unique = all(given) and len(set(given)) == len(given)
    return tuple(
        _call_of(call, str(call.id) if unique else f"call_{place}")
        for place, call in enumerate(calls)
    )


def _call_of(call: _Call, call_id: str) -> ToolCall:
    name, arguments = call.function.name or "", call.function.arguments
    try:
        if isinstance(arguments, str):
            arguments = json.loads(arguments) if arguments.strip() else None
    except (ValueError, RecursionError) as error:
        return ToolCall(id=call_id, name=name, error=f"the arguments are no JSON ({error})")
    # Nothing, in any form, is how some servers write "no arguments".
    arguments = {} if arguments is None else arguments
    return tool_call(call_id, name, arguments)


def _usage_of(value: JsonValue) -> Usage:
    """What the server counted; nothing where it does not say. Its prompt tokens hold the cached."""
    try:
        used = _Usage.model_validate(value)
    except ValidationError:
        return Usage()
    details = used.prompt_tokens_details or _Details()
    read, written = details.cached_tokens or 0, details.cache_write_tokens or 0
    return Usage(
        input_tokens=max(0, used.prompt_tokens - read - written),
        output_tokens=used.completion_tokens,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
