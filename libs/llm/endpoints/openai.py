"""The OpenAI Chat Completions format, through the openai SDK, at any endpoint that speaks it.

What an endpoint takes stands in its capabilities. Replies are read from the body itself: the SDK
builds its objects without checking them, and `{"choices": null}` passes.
"""

import json
from collections.abc import Collection, Mapping, Sequence
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
from libs.llm.endpoints import faults
from libs.llm.endpoints.endpoint import Capabilities, ModelEndpoint, OutputMode
from libs.llm.endpoints.fields import GRAMMAR, Fields
from libs.llm.endpoints.streams import OpenAIAssembly, received
from libs.llm.endpoints.usage import TokenCount
from libs.llm.errors import RequestRefused
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
from libs.llm.reading.json_text import object_of
from libs.llm.reply_values import spoken, tool_call
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
ECHOED = "extra_content"
"""What Gemini puts beside a call and wants back with it: the signature of its thoughts."""
FIELDS: Mapping[str, str] = {
    "response_format": GRAMMAR,
    **{
        name: name
        for name in (
            "stream_options",
            "seed",
            "parallel_tool_calls",
            "tool_choice",
            "reasoning_effort",
        )
    },
}
"""Fields of a request that an endpoint may refuse, and what `OPTIONAL` calls them."""
OPTIONAL: Mapping[str, Sequence[str]] = {
    GRAMMAR: (GRAMMAR, "schema", "response_format", "json mode", "structured output"),
    **{name: (name,) for name in FIELDS.values() if name != GRAMMAR},
}
"""The words by which an endpoint names what it refuses."""


class _Function(BaseModel):
    name: str | None = None
    arguments: JsonValue = None


class _Call(BaseModel):
    id: str | None = None
    function: _Function
    extra_content: JsonValue = None


class _Message(BaseModel):
    model_config = ConfigDict(extra="allow")

    content: str | list[JsonValue] | dict[str, JsonValue] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    """The one call of servers that speak the format from before `tool_calls`."""

    @property
    def calls(self) -> Sequence[_Call]:
        """All calls."""
        if self.tool_calls or self.function_call is None:
            return self.tool_calls or ()
        return (_Call(function=self.function_call),)


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: JsonValue = None


class _Details(BaseModel):
    cached_tokens: TokenCount | None = 0
    cache_write_tokens: TokenCount | None = 0


class _Usage(BaseModel):
    prompt_tokens: TokenCount
    completion_tokens: TokenCount
    total_tokens: TokenCount | None = None
    prompt_tokens_details: _Details | None = None
    num_cached_tokens: TokenCount | None = None


_COMPLETION = TypeAdapter(_Completion)


def wire(
    endpoint: ModelEndpoint, key: SecretStr | None, on_answer: faults.OnAnswer | None = None
) -> "OpenAIWire":
    """The format's wire to an endpoint; `on_answer` as for `faults.client`."""
    return OpenAIWire(endpoint, key, on_answer)


class OpenAIWire:
    """One client of the SDK, which tries nothing again by itself."""

    def __init__(
        self, endpoint: ModelEndpoint, key: SecretStr | None, on_answer: faults.OnAnswer | None
    ) -> None:
        self._endpoint = endpoint
        self._fields = Fields(OPTIONAL)
        # Organisation and project of the environment belong to OpenAI and to nobody else.
        elsewhere: dict[str, Any] = (
            {} if endpoint.name == "openai" else {"organization": "", "project": ""}
        )
        self._client = openai.AsyncOpenAI(
            api_key=key.get_secret_value() if key else NO_KEY,
            admin_api_key="",
            base_url=endpoint.base_url,
            max_retries=0,
            http_client=faults.client(endpoint, on_answer),
            **elsewhere,
        )

    async def close(self) -> None:
        """Close the SDK's client."""
        await self._client.close()

    async def send(self, request: ModelRequest) -> ModelReply:
        """One call of `chat.completions.create`."""
        who = f"{self._endpoint.name} ({request.model})"
        body = parameters(request, self._endpoint, self._fields.left_out(request))
        calls = self._client.chat.completions.with_streaming_response
        try:
            async with (
                faults.told_by(openai, who, self._endpoint),
                calls.create(**body) as answer,
            ):
                content = await received(
                    who, answer.http_response, OpenAIAssembly(), self._endpoint
                )
        except RequestRefused as error:
            sent = [FIELDS[name] for name in FIELDS if name in body]
            raise self._fields.learn(request, sent, error) from None
        return reply_of(who, content)


