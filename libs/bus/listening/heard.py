"""From a message to the event that a handler takes."""

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from faststream.message import StreamMessage
from nats.aio.msg import Msg

from contracts.audit import Event, EventAt, EventType
from contracts.event_data import EVENT_DATA, EventOf
from contracts.position import Position, position_of
from contracts.subjects.events import EVENTS
from contracts.subjects.subject import PREFIX
from libs.bus.codec import MessageInvalid, decode
from libs.bus.headers import POSITION_HEADER, headers
from libs.runtime.errors import DeskError

TYPE_HEADER, TYPE_PREFIX = "ce-type", "desk."
CYCLE = "{cycle_id}"
"""The last token of an event's subject, as FastStream and the AsyncAPI document write it."""

log = structlog.get_logger()


class HandlerInvalid(DeskError):
    """A handler whose first parameter cannot take its events, or that is no coroutine."""

    code = "handler_invalid"


class CaughtUp(Msg):
    """An event that was asked for, as the message that it was when it was published."""

    @classmethod
    def of(cls, placed: EventAt) -> "CaughtUp":
        """The message of an event in the console's answer."""
        event = placed.event
        subject = f"{PREFIX}.evt.{event.owner}.{event.type}.{event.cycle_id}"
        what, node = f"{TYPE_PREFIX}{event.type}", event.op_id or event.cycle_id
        about = headers(str(event.event_id), what, event.cycle_id, node, event.owner)
        about[POSITION_HEADER] = placed.position
        nobody: Any = None
        body = event.model_dump_json().encode()
        return cls(nobody, subject=subject, data=body, headers=about)


@dataclass(frozen=True)
class Heard:
    """One message; `event` is None where it is not one that is wanted, or cannot be read."""

    event: Event | None
    position: Position | None
    caught_up: bool


class Reading:
    """Reads messages as the events that one handler takes."""

    def __init__(self, types: Sequence[EventType], handler: Callable[..., Any]) -> None:
        self.types = tuple(types)
        self.model = _model_of(handler, self.types)

    async def __call__(self, message: StreamMessage[Any]) -> Heard:
        """Decode one message; FastStream calls it. An unreadable one is told and left out."""
        caught_up = isinstance(message.raw_message, CaughtUp)
        position = position_of(message.headers.get(POSITION_HEADER, ""))
        return Heard(self._event_in(message), position, caught_up)

    def _event_in(self, message: StreamMessage[Any]) -> Event | None:
        kind = message.headers.get(TYPE_HEADER, "").removeprefix(TYPE_PREFIX)
        if kind and kind not in self.types:
            return None
        try:
            event = decode(self.model, message.body)
        except MessageInvalid as error:
            # A newer desk may say what this program does not know; the rest is worth hearing.
            log.warning("listening.unreadable", type=kind, why=error.message)
            return None
        return event if event.type in self.types else None


def subject_of(types: Sequence[EventType]) -> str:
    """The narrowest subject on which all of these events are published, in the table's words."""
    rows = [row for row in EVENTS if row.what in types]
    if len(rows) == 1:
        return rows[0].by(CYCLE)
    owners = {row.owner for row in rows}
    owner = owners.pop() if len(owners) == 1 else "*"
    return f"{PREFIX}.evt.{owner}.*.{CYCLE}"


def _model_of(handler: Callable[..., Any], types: Sequence[EventType]) -> type[Event]:
    """The type of the handler's first parameter: Event, or EventOf the shape of all these types."""
    if not types:
        raise HandlerInvalid("name at least one type of event: `hears(EventType.DECISION)`")
    name = getattr(handler, "__name__", repr(handler))
    if not inspect.iscoroutinefunction(handler):
        raise HandlerInvalid(f"{name} is no coroutine: write it with `async def`")
    hints = typing.get_type_hints(handler)
    hints.pop("return", None)
    model = next(iter(hints.values()), None)
    shapes: set[Any] = {EVENT_DATA[kind] for kind in types}
    fitting: list[Any] = [Event]
    if len(shapes) == 1:
        fitting.append(EventOf.__class_getitem__(shapes.pop()))
    if model not in fitting:
        able = " or ".join(model.__name__ for model in fitting)
        raise HandlerInvalid(f"{name} is to hear {', '.join(types)}: its first parameter is {able}")
    return typing.cast("type[Event]", model)
