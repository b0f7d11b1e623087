"""A model's reply as the loop reads it: its calls, also those written as text, and its thoughts."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from contracts.types import ToolDef
from libs.llm.provider import ModelReply, StopReason, ToolCall
from libs.llm.reading.calls import ARGUMENT_KEYS, as_arguments, calls_in_text, offered_name
from libs.llm.reading.values import Unclear, fitted

THOUGHT_FIELDS = ("reasoning_content", "reasoning")
"""Where OpenAI-compatible servers put a model's thoughts."""
_THINK_TAG = re.compile(r"</?think(?:ing)?>")


def with_calls(reply: ModelReply, tools: Sequence[ToolDef]) -> ModelReply:
    """The reply with its tool calls as the tools take them.

    Calls that stand in its text, or in its thoughts where it said nothing, become tool calls; the
    turn is then sent back as if the server had read them.
    """
    if reply.stop_reason is StopReason.REFUSAL:
        return reply
    offered = {tool.name: tool for tool in tools}
    if reply.tool_calls:
        calls = tuple(_taken(call, offered) for call in reply.tool_calls)
        return reply.model_copy(update={"tool_calls": calls})
    for text in (reply.text,) if reply.text else unspoken(reply):
        written = calls_in_text(text, tools)
        if written:
            calls = tuple(_taken(call, offered) for call in written)
            return reply.model_copy(
                update={
                    "text": "",
                    "tool_calls": calls,
                    "stop_reason": StopReason.TOOL_CALLS,
                    "raw": None,
                }
            )
    return reply


def without_calls(reply: ModelReply) -> ModelReply:
    """The reply to a request without tools: where it is a call, its arguments are the answer.

    Some servers ask for a schema by a tool of their own; others call what nobody offered.
    """
    if not reply.tool_calls:
        return reply
    text = "\n".join(json.dumps(call.arguments) for call in reply.tool_calls if call.arguments)
    stop = StopReason.END if reply.stop_reason is StopReason.TOOL_CALLS else reply.stop_reason
    kept = {"text": reply.text or text, "tool_calls": (), "stop_reason": stop, "raw": None}
    return reply.model_copy(update=kept)


def unspoken(reply: ModelReply) -> Iterator[str]:
    """The texts of a reply beside what it said: its thoughts, and its text with their tags off."""
    match reply.raw:
        case dict() as raw:
            yield from _without_tags(raw.get("content"), reply)
            for name in THOUGHT_FIELDS:
                thought = raw.get(name)
                if isinstance(thought, str) and thought.strip():
                    yield thought
        case list() as blocks:
            for block in blocks:
                if isinstance(block, Mapping) and isinstance(block.get("thinking"), str):
                    yield str(block["thinking"])
                elif isinstance(block, Mapping):
                    yield from _without_tags(block.get("text"), reply)


def _without_tags(content: JsonValue, reply: ModelReply) -> Iterator[str]:
    """A text from which thoughts were cut, whole."""
    if isinstance(content, str) and content.strip() != reply.text:
        yield _THINK_TAG.sub("\n", content)


def _taken(call: ToolCall, offered: Mapping[str, ToolDef]) -> ToolCall:
    """The call under the name that was offered, with its arguments in the tool's shape."""
    tool = offered.get(call.name) or offered.get(offered_name(call.name, offered))
    if tool is None:
        return call
    named = call.model_copy(update={"name": tool.name})
    if call.error:
        return named
    arguments = _unwrapped(call.arguments, tool)
    if isinstance(arguments, str):
        return named.model_copy(update={"error": f"the arguments: {arguments}", "arguments": {}})
    try:
        fields = fitted(arguments, tool.parameters, _left_out)
    except Unclear as error:
        return named.model_copy(update={"error": f"the arguments: {error}", "arguments": {}})
    return named.model_copy(update={"arguments": fields})


def _unwrapped(arguments: Mapping[str, JsonValue], tool: ToolDef) -> Mapping[str, JsonValue] | str:
    """The arguments without a name around them: `{"arguments": {...}}`."""
    if len(arguments) == 1:
        [(key, inner)] = arguments.items()
        if key in ARGUMENT_KEYS and key not in tool.parameters.get("properties", {}):
            return as_arguments(inner)
    return arguments


def _left_out(sentence: str) -> None:
    """An argument that a tool does not take changes no result: the result alone is evidence."""
