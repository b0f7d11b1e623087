"""The events of all cycles in the relay's order, read from any position on."""

from dataclasses import dataclass
from uuid import UUID

from contracts.audit import Gap
from contracts.position import BEGINNING, Order, Position
from libs.postgres.events import Ranks
from libs.postgres.pool import Pool, PoolConnection
from services.console.live.frames import Batch, behind, line_of
from services.console.store import sql

READ_MAX = 1_000
"""Events that are read at once."""
BEHIND_MAX = 100_000
"""Events that a client may be behind and still be sent all of them."""
END: Order = (2**63, 2**62)
"""Behind all events."""

Start = Position | int
"""Where a client begins: right behind a position, or so many events before now."""


@dataclass(frozen=True)
class EventLog:
    """Reads `state_events` below the relay's horizon, so that what is read never changes."""

    behind_max: int = BEHIND_MAX
    read_max: int = READ_MAX

    async def back(self, db: Pool | PoolConnection, count: int, cycle_id: UUID | None) -> Position:
        """So many events before now, of one cycle or of all."""
        if cycle_id is None:
            row = await db.fetchrow(sql.event_back, count)
        else:
            row = await db.fetchrow(sql.event_of_cycle_back, count, cycle_id)
        return BEGINNING if row is None else behind(row)

    async def since(
        self,
        db: Pool | PoolConnection,
        position: Position,
        ranks: Ranks,
        upto: Order = END,
        cycle_id: UUID | None = None,
    ) -> Batch:
        """The next events behind the position, at most `read_max`, of one cycle or of all."""
        span = (*position.order, *upto, self.read_max)
        if cycle_id is None:
            rows = await db.fetch(sql.events_since, *span)
        else:
            rows = await db.fetch(sql.events_of_cycle_since, *span, cycle_id)
        if not rows:
            return Batch((), position)
        numbers = await ranks.of(db, rows, position.order)
        return Batch(list(map(line_of, rows, numbers)), behind(rows[-1]))

    async def entered(
        self, db: Pool | PoolConnection, start: Start, cycle_id: UUID | None
    ) -> tuple[Position, Gap | None]:
        """Where to go on from `start`, and why events between the two cannot be had."""
        if isinstance(start, int):
            return await self.back(db, start, cycle_id), None
        gone = await self._gone(db, start)
        # A cycle's own events are few, and have an index: all of them may be had again.
        if gone == "unknown":
            oldest = BEGINNING if cycle_id else await self.back(db, self.behind_max, None)
            return oldest, gone
        if cycle_id is None and await self._far(db, start):
            oldest = await self.back(db, self.behind_max, None)
            if oldest.order > start.order:
                return oldest, "behind"
        return start, gone

    async def _gone(self, db: Pool | PoolConnection, position: Position) -> Gap | None:
        """Why the past behind the position may not be whole."""
        dropped = tuple(await db.fetchrow(sql.events_dropped))
        if dropped != BEGINNING.order and position.order <= dropped:
            return "retention"
        if position == BEGINNING:
            return None
        row = await db.fetchrow(sql.event_at, *position.order)
        return None if row is not None and behind(row) == position else "unknown"

    async def _far(self, db: Pool | PoolConnection, position: Position) -> bool:
        """Whether more events may have come than are sent again.

        Row ids come from one sequence, so there are never more rows than the ids differ.
        """
        head = await self.back(db, 0, None)
        return head.order[1] - position.order[1] > self.behind_max