def parameters(
    request: ModelRequest, endpoint: ModelEndpoint, left_out: Collection[str] = ()
) -> dict[str, Any]:
    """A request in the terms of `chat.completions.create`, with no field the endpoint lacks or has
    refused."""
    can = endpoint.capabilities
    system, rest = request.system, _tooling(request, can)
    if request.output_schema is not None:
        # Grammars bind the text; the model itself sees the schema only here.
        system = f"{system}\n\n{asked_for(request.output_schema)}"
        rest |= _bound(request.output_schema, can.output)
    if can.seed:
        rest["seed"] = request.seed % SEED_MAX
    if can.effort_for(request):
        rest["reasoning_effort"] = can.effort_for(request)
    if can.stream:
        rest |= {"stream": True, "stream_options": {"include_usage": True}}
    rest = {name: rest[name] for name in rest if FIELDS.get(name) not in left_out}
    return {
        "model": request.model,
        can.max_tokens_field: endpoint.tokens_max(request),
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
            return [_assistant_turn(message, can)]
        case ToolMessage(results=results):
            return [
                {"role": "tool", "tool_call_id": result.call_id, "content": result.content}
                for result in results
            ]


def _assistant_turn(message: AssistantMessage, can: Capabilities) -> dict[str, Any]:
    raw = message.raw if isinstance(message.raw, dict) else {}
    thoughts = {name: raw[name] for name in REASONING_FIELDS if raw.get(name)}
    text = raw.get("content", message.text) if can.reasoning_echo else message.text
    turn = {"role": "assistant", "content": text, **(thoughts if can.reasoning_echo else {})}
    if message.tool_calls:
        # Made anew: arguments that were no JSON would trip servers that read them again.
        echoed = raw.get(ECHOED)
        beside = echoed if isinstance(echoed, list) else [None] * len(message.tool_calls)
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                **({ECHOED: extra} if extra is not None else {}),
            }
            for call, extra in zip(message.tool_calls, beside, strict=True)
        ]
    return turn


def reply_of(who: str, body: bytes) -> ModelReply:
    """The reply in an HTTP body. Raises ProviderFault where there is none."""
    completion = faults.reply_in(who, body, _COMPLETION)
    choice = completion.choices[0]
    message = choice.message
    calls = _calls_of(message.calls)
    stop = STOPS.get(choice.finish_reason or "", StopReason.END)
    if message.refusal:
        stop = StopReason.REFUSAL
    text = _text_of(message.content)
    raw: dict[str, JsonValue] = {
        "content": text if isinstance(message.content, dict) else message.content
    }
    extras = [call.extra_content for call in message.calls]
    raw |= {ECHOED: extras} if any(extra is not None for extra in extras) else {}
    raw |= {
        name: value
        for name, value in (message.model_extra or {}).items()
        if name in REASONING_FIELDS
    }
    return ModelReply(
        text=spoken(text or message.refusal or ""),
        tool_calls=calls,
        stop_reason=StopReason.TOOL_CALLS if calls and stop is StopReason.END else stop,
        usage=_usage_of(completion.usage),
        raw=raw,
    )


def _text_of(content: str | list[JsonValue] | dict[str, JsonValue] | None) -> str:
    """The words; of a list of blocks, as Mistral's reasoning models give it, those of its text; of
    an object, its JSON."""
    if isinstance(content, dict):
        return json.dumps(content)
    if not isinstance(content, list):
        return content or ""
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return "".join(str(block.get("text") or "") for block in blocks)


def _calls_of(calls: Sequence[_Call]) -> tuple[ToolCall, ...]:
    """The calls, each with an id of its own: some servers give none, or the same to all."""
    ids = [call.id for call in calls]
    unique = all(ids) and len(set(ids)) == len(ids)
    return tuple(
        _call_of(call, str(call.id) if unique else f"call_{place}")
        for place, call in enumerate(calls)
    )


def _call_of(call: _Call, call_id: str) -> ToolCall:
    name, arguments = call.function.name or "", call.function.arguments
    if isinstance(arguments, str):
        # Nothing, in any form, is how some servers write "no arguments".
        is_none = arguments.strip() in ("", "null", '""')
        read = {} if is_none else object_of(arguments)
        if isinstance(read, str):
            return ToolCall(id=call_id, name=name, error=f"the arguments: {read}")
        arguments = read
    return tool_call(call_id, name, {} if arguments is None else arguments)


def _usage_of(value: JsonValue) -> Usage:
    """The tokens that the server counted, if any. Its prompt tokens include the cached."""
    try:
        used = _Usage.model_validate(value)
    except ValidationError:
        return Usage()
    details = used.prompt_tokens_details or _Details()
    # What a router counts of both may overlap: no token of the prompt counts twice.
    read = min(details.cached_tokens or used.num_cached_tokens or 0, used.prompt_tokens)
    written = min(details.cache_write_tokens or 0, used.prompt_tokens - read)
    # Gemini's thoughts stand in the total alone.
    beyond = (used.total_tokens or 0) - used.prompt_tokens
    return Usage(
        input_tokens=used.prompt_tokens - read - written,
        output_tokens=max(used.completion_tokens, beyond),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
