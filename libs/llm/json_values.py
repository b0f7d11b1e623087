"""JSON that every store and every codec on the way can carry."""

import math
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema

REPLACEMENT = "\ufffd"


class _TakenAsItIs:
    """Makes pydantic take and give a value without a look at what is in it."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.any_schema()


Json = Annotated[JsonValue, _TakenAsItIs]
"""JSON that was checked where it came in: a model that holds it does not walk through it again."""
JsonObject = Annotated[dict[str, JsonValue], _TakenAsItIs]
"""The same of an object."""


def storable(value: JsonValue) -> JsonValue:
    """`value` without what databases and UTF-8 refuse: NUL and lone surrogates become U+FFFD.

    A model's reply is paid for, so it is mended rather than thrown away; what depends on the text
    is validated after this. Raises ValueError for NaN and infinities.
    """
    match value:
        case str():
            return _text(value)
        case float() if not math.isfinite(value):
            raise ValueError("a number is not finite")
        case float() if value == 0:
            return 0.0  # -0.0 comes back from a database without its sign
        case dict():
            return {_text(key): storable(item) for key, item in value.items()}
        case list():
            return [storable(item) for item in value]
        case _:
            return value


def _text(value: str) -> str:
    if "\x00" in value:
        value = value.replace("\x00", REPLACEMENT)
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value
