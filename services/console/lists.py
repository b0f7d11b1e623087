"""The console's reads for lists and for the search. As in store.py, every one is a select."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from uuid import UUID

from contracts.operation import OperationStatus
from libs.postgres.pool import Pool, Record
from libs.postgres.queries import Queries

sql = Queries(Path(__file__).parent / "lists.sql")


@dataclass(frozen=True)
class Place:
    """A place in a list of cycles: right behind this one."""

    as_of: date
    accepted_at: datetime
    cycle_id: UUID


@dataclass(frozen=True)
class PlaceOfOperation:
    """A place in a list of operations: right behind this one, of a cycle that began then."""

    accepted_at: datetime
    created_at: datetime
    op_id: UUID


CYCLES_SEARCHED = 2_000
"""Among so many newest cycles something is looked for that has no index."""
OPEN = frozenset({OperationStatus.PENDING, OperationStatus.RUNNING})
LOST = frozenset({OperationStatus.FAILED, OperationStatus.CANCELLED})
FRONT = Place(date(9999, 1, 1), datetime(9999, 1, 1, tzinfo=UTC), UUID(int=2**128 - 1))
"""In front of all cycles there are."""
FRONT_OPERATION = PlaceOfOperation(FRONT.accepted_at, FRONT.accepted_at, FRONT.cycle_id)


class Lists:
    """The tables as lists that are filtered and searched."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def _rows(self, statement: str, *values: object) -> Sequence[Record]:
        rows: Sequence[Record] = await self._pool.fetch(statement, *values)
        return rows

    async def cycles_beginning(self, first: UUID, last: UUID, limit: int) -> Sequence[Record]:
        """Cycles with ids from `first` to `last`."""
        return await self._rows(sql.cycles_beginning, first, last, limit)

    async def operations_beginning(self, first: UUID, last: UUID, limit: int) -> Sequence[Record]:
        """Operations with ids from `first` to `last`."""
        return await self._rows(sql.operations_beginning, first, last, limit)

    async def place_of_operation(self, op_id: UUID) -> PlaceOfOperation | None:
        """The place of an operation; None where it is not there any more."""
        rows = await self._rows(sql.place_of_operation, op_id)
        return PlaceOfOperation(**rows[0]) if rows else None

    async def operations_listed(self, op_ids: Sequence[UUID]) -> Sequence[Record]:
        """These operations, those of the newest cycles first."""
        return await self._rows(sql.operations_listed, list(op_ids))

    async def operations_of_cycles(self, cycle_ids: Sequence[UUID], limit: int) -> Sequence[Record]:
        """The operations of these cycles, those of the newest first."""
        return await self._rows(sql.operations_of_cycles, list(cycle_ids), limit)

    async def newest_operations(
        self,
        status: OperationStatus | None,
        step: str | None,
        limit: int,
        *,
        account: str | None = None,
        since: date = date.min,
        until: date = date.max,
        behind: PlaceOfOperation = FRONT_OPERATION,
    ) -> Sequence[Record]:
        """Operations, the newest first; by what was asked for each is read from an index.

        What goes on and what was lost is little. What was done is looked for in `CYCLES_SEARCHED`.
        """
        like = (account, since, until)
        place = (behind.created_at, behind.op_id)
        if status in OPEN:
            return await self._rows(sql.open_operations, status, step, limit, *like, *place)
        if status in LOST:
            return await self._rows(sql.lost_operations, status, step, limit, *like, *place)
        among = (CYCLES_SEARCHED, *like, behind.accepted_at)
        return await self._rows(sql.recent_operations, status, step, limit, *among, *place)

    async def tickers_like(self, text: str, limit: int) -> Sequence[str]:
        """Tickers that an account has held, with `text` in their name."""
        return [row["ticker"] for row in await self._rows(sql.tickers_like, text, limit)]

    async def walked(
        self, behind: Place, limit: int, *, status: str | None = None, kind: str | None = None
    ) -> Sequence[Record]:
        """The next cycles by time, newest first; of one status, or of one kind."""
        place = (behind.accepted_at, behind.cycle_id, limit)
        if status is not None:
            return await self._rows(sql.walked_by_status, *place, status)
        if kind is not None:
            return await self._rows(sql.walked_by_kind, *place, kind)
        return await self._rows(sql.walked_by_time, *place)

    async def walked_by_session(
        self, behind: Place, limit: int, first: date, last: date
    ) -> Sequence[Record]:
        """The next cycles as of these sessions, the newest session first."""
        place = (behind.accepted_at, behind.cycle_id, limit)
        return await self._rows(sql.walked_by_session, *place, first, last, behind.as_of)

    async def cycles_listed(self, cycle_ids: Sequence[UUID]) -> Sequence[Record]:
        """These cycles as lists show them, in no order."""
        return await self._rows(sql.cycles_listed, list(cycle_ids))

    async def executed(self, cycle_ids: Sequence[UUID]) -> Sequence[Record]:
        """The execution of each pipeline of these cycles."""
        return await self._rows(sql.executed, list(cycle_ids))

    async def achieved(self, cycle_ids: Sequence[UUID]) -> Sequence[Record]:
        """The numbers that tell what each pipeline of these cycles came to, by step."""
        return await self._rows(sql.achieved, list(cycle_ids))
