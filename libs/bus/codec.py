"""Between bytes and contracts: sizes, NUL and NaN are checked here, once, for every message."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

import orjson
from pydantic import ValidationError

from contracts.message import MESSAGE_BYTES_MAX, Message, Request
from libs.runtime.errors import DeskError

M = TypeVar("M", bound=Message)

ERROR_CHARS_MAX = 2_000
FIELD_CHARS_MAX = 200
"""Of an unknown field's name, which a sender makes as long as it likes."""

_BODY = "body"
_SUSPECT = (b"\\u0000", b"NaN", b"Infinity")


class MessageInvalid(DeskError):
    """A body that is not the message it should be; `field` names where."""

    code = "invalid"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class BodyTooLarge(MessageInvalid):
    """A body over the size limit, sent by somebody who does not keep to it."""

    code = "too_large"


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
    """`body` as `model`. Raises `MessageInvalid`, which names the field and quotes no input.

    A request may have no unknown field, however deep; every other message may.
    """
    if len(body) > MESSAGE_BYTES_MAX:
        raise BodyTooLarge(f"{len(body):,} bytes; the limit is {MESSAGE_BYTES_MAX:,}", _BODY)
    extra: Literal["forbid", "ignore"] = "forbid" if issubclass(model, Request) else "ignore"
    try:
        message = model.model_validate_json(body, extra=extra)
    except ValidationError as error:
        raise MessageInvalid(describe(error), _first_field(error)) from error
    if any(mark in body for mark in _SUSPECT):
        _refuse_unstorable(body)
    return message


TUPLE, LIST = "should be a valid tuple", "should be a valid list"


def describe(error: ValidationError) -> str:
    """What is wrong, field by field, without quoting the input."""
    return problems_of(_errors(error))[0]


def problems_of(errors: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """Pydantic's errors as one sentence that quotes no input, and the first field at fault."""
    # JSON has lists; what they become here is nobody's matter.
    parts = [f"{_path(each['loc'])}: {_said(each['msg'])}" for each in errors]
    return "; ".join(parts)[:ERROR_CHARS_MAX], _path(errors[0]["loc"]) if errors else None


def _said(words: str) -> str:
    """What Pydantic says, without what only programmers read in it."""
    return words.removeprefix("Value error, ").replace(TUPLE, LIST)


def _refuse_unstorable(body: bytes) -> None:
    """Refuse what passes where any JSON may stand: NaN, which is none, and NUL, which no table
    can hold."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MessageInvalid(f"not JSON: {error.msg} at byte {error.pos}", _BODY) from error
    for path in _with_nul(parsed, ()):
        raise MessageInvalid(f"{_path(path)}: contains a NUL character", _path(path))


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


def _errors(error: ValidationError) -> Sequence[dict[str, object]]:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [dict(each) for each in found]


def _first_field(error: ValidationError) -> str | None:
    return problems_of(_errors(error))[1]


def _path(loc: object) -> str:
    parts = loc if isinstance(loc, tuple) else ()
    # A name as the sender wrote it goes into headers, logs and terminals: nothing but plain text.
    shown = "".join(c for c in ".".join(map(str, parts)) if c.isprintable())
    return shown[:FIELD_CHARS_MAX] or _BODY
