"""A model's reply as the loop reads it: its calls, also those written as text, and its thoughts."""

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from contracts.types import ToolDef
from libs.llm.provider import ModelReply, StopReason, ToolCall
from libs.llm.reading.calls import calls_in_text, plain_name
from libs.llm.reading.values import fitted

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


def unspoken(reply: ModelReply) -> Iterator[str]:
    """The texts of a reply beside what it said: its thoughts, and its text with their tags off."""
    match reply.raw:
        case dict() as raw:
            content = raw.get("content")
            if isinstance(content, str) and content.strip() != reply.text:
                yield _THINK_TAG.sub("\n", content)
            for name in THOUGHT_FIELDS:
                thought = raw.get(name)
                if isinstance(thought, str) and thought.strip():
                    yield thought
        case list() as blocks:
            for block in blocks:
                if isinstance(block, Mapping) and isinstance(block.get("thinking"), str):
                    yield str(block["thinking"])


def _taken(call: ToolCall, offered: Mapping[str, ToolDef]) -> ToolCall:
    """The call under the name that was offered, with its arguments in the tool's shape."""
    name = call.name if call.name in offered else plain_name(call.name)
    tool = offered.get(name)
    if tool is None:
        return call
    arguments: dict[str, JsonValue] = call.arguments
    if not call.error:
        arguments = fitted(call.arguments, tool.parameters, _left_out)
    return call.model_copy(update={"name": name, "arguments": arguments})


def _left_out(sentence: str) -> None:
    """An argument that a tool does not take changes no result: the result alone is evidence."""
