"""The events as they travel over HTTP (server-sent events): positions, filters, frames. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

import orjson
from pydantic import ValidationError

from contracts.audit import Event, Gap, fits, tells_failure
from contracts.position import Order, Position
from contracts.subjects.commands import COMMANDS
from libs.postgres.events import event_json
from libs.report import events
from libs.runtime import ids

FRAME_BYTES_MAX = 256_000
"""A frame ends with the event that passes this: none is cut, and a reader gets them one by one."""
ALL = "*"
RETRY = b"retry: 1000\n\n"
"""Tells a browser how many milliseconds it waits before it connects again."""
COMMENT = b":\n\n"
_SERVICE_OF_STEP = {row.what: row.owner for row in COMMANDS}

Row = Mapping[str, Any]


def behind(row: Row) -> Position:
    """Right behind the event of this row."""
    return Position.behind(row["xid"], row["id"], ids.event_id(row["op_id"], row["seq"]))


@dataclass(frozen=True)
class EventLine:
    """One event: what filters ask for, and its bytes: the event, its words (`text`) and whether
    they are good or bad (`tone`)."""

    row: Row
    body: bytes

    @property
    def order(self) -> Order:
        """Where it stands."""
        return self.row["xid"], self.row["id"]

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The event's data."""
        data: dict[str, Any] = orjson.loads(self.row["data"])
        return data

    @property
    def service(self) -> str:
        """Whose work it tells of."""
        owner: str = self.row["owner"]
        return _SERVICE_OF_STEP.get(self.data.get("step", ""), owner)


def line_of(row: Row, sequence: int) -> EventLine:
    """The event of a row, as number `sequence` of its cycle, with its `text` and `tone`."""
    body = event_json(row, sequence)
    try:
        words = events.described(Event.model_validate_json(body))
    except ValidationError:  # a type of a later version
        words = events.Described(events.unreadable(row["type"]))
    text, tone = orjson.dumps(words.text), orjson.dumps(words.tone)
    return EventLine(row, b'%s,"text":%s,"tone":%s}' % (body.removesuffix(b"}"), text, tone))


@dataclass(frozen=True)
class EventFilter:
    """Which events a client is sent."""

    pattern: str = ALL
    service: str | None = None
    cycle_id: UUID | None = None
    errors: bool = False

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self == EventFilter()

    def takes(self, line: EventLine) -> bool:
        """Whether the event is one of them."""
        row = line.row
        return (
            self.cycle_id in {None, row["cycle_id"]}
            and (self.pattern == ALL or fits(self.pattern, row["owner"], row["type"]))
            and (not self.errors or tells_failure(row["type"], line.data.get("status")))
            and self.service in {None, line.service if self.service else None}
        )


@dataclass(frozen=True)
class Batch:
    """Events that were read together, in order; `end` is right behind the last of them."""

    lines: Sequence[EventLine]
    end: Position

    @cached_property
    def whole(self) -> bytes:
        """Its frames for everybody who wants everything: encoded once."""
        return b"".join(frames(self.lines, self.end))

    def behind(self, position: Position) -> "Batch":
        """The part that stands behind the position."""
        if not self.lines or self.lines[0].order > position.order:
            return self
        return Batch([line for line in self.lines if line.order > position.order], self.end)

    def wanted(self, wanted: EventFilter) -> bytes:
        """Its frames for one client; empty where it has nothing for it."""
        if wanted.everything:
            return self.whole if self.lines else b""
        taken = [line for line in self.lines if wanted.takes(line)]
        return b"".join(frames(taken, self.end)) if taken else b""


def frames(lines: Sequence[EventLine], end: Position) -> Iterator[bytes]:
    """The events as one frame or more; a client that has a frame has all up to the frame's id."""
    bodies: list[bytes] = []
    size = 0
    for line in lines:
        bodies.append(line.body)
        size += len(line.body)
        if size >= FRAME_BYTES_MAX and line is not lines[-1]:
            yield _frame("events", behind(line.row), b",".join(bodies))
            bodies, size = [], 0
    yield _frame("events", end, b",".join(bodies))


def gap_frame(reason: Gap, end: Position) -> bytes:
    """Events before `end` that the client has not had cannot be had any more."""
    return _frame("gap", end, orjson.dumps({"reason": reason, "message": GAPS[reason]}))


GAPS: Mapping[Gap, str] = {
    "retention": "events of months that retention has dropped are missing here",
    "unknown": "this position is unknown: the tables were restored or recreated; the next events "
    "may be repeats",
    "behind": "too many events were missed; see the cycles' own events for those before the next "
    "ones",
}


def _frame(kind: str, position: Position, body: bytes) -> bytes:
    data = b"[%s]" % body if kind == "events" else body
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(position).encode(), kind.encode(), data)
