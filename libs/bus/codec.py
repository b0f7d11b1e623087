"""Between bytes and contracts: sizes, NUL and NaN are checked here, once, for every message."""

from collections.abc import Sequence
from typing import TypeVar

import orjson
from pydantic import ValidationError

from contracts.message import MESSAGE_BYTES_MAX, Message
from libs.runtime.errors import DeskError

M = TypeVar("M", bound=Message)

ERROR_CHARS_MAX = 2_000
_SUSPECT = (b"\\u0000", b"NaN", b"Infinity")


class MessageInvalid(DeskError):
    """A body that is not the message it should be; `field` names where."""

    code = "invalid"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class MessageTooLarge(DeskError):
    """A message over the size limit, refused before it is sent."""

    code = "too_large"


def encode(message: Message) -> bytes:
    """The message as JSON. Raises `MessageTooLarge`."""
    body = message.model_dump_json().encode()
    if len(body) > MESSAGE_BYTES_MAX:
        raise MessageTooLarge(
            f"{type(message).__name__} has {len(body):,} bytes; the limit is "
            f"{MESSAGE_BYTES_MAX:,}: send less in one message"
        )
    return body


def decode(model: type[M], body: bytes) -> M:
    """`body` as `model`. Raises `MessageInvalid`, which names the field and quotes no input."""
    if len(body) > MESSAGE_BYTES_MAX:
        raise MessageInvalid(f"{len(body):,} bytes; the limit is {MESSAGE_BYTES_MAX:,}")
    if any(mark in body for mark in _SUSPECT):
        _refuse_unstorable(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise MessageInvalid(describe(error), _first_field(error)) from error


def describe(error: ValidationError) -> str:
    """What is wrong, field by field, without quoting the input."""
    parts = [f"{_path(each['loc'])}: {each['msg']}" for each in _errors(error)]
    return "; ".join(parts)[:ERROR_CHARS_MAX]


def _refuse_unstorable(body: bytes) -> None:
    """Refuse NaN, which is no JSON, and NUL, which no table can hold."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MessageInvalid(f"not JSON: {error.msg} at byte {error.pos}") from error
    # Dumped again, an escaped NUL is the only thing that gives this escape after an even number of
    # backslashes; a text that merely spells it has them doubled.
    if b"\\u0000" in orjson.dumps(parsed).replace(b"\\\\", b""):
        raise MessageInvalid("a text contains a NUL character")


def _errors(error: ValidationError) -> Sequence[dict[str, object]]:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [dict(each) for each in found]


def _first_field(error: ValidationError) -> str | None:
    errors = _errors(error)
    return _path(errors[0]["loc"]) if errors else None


def _path(loc: object) -> str:
    parts = loc if isinstance(loc, tuple) else ()
    return ".".join(str(part) for part in parts) or "body"
