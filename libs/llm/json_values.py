"""JSON that every store and every codec on the way can carry."""

import json
import math
from typing import Annotated, Any

import orjson
from pydantic import GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema

REPLACEMENT = "\ufffd"
NESTING_MAX = 64
"""Of lists and objects within one another. pydantic follows 200, and a record wraps what it holds
in some more; a model's arguments have five or six."""
TOO_DEEP = f"(nested more than {NESTING_MAX} levels deep)"
INTEGERS = range(-(2**63), 2**64)
"""Whole numbers that orjson writes."""
NUMBER_CHARS_MAX = 40
"""Shown of a number that is none to JSON."""


class _TakenAsItIs:
    """Makes pydantic take and give a value without a look at what is in it."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()


Json = Annotated[JsonValue, _TakenAsItIs]
"""JSON that was checked where it came in: a model that holds it does not walk through it again."""
JsonObject = Annotated[dict[str, JsonValue], _TakenAsItIs]
"""The same of an object."""


def canonical(value: JsonValue) -> str:
    """The value as JSON with its keys in order: a database may give them back in another one."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def loaded(text: str | bytes) -> Any:
    """The values of a JSON text that an endpoint wrote, before `storable`: pieces of a stream may
    each hold half of a character.

    A number that JSON has none of (NaN, 1e999) or that has more than 64 bits becomes the text that
    it was. Raises ValueError for a text that is no JSON.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", "replace")
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise _nested() from None
    return value


def storable(value: JsonValue, levels: int = NESTING_MAX) -> JsonValue:
    """`value` without what databases and UTF-8 refuse: NUL and lone surrogates become U+FFFD.

    A model's reply is paid for, so it is mended rather than thrown away; what depends on the text
    is validated after this. Raises ValueError for NaN, infinities, whole numbers of more than 64
    bits, and more than `levels` of nesting.
    """
    match value:
        case str():
            return _text(value)
        case float() if not math.isfinite(value):
            raise ValueError("a number is not finite")
        case float() if value == 0:
            return 0.0  # -0.0 comes back from a database without its sign
        case int() if value not in INTEGERS:
            raise ValueError("a whole number has more than 64 bits")
        case dict() | list() if levels == 0:
            raise _nested()
        case dict():
            return {_text(key): storable(item, levels - 1) for key, item in value.items()}
        case list():
            return [storable(item, levels - 1) for item in value]
        case _:
            return value


def without_depths(value: JsonValue, levels: int = NESTING_MAX) -> JsonValue:
    """`value` with TOO_DEEP in the place of what is nested more than `levels` deep: what has no use
    for that field uses the rest."""
    match value:
        case dict() | list() if levels == 0:
            return TOO_DEEP
        case dict():
            return {key: without_depths(item, levels - 1) for key, item in value.items()}
        case list():
            return [without_depths(item, levels - 1) for item in value]
        case _:
            return value


def _number(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text[:NUMBER_CHARS_MAX]


def _whole(text: str) -> int | str:
    if len(text) < NUMBER_CHARS_MAX and (value := int(text)) in INTEGERS:
        return value
    return text[:NUMBER_CHARS_MAX]


_DECODER = json.JSONDecoder(parse_constant=str, parse_float=_number, parse_int=_whole)


def _nested() -> ValueError:
    return ValueError(f"it is nested more than {NESTING_MAX} levels deep")


def _text(value: str) -> str:
    if "\x00" in value:
        value = value.replace("\x00", REPLACEMENT)
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value
