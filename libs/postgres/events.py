"""Rows of state_events as the events that people get, when they happen and when asked later."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from contracts.audit import Event, EventType
from libs.postgres.pool import Pool, PoolConnection
from libs.runtime import ids

CYCLES_KNOWN_MAX = 20_000
"""Cycles whose count of events is kept in memory; others are counted anew."""
FIRSTS = frozenset({EventType.CYCLE_ACCEPTED, EventType.REQUEST_REJECTED})
"""No event of the same cycle can stand before one of these."""

_COUNT = (
    "select cycle_id, count(*) as count from state_events"
    " where cycle_id = any($1::uuid[]) and (xid, id) <= ($2, $3) group by cycle_id"
)

Row = Mapping[str, Any]


class Ranks:
    """Numbers the rows that one reader reads in commit-safe order (decision 0005).

    A cycle's first row is counted from the table, the others from the one before.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[UUID, int] = OrderedDict()

    async def of(
        self, db: PoolConnection | Pool, rows: Sequence[Row], after: tuple[int, int]
    ) -> Sequence[int]:
        """The sequence of each row; the rows come next after position `after` (xid, id)."""
        # Not a set less the keys: that would walk all that are known, for every few rows.
        unknown = {row["cycle_id"] for row in rows if row["cycle_id"] not in self._counts}
        unknown -= {row["cycle_id"] for row in rows if row["type"] in FIRSTS}
        if unknown:
            counted = await db.fetch(_COUNT, list(unknown), *after)
            self._counts.update({row["cycle_id"]: row["count"] for row in counted})
        numbers = [self._next(row["cycle_id"]) for row in rows]
        while len(self._counts) > CYCLES_KNOWN_MAX:
            self._counts.popitem(last=False)
        return numbers

    def _next(self, cycle_id: UUID) -> int:
        sequence = self._counts.pop(cycle_id, 0) + 1
        self._counts[cycle_id] = sequence
        return sequence


def event_json(row: Row, sequence: int) -> bytes:
    """The event as JSON, as number `sequence` of its cycle."""
    # Its parts were checked when they were written: not once more for every event.
    return orjson.dumps(
        {
            "version": 1,
            "event_id": str(ids.event_id(row["op_id"], row["seq"])),
            "sequence": sequence,
            "type": row["type"],
            "owner": row["owner"],
            "cycle_id": str(row["cycle_id"]),
            "op_id": str(row["op_id"]),
            "pipeline": row["pipeline"],
            "state": row["state"],
            "session_id": row["session_id"],
            "at": row["at"],
            "data": orjson.Fragment(row["data"]),
        },
        option=orjson.OPT_UTC_Z,
    )


def event_of(row: Row, sequence: int) -> Event:
    """The event, as number `sequence` of its cycle."""
    return Event.model_validate_json(event_json(row, sequence))
