"""A reader of server-sent events, as the standard describes them."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Frame:
    """One dispatched event of a stream."""

    id: str
    kind: str
    data: Any

    @property
    def names(self) -> list[str]:
        """The ids of the desk's events in it."""
        return [each["event_id"] for each in self.data] if self.kind == "events" else []


@dataclass
class Reader:
    """Frames from bytes, however they are cut; `comments` counts the signs of life."""

    comments: int = 0
    _rest: bytes = b""
    _id: str = ""
    _fields: dict[str, str] = field(default_factory=dict)

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """The frames that this chunk completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line:
                self._take(line.decode())
                continue
            fields, self._fields = self._fields, {}
            self._id = fields.get("id", self._id)
            if "data" in fields:
                yield Frame(self._id, fields.get("event", "message"), json.loads(fields["data"]))

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        if not name:
            self.comments += 1
        elif name == "data" and "data" in self._fields:
            self._fields["data"] += "\n" + value.removeprefix(" ")
        else:
            self._fields[name] = value.removeprefix(" ")


async def frames(chunks: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    """The frames of a stream."""
    reader = Reader()
    async for chunk in chunks:
        for frame in reader.feed(chunk):
            yield frame


async def names(chunks: AsyncIterator[bytes], count: int) -> list[str]:
    """The ids of the next events; more than `count` where a frame holds more."""
    found: list[str] = []
    async for frame in frames(chunks):
        assert frame.kind == "events", frame
        found += frame.names
        if len(found) >= count:
            break
    return found
