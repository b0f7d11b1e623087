"""Events as a desk tells them, numbered from 1 in its one order, and a console that has them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from contracts.audit import Event, EventAt, EventsPage, EventsSince, EventType, Gap, fits
from contracts.position import BEGINNING, Position, position_of
from contracts.subjects.subject import PREFIX
from libs.bus.headers import POSITION_HEADER
from libs.runtime.errors import Unavailable

CYCLE = UUID("7dc179c4-12d3-5df0-bd53-9da1910eaf92")


def step(number: int, kind: EventType = EventType.OPERATION_STARTED, **data: Any) -> EventAt:
    """Event `number` of all, with the least data that its type has."""
    event = Event(
        event_id=uuid4(),
        sequence=number,
        type=kind,
        owner=kind.owner,
        cycle_id=CYCLE,
        at=datetime(2026, 11, 25, tzinfo=UTC),
        data=data or {"step": "plan"},
    )
    position = Position.behind(number // 10, number, event.event_id)
    return EventAt(position=str(position), event=event)


def subject(placed: EventAt) -> str:
    """Where it is published."""
    event = placed.event
    return f"{PREFIX}.evt.{event.owner}.{event.type}.{event.cycle_id}"


def headers(placed: EventAt) -> dict[str, str]:
    """Those of its headers that are read."""
    return {POSITION_HEADER: placed.position, "ce-type": f"desk.{placed.event.type}"}


def body(placed: EventAt) -> bytes:
    """Its bytes."""
    return placed.event.model_dump_json().encode()


@dataclass
class Console:
    """Answers the question for events from a list; `away` while it cannot."""

    record: list[EventAt] = field(default_factory=list)
    away: bool = False
    limit: int = 500
    restored: Sequence[EventAt] | None = None
    """Once set, the tables are these, and know no older position."""
    asked: list[EventsSince] = field(default_factory=list)
    _asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def was_asked(self, times: int, timeout_s: float) -> None:
        """Wait until it has been asked so often."""
        async with asyncio.timeout(timeout_s):
            while len(self.asked) < times:
                self._asked.clear()
                await self._asked.wait()

    async def ask(self, question: EventsSince) -> EventsPage:
        """As the console's own handler."""
        self.asked.append(question)
        self._asked.set()
        if self.away:
            raise Unavailable("the console is away")
        record = list(self.record if self.restored is None else self.restored)
        gap: Gap | None = None
        if question.after is None:
            found = record[max(len(record) - question.back, 0) :]
        else:
            after = position_of(question.after)
            assert after is not None
            places = [placed.position for placed in record]
            if question.after not in {*places, str(BEGINNING)}:
                gap, after = "unknown", BEGINNING
            found = [each for each in record if _order(each) > after.order]
        page = [each for each in found if _wanted(each, question.types)][: self.limit]
        is_cut = len(page) == self.limit and page[-1] is not found[-1]
        end = page[-1].position if is_cut else record[-1].position if record else str(BEGINNING)
        return EventsPage(events=tuple(page), position=end, more=is_cut, gap=gap)


def _order(placed: EventAt) -> tuple[int, int]:
    position = position_of(placed.position)
    assert position is not None
    return position.order


def _wanted(placed: EventAt, patterns: Sequence[str]) -> bool:
    event = placed.event
    return any(fits(pattern, event.owner, event.type) for pattern in patterns or ("*",))
