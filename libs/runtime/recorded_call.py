"""A recorded call in a few words: what was asked, what came back, what went wrong.

For audit events and logs, which must stay small and may be read by models: texts of strangers and
of models are cleaned, and everything is bounded. The whole call stays in the journal.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import JsonValue

from contracts.operation import CallKind, JournalEntry
from libs.runtime.untrusted import clean_line

VALUE_CHARS_MAX = 120
"""Of one argument; an object or a list is told as JSON."""
ARGUMENTS_MAX = 8
NAME_CHARS_MAX = 40
RESULT_CHARS_MAX = 300
FIELDS_MAX = 30
"""Of a result."""
ERROR_CHARS_MAX = 300
LABEL_CHARS_MAX = 60
TOOL_CALLS_MAX = 12


def outline(entry: JournalEntry) -> dict[str, Any]:
    """Of a tool's call or a read: `arguments` and `result`; of a model's turn: `request`, `reply`,
    `tool_calls`, `stop_reason` and `usage_estimated` (why its tokens are an estimate, empty where
    the endpoint counted them); of all: `error`, empty where there was none."""
    error = _error(entry)
    if entry.kind is CallKind.MODEL:
        return {**_turn(entry), "error": error}
    request = mapping(entry.request)
    values = request.get("arguments", {}) if entry.kind is CallKind.TOOL else request
    return {
        "arguments": arguments(values),
        "result": "" if error else _line(entry.reply, RESULT_CHARS_MAX),
        "error": error,
    }


def arguments(values: object) -> dict[str, JsonValue]:
    """The first arguments by name, each bounded; nothing where they are no object."""
    first = list(mapping(values).items())[:ARGUMENTS_MAX]
    return {_clean(str(name), NAME_CHARS_MAX): _value(value) for name, value in first}


def label(name: str, about: str) -> str:
    """A call with what it was asked about: `get_stock_price(AAPL)`."""
    return f"{name}({about})" if about else name


def about(*calls: object) -> str:
    """The values of one or more calls' arguments in one line, each once."""
    values = (_text(value) for call in calls for value in arguments(call).values())
    return _clean(", ".join(dict.fromkeys(values)), LABEL_CHARS_MAX)


def called(entry: JournalEntry) -> str:
    """A call's name; a tool's with what it was asked about."""
    values = mapping(entry.request).get("arguments") if entry.kind is CallKind.TOOL else None
    return label(entry.name, about(values))


def _turn(entry: JournalEntry) -> dict[str, Any]:
    request, reply = mapping(entry.request), mapping(entry.reply)
    wanted = [call for call in items(reply.get("tool_calls")) if isinstance(call, dict)]
    first = wanted[:TOOL_CALLS_MAX]
    calls = [label(_name(call), about(call.get("arguments"))) for call in first]
    more = [f"and {len(wanted) - len(first)} more"] if wanted[len(first) :] else []
    return {
        "request": _new_in(request),
        "reply": _clean(str(reply.get("text", "")), RESULT_CHARS_MAX),
        "tool_calls": [*calls, *more],
        "stop_reason": _text(_value(reply.get("stop_reason", ""))),
        "usage_estimated": _clean(str(reply.get("usage_estimated", "")), ERROR_CHARS_MAX),
    }


def _new_in(request: Mapping[str, Any]) -> str:
    """The new part of a request: how long a message or how many results, never a word of them."""
    if "again" in request:
        return f"again, after {request['again']} without a reply"
    parts = ["an answer" if request.get("output") else f"{len(items(request.get('tools')))} tools"]
    for message in map(mapping, items(request.get("messages"))):
        if message.get("role") == "tool":
            parts.append(f"{len(items(message.get('sha256')))} results")
        elif message.get("role") == "user":
            parts.append(f"a message of {message.get('bytes', 0):,} bytes")
    return _clean("; ".join(parts), RESULT_CHARS_MAX)


def _error(entry: JournalEntry) -> str:
    fault = entry.fault
    if not fault:
        return ""
    return _clean(f"{fault.get('code', '')}: {fault.get('message', '')}", ERROR_CHARS_MAX)


def _line(value: JsonValue, chars_max: int) -> str:
    if not isinstance(value, dict):
        return _clean(_text(_value(value)), chars_max)
    fields = [f"{name} {_text(_value(cell))}" for name, cell in list(value.items())[:FIELDS_MAX]]
    more = ["…"] if len(value) > FIELDS_MAX else []
    return _clean(", ".join([*fields, *more]), chars_max)


def _clean(text: str, chars_max: int) -> str:
    """On one line, with … where it was longer."""
    # Cleaning looks at every character, and a text may have a million; runs of hidden ones shrink.
    line = clean_line(text[: 2 * chars_max], 2 * chars_max)
    if len(line) <= chars_max and len(text) <= 2 * chars_max:
        return line
    return line[: chars_max - 1].rstrip() + "…"


def _value(value: Any) -> JsonValue:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return _clean(text, VALUE_CHARS_MAX)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _name(call: Mapping[str, Any]) -> str:
    return _clean(str(call.get("name", "")), NAME_CHARS_MAX)


def mapping(value: object) -> Mapping[str, Any]:
    """The object that a recorded value is; an empty one of any other."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """The list that a recorded value is; an empty one of any other."""
    return value if isinstance(value, list) else []
