"""What the two model APIs refuse, and the bodies in which they answer: the server's side.

Written from the SDKs' own types and the vendors' published references. `checked_*` raise `Refusal`
where the real API would answer 400, so that a test cannot pass on a request that it would not take.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class Refusal(Exception):
    """A request that the API does not take."""


@dataclass(frozen=True)
class Call:
    """A tool that the model asks for; `arguments` as text is sent as it is."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = ""


@dataclass(frozen=True)
class Says:
    """A reply, in no API's form. `extra` goes into the message as it is."""

    text: str = ""
    calls: Sequence[Call] = ()
    stop: str = ""
    usage: Mapping[str, Any] | None = None
    no_usage: bool = False
    blocks: Sequence[Mapping[str, Any]] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def tokens(value: object) -> int:
    """About as many as a model counts."""
    return len(json.dumps(value)) // 4


# --- Anthropic Messages -------------------------------------------------------------------------

CLAUDE_FIELDS = {
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "output_config",
    "cache_control",
    "metadata",
    "stop_sequences",
    "stream",
    "thinking",
    "service_tier",
}
EFFORTS = {"low", "medium", "high", "xhigh", "max"}


def checked_claude(body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    for name in body.keys() - CLAUDE_FIELDS:
        raise Refusal(f"{name}: Extra inputs are not permitted")
    if "anthropic-version" not in headers:
        raise Refusal("anthropic-version: header is required")
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        raise Refusal("max_tokens: Field required")
    if not isinstance(body.get("system", ""), str):
        for place, block in enumerate(body["system"]):
            if set(block) - {"type", "text", "cache_control"} or block["type"] != "text":
                raise Refusal(f"system.{place}: Input should be a text block")
    messages = body.get("messages") or []
    if not messages or messages[0]["role"] != "user":
        raise Refusal("messages: first message must use the user role")
    if messages[-1]["role"] != "user":
        raise Refusal("This model does not support assistant message prefill.")
    open_calls: set[str] = set()
    for number, message in enumerate(messages):
        open_calls = _checked_turn(number, message, open_calls, "tools" in body)
    for tool in body.get("tools", ()):
        if set(tool) - {"name", "description", "input_schema", "cache_control", "strict", "type"}:
            raise Refusal("tools.0: Extra inputs are not permitted")
        if tool["input_schema"].get("type") != "object":
            raise Refusal("tools.0.custom.input_schema.type: Field required")
    config = body.get("output_config", {})
    if config.get("effort", "low") not in EFFORTS:
        raise Refusal(
            "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'"
        )
    answer = config.get("format")
    if answer is not None:
        if set(answer) != {"type", "schema"} or answer["type"] != "json_schema":
            raise Refusal("output_config.format: Input should be a valid dictionary")
        _checked_schema(answer["schema"])


def _checked_turn(
    number: int, message: Mapping[str, Any], open_calls: set[str], has_tools: bool
) -> set[str]:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not blocks:
        raise Refusal(f"messages.{number}: all messages must have non-empty content")
    answered = {b["tool_use_id"] for b in blocks if b["type"] == "tool_result"}
    if answered != open_calls:
        raise Refusal(
            f"messages.{number}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after, or the reverse: {sorted(answered ^ open_calls)}"
        )
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            raise Refusal("messages: text content blocks must be non-empty")
        if block["type"] in {"tool_use", "tool_result"} and not has_tools:
            raise Refusal("Requests which include `tool_use` blocks must define tools")
        if block["type"] == "tool_use" and not isinstance(block["input"], dict):
            raise Refusal(f"messages.{number}: tool_use.input: Input should be a valid dictionary")
    return {b["id"] for b in blocks if b["type"] == "tool_use"}


def _checked_schema(schema: Any) -> None:
    if isinstance(schema, list):
        for each in schema:
            _checked_schema(each)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        raise Refusal("For 'object' type, 'additionalProperties' must be explicitly set to false")
    for word in ("minimum", "maximum", "minLength", "maxLength", "pattern", "maxItems"):
        if word in schema and "type" in schema:
            raise Refusal(f"output_config.format.schema: property '{word}' is not supported")
    for each in schema.values():
        _checked_schema(each)


def claude_reply(said: Says, body: Mapping[str, Any], number: int) -> dict[str, Any]:
    content: list[Any] = list(said.blocks)
    if said.text:
        content.append({"type": "text", "text": said.text, "citations": None})
    content += [
        {
            "type": "tool_use",
            "id": call.id or f"toolu_{number}_{place}",
            "name": call.name,
            "input": call.arguments,
        }
        for place, call in enumerate(said.calls)
    ]
    usage = {
        "input_tokens": tokens(body["messages"]),
        "output_tokens": tokens(content),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "service_tier": "standard",
    }
    reply = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": said.stop or ("tool_use" if said.calls else "end_turn"),
        "stop_sequence": None,
        "usage": {**usage, **(said.usage or {})},
        **said.extra,
    }
    if said.no_usage:
        del reply["usage"]
    return reply


def claude_error(kind: str, message: str, number: int) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": f"req_{number}",
    }


# --- OpenAI Chat Completions --------------------------------------------------------------------

OPENAI_FIELDS = {
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "seed",
    "stream",
    "stream_options",
}


def checked_openai(body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    del headers
    for name in body.keys() - OPENAI_FIELDS:
        raise Refusal(f"Unrecognized request argument supplied: {name}")
    if body["model"].startswith("gpt-"):
        if "max_tokens" in body:
            raise Refusal("Unsupported parameter: 'max_tokens' is not supported with this model.")
        if "tools" in body and body.get("reasoning_effort") != "none":
            raise Refusal("Function tools need reasoning_effort none in chat completions.")
    if "stream_options" in body and not body.get("stream"):
        raise Refusal("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    if "parallel_tool_calls" in body and "tools" not in body:
        raise Refusal("'parallel_tool_calls' is only allowed when 'tools' are specified.")
    answer = body.get("response_format")
    if (
        answer is not None
        and answer["type"] == "json_schema"
        and "name" not in answer["json_schema"]
    ):
        raise Refusal("Missing required parameter: 'response_format.json_schema.name'.")
    open_calls: list[str] = []
    for number, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                raise Refusal(f"messages.[{number}]: tool_call_id is not found")
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            raise Refusal(f"messages.[{number}]: tool_calls must be followed by tool messages")
        if message.get("content") is None and not message.get("tool_calls"):
            raise Refusal(f"Invalid value for 'messages.[{number}].content': expected a string")
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
        for call in message.get("tool_calls") or ():
            json.loads(call["function"]["arguments"])
    if open_calls:
        raise Refusal("tool_calls must be followed by tool messages")


def openai_reply(said: Says, body: Mapping[str, Any], number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None, "refusal": None}
    if said.calls:
        message["tool_calls"] = [
            {
                "id": call.id if call.id != "" else f"call_{number}_{place}",
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.arguments
                    if isinstance(call.arguments, str)
                    else json.dumps(call.arguments),
                },
            }
            for place, call in enumerate(said.calls)
        ]
    message |= said.extra
    prompt, written = tokens(body["messages"]), tokens(message)
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    reply = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_800_000_000,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": said.stop or ("tool_calls" if said.calls else "stop"),
            }
        ],
        "usage": {**usage, **(said.usage or {})},
    }
    if said.no_usage:
        reply["usage"] = None
    return reply


def openai_error(kind: str, message: str, number: int) -> dict[str, Any]:
    del number
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}
