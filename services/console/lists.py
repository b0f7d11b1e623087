"""The console's reads for lists and for the search. As in store.py, every one is a select."""

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from libs.postgres.pool import Pool, Record
from libs.postgres.queries import Queries

sql = Queries(Path(__file__).parent / "lists.sql")


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

    async def tickers_like(self, text: str, limit: int) -> Sequence[str]:
        """Tickers that an account has held, with `text` in their name."""
        return [row["ticker"] for row in await self._rows(sql.tickers_like, text, limit)]
