"""Where an event stands among all events of a desk: in the order in which they are published."""

import re
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from pydantic import StringConstraints

Order = tuple[int, int]
"""An event's transaction id and row id: the relay's order (decision 0006)."""

POSITION_PATTERN = r"^[0-9]{1,20}-[0-9]{1,18}-[0-9a-f]{8}$"
PositionText = Annotated[str, StringConstraints(pattern=POSITION_PATTERN)]
"""A position as it travels: `7316-4102-9f0c1b2d`."""

_TEXT = re.compile(r"([0-9]{1,20})-([0-9]{1,18})-([0-9a-f]{8})", re.ASCII)
_XID_MAX = 2**64 - 1
_MARK_DIGITS = 8


@dataclass(frozen=True)
class Position:
    """Right behind one event. `mark` begins the event's id, so another history's is not taken for
    one of this."""

    order: Order
    mark: str

    def __str__(self) -> str:
        return f"{self.order[0]}-{self.order[1]}-{self.mark}"

    @classmethod
    def behind(cls, xid: int, row_id: int, event_id: UUID) -> "Position":
        """Right behind the event that stands in this row."""
        return cls((xid, row_id), event_id.hex[:_MARK_DIGITS])


BEGINNING = Position((0, 0), "0" * _MARK_DIGITS)
"""Before all events."""


def position_of(text: str) -> Position | None:
    """The position that a text names; None where it names none."""
    match = _TEXT.fullmatch(text)
    if match is None or int(match[1]) > _XID_MAX:
        return None
    return Position((int(match[1]), int(match[2])), match[3])
