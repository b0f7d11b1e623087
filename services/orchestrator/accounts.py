"""The orchestrator's view of accounts: their names, and which sessions they have seen."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from libs.postgres.pool import Pool
from libs.postgres.queries import Queries

NAMES_MAX = 1_000
"""Among so many a mistyped name is looked for."""

sql = Queries(Path(__file__).parent / "accounts.sql")


class Accounts:
    """Reads `account_clocks`. Raises DatabaseUnavailable during an outage."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def clocks(self, names: Sequence[str]) -> Mapping[str, date]:
        """The newest session that each of these accounts has seen, of those that there are."""
        rows = await self._pool.fetch(sql.clocks, list(names))
        return {row["account"]: row["clock"] for row in rows}

    async def bound(self, names: Sequence[str]) -> Sequence[str]:
        """Those of these accounts that are bound to a broker, by name."""
        return [row["account"] for row in await self._pool.fetch(sql.bound, list(names))]

    async def names(self) -> Sequence[str]:
        """Those that were opened, by name."""
        return [row["account"] for row in await self._pool.fetch(sql.names, NAMES_MAX)]
