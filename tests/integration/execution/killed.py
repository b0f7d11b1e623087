"""Execution in a process of its own, to be killed: `python -m ...killed DSN DSN ACCOUNT SESSION`.

The second DSN is that of an orchestrator, who has the command on record.

Opens the books on the bundled prices, says `posted` once the first entry is written and not yet
committed, and goes no further.
"""

import asyncio
import sys
from datetime import date
from decimal import Decimal
from typing import Any

from libs.broker.paper import PaperBroker
from libs.market.rates import ReplayRates
from libs.market.replay.market import ReplayFills, ReplayMarket, ReplayStore
from libs.postgres.pool import open_pool
from services.execution import store
from services.execution.handler import Trading
from services.execution.reads import ExecutionReads
from tests.integration.execution.conftest import Desk, Prices


class Halting:
    """A connection that stops after an entry's insert."""

    def __init__(self, db: Any) -> None:
        self._db = db

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    async def execute(self, query: str, *values: object) -> None:
        await self._db.execute(query, *values)
        if query == store.sql.insert_entry:
            sys.stdout.write("posted\n")
            sys.stdout.flush()
            await asyncio.Event().wait()


async def main(dsn: str, orchestrators: str, account: str, session: str) -> None:
    real_write = store.write
    store.write = lambda db, changes: real_write(Halting(db), changes)  # type: ignore[arg-type]
    prices = ReplayStore()
    reads = ExecutionReads(ReplayMarket(prices), ReplayFills(prices), ReplayRates(prices))
    async with open_pool(dsn) as pool, open_pool(orchestrators) as orchestrator:
        trading = Trading(pool, reads, PaperBroker(Decimal(5), Decimal(5)), Decimal(100_000))
        await Desk(trading, Prices(), orchestrator, account).open(date.fromisoformat(session))


asyncio.run(main(*sys.argv[1:]))
