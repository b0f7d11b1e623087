"""Between bytes and contracts: sizes, NUL and NaN are checked here, once, for every message."""

from collections.abc import Iterator
from typing import Literal, TypeVar

import orjson
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from contracts.message import MESSAGE_BYTES_MAX, Message, Request
from libs.runtime.errors import DeskError
from libs.runtime.json_keys import repeated_key
from libs.runtime.wording import WHOLE, describe, first_field, place_of

M = TypeVar("M", bound=Message)

NAME_CHARS_MAX = 60
"""Of a name that is quoted: others are input as any."""

_SUSPECT = (b"\\u0000", b"NaN", b"Infinity")


class MessageInvalid(DeskError):
    """A message's body is invalid; `field` names where."""

    code = "invalid"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class BodyTooLarge(MessageInvalid):
    """A received message is over the size limit."""

    code = "too_large"


class NotSendable(DeskError):
    """A message cannot be written as JSON; it is refused before it is sent."""

    code = "not_sendable"


class MessageTooLarge(NotSendable):
    """A message is over the size limit; it is refused before it is sent."""

    code = "too_large"


def encode(message: Message) -> bytes:
    """The message as JSON. Raises `NotSendable`."""
    try:
        body = message.model_dump_json().encode()
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        # Half of a surrogate pair is a text to Python, and none in UTF-8.
        raise NotSendable(
            f"{type(message).__name__} cannot be written as JSON: {type(error).__name__}: {error}"
        ) from None
    if len(body) > MESSAGE_BYTES_MAX:
        raise MessageTooLarge(
            f"{type(message).__name__} has {len(body):,} bytes; the limit is "
            f"{MESSAGE_BYTES_MAX:,}: send less in one message"
        )
    return body


def decode(model: type[M], body: bytes, *, by_people: bool = False) -> M:
    """`body` as `model`. Raises `MessageInvalid`, which names the field and quotes no input.

    A request may have no unknown field, however deep; every other message may. A name that stands
    twice in an object is refused in a request, and in all that people and their programs send.
    """
    if len(body) > MESSAGE_BYTES_MAX:
        raise BodyTooLarge(f"{len(body):,} bytes; the limit is {MESSAGE_BYTES_MAX:,}", WHOLE)
    is_request = issubclass(model, Request)
    extra: Literal["forbid", "ignore"] = "forbid" if is_request else "ignore"
    try:
        message = model.model_validate_json(body, extra=extra)
    except ValidationError as error:
        raise MessageInvalid(describe(error, model), first_field(error)) from error
    if (is_request or by_people) and (name := repeated_key(body)) is not None:
        field = name if name.isidentifier() and len(name) <= NAME_CHARS_MAX else WHOLE
        raise MessageInvalid(f"{field}: a name appears twice in one object; send it once", field)
    if any(mark in body for mark in _SUSPECT):
        _refuse_unstorable(body)
    return message


def _refuse_unstorable(body: bytes) -> None:
    """Refuse what passes where any JSON may stand: NaN, which is none, and NUL, which no table
    can hold."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MessageInvalid(f"not JSON: {error.msg} at byte {error.pos}", WHOLE) from error
    for path in _with_nul(parsed, ()):
        raise MessageInvalid(f"{place_of(path)}: contains a NUL character", place_of(path))


def _with_nul(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Where a text or a name holds a NUL."""
    if isinstance(value, str) and "\x00" in value:
        yield path
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _with_nul(inner, (*path, str(index)))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from [path] if "\x00" in name else _with_nul(inner, (*path, name))
