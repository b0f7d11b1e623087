"""A model's reply as values: words without thoughts, calls with arguments that can be used."""

import re

import orjson
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
    if not isinstance(arguments, dict):
        return ToolCall(id=call_id, name=name, error="the arguments are not a JSON object")
    try:
        orjson.dumps(storable(arguments))
    except (ValueError, TypeError) as error:
        return ToolCall(id=call_id, name=name, error=f"the arguments cannot be kept: {error}")
    return ToolCall(id=call_id, name=name, arguments=arguments)
