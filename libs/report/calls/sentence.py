"""A call in one sentence: `get_stock_price(AAPL) = 584.00 USD`. Pure."""

from collections.abc import Mapping
from decimal import Decimal

import orjson
from pydantic import JsonValue

from contracts.operation import CallKind, JournalEntry, OperationView, fault_in
from libs.facts import amounts
from libs.runtime import recorded_call

HEADLINES = ("price", "equity")
"""Fields that say what a result comes to, the first of those that it has."""
DATED: Mapping[str, str] = {"report_date": "report on", "period_end": "figures to"}
"""Fields that date a thing, and the words before the date."""
ABSENT: Mapping[str, str] = {"upcoming": "no report date", "figures": "no figures"}
"""Fields that are null where a tool has no answer, and the words for that."""
ENDS = (
    ("yses", "ysis"),
    ("heses", "hesis"),
    ("ies", "y"),
    ("sses", "ss"),
    ("uses", "us"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("xes", "x"),
    ("indices", "index"),
    ("s", ""),
)
"""Ends of words in the plural, and in the singular."""
NOT_PLURAL = ("news", "series", "ss", "us", "is")
"""Ends of words that have an s and no singular."""
VALUE_CHARS = 80
SENTENCE_CHARS = 240
RESULT = "result"
"""Where a call's node of the operation tree has what came back, in a few words."""


def of_entry(entry: JournalEntry) -> str:
    """The recorded call with what it gave; a model's and a read without that."""
    return of(recorded_call.called(entry), gives(entry.kind, entry.reply))


def of_node(node: OperationView) -> str:
    """The same of a call in the operation tree, which has no bodies."""
    about = recorded_call.about(node.metadata.get("arguments"))
    return of(recorded_call.label(node.name, about), str(node.metadata.get(RESULT) or ""))


def gives(kind: CallKind, reply: JsonValue) -> str:
    """The outcome of a call: a tool's value or how many it listed, or the code of its fault."""
    if fault := fault_in(kind, reply):
        return str(fault.get("code") or "error")
    return _value(reply) if kind is CallKind.TOOL else ""


def gives_recorded(kind: CallKind, text: str | None, size_bytes: int) -> str:
    """The same of a reply as JSON text; its size where the text was cut, and so is no JSON."""
    if not text:
        return ""
    try:
        return gives(kind, orjson.loads(text))
    except orjson.JSONDecodeError:
        return f"{amounts.thousands(size_bytes)} bytes"


def of(called: str, value: str) -> str:
    """The sentence of a call, as `label` names it, and what it gave, if that is known."""
    return amounts.cut(f"{called} = {value}" if value else called, SENTENCE_CHARS)


def _value(reply: JsonValue) -> str:
    if not isinstance(reply, dict):
        return _scalar(reply) if not isinstance(reply, list) else _count("items", len(reply))
    for name in HEADLINES:
        if isinstance(reply.get(name), int | float | str):
            return f"{_scalar(reply[name])} {reply.get('currency') or ''}".rstrip()
    return _listed(reply)


def _listed(reply: Mapping[str, JsonValue]) -> str:
    """The first field that holds more than one value: `60 rows`, `report on 2012-07-24`; else what
    the tool does not have, or ""."""
    for name, value in reply.items():
        if isinstance(value, list):
            return _count(name.replace("_", " "), len(value))
        if isinstance(value, dict):
            return _object(name.replace("_", " "), value)
    return next((words for name, words in ABSENT.items() if name in reply), "")


def _object(name: str, value: Mapping[str, JsonValue]) -> str:
    """One thing with fields is told by its date; else its values that are known are counted."""
    for field, words in DATED.items():
        if isinstance(value.get(field), str):
            return f"{words} {value[field]}"
    known = len(value) - list(value.values()).count(None)
    return _count("values" if name == "values" else f"values of {name}", known)


def _count(many: str, number: int) -> str:
    """`1 row`, `2 price targets`; `news: 1` of a word whose singular is not known."""
    things, of, whole = many.partition(" of ")
    if not things.endswith("s") or things.endswith(NOT_PLURAL):
        return f"{many}: {number:,}"
    end, tail = next((end, tail) for end, tail in ENDS if things.endswith(end))
    return amounts.count(number, f"{things.removesuffix(end)}{tail}{of}{whole}", many)


def _scalar(value: JsonValue) -> str:
    if isinstance(value, float):
        return amounts.figure(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    is_amount = text.removeprefix("-").replace(".", "", 1).isdecimal()
    return amounts.figure(Decimal(text)) if is_amount else amounts.cut(text, VALUE_CHARS)
