"""A model's reply as values: words without thoughts, calls with arguments that can be used."""

import re

from pydantic import JsonValue

from libs.llm.json_values import storable
from libs.llm.provider import ToolCall

THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
THOUGHT_END = "</think>"


def spoken(content: str) -> str:
    """The text without the model's thoughts, also where their opening or closing tag is missing."""
    without = THOUGHT.sub("", content)
    return without.rpartition(THOUGHT_END)[2].strip()


def tool_call(call_id: str, name: str, arguments: JsonValue) -> ToolCall:
    """A model's call; `error` says why its arguments cannot be used, where they cannot."""
    try:
        # Of OpenAI's format they are a text within the reply's, and are read here first.
        kept = storable(arguments)
    except ValueError as error:
        return ToolCall(id=call_id, name=name, error=f"the arguments cannot be kept: {error}")
    if not isinstance(kept, dict):
        return ToolCall(id=call_id, name=name, error="the arguments are not a JSON object")
    return ToolCall(id=call_id, name=name, arguments=kept)
