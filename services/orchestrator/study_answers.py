"""Answers that studies have paid for: whoever asks the same of the same model in one gets them.

They are written in the transaction that settles what they cost, and read in the one that would hold
money back for asking again. Those that were paid for longer ago than `study.answers_kept_s` are
forgotten: whoever asks the same then pays again.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import orjson
import structlog

from libs.postgres.pool import Pool, PoolConnection
from libs.postgres.queries import Queries
from libs.runtime.errors import Unavailable
from services.orchestrator.group import inputs
from services.orchestrator.group.changes import Loaded, NewEntry

FORGET_EVERY_S = 60.0
FORGET_MAX = 1_000
"""Answers that one pass deletes at most; the rest waits for the next."""

sql = Queries(Path(__file__).parent / "study_answers.sql")
log = structlog.get_logger()


async def run(pool: Pool, kept_s: float) -> None:
    """Forget what was paid for longer ago than `kept_s`, until cancelled."""
    while True:
        try:
            await forget(pool, kept_s)
        except Unavailable as error:
            log.warning("study_answers.interrupted", error=type(error).__name__)
        await asyncio.sleep(FORGET_EVERY_S)


async def forget(pool: Pool, kept_s: float) -> None:
    """Forget what was paid for longer ago than that, or a part of it where it is much."""
    await pool.execute(sql.forget, kept_s, FORGET_MAX)


async def load(db: PoolConnection, items: Sequence[inputs.GroupInput], loaded: Loaded) -> None:
    """Read the answers to what cells of studies are about to ask, as far as there are any."""
    addresses = [
        bytes.fromhex(address)
        for item in items
        if isinstance(item, inputs.CallsRecorded) and item.record.reserve is not None
        if (row := loaded.operations.get(item.record.op_id)) is not None
        if loaded.cycles[row.cycle_id].of_study
        for address in item.record.reserve.addresses
    ]
    if addresses:
        rows = await db.fetch(sql.load, addresses)
        loaded.answers = {row["address"].hex(): row["reply"] for row in rows}


async def keep(db: PoolConnection, answered: Sequence[NewEntry]) -> None:
    """Keep the answers of calls that were paid for."""
    if answered:
        rows = [
            (
                bytes.fromhex(new.entry.address or ""),
                orjson.dumps(new.entry.reply),
                new.operation.op_id,
                new.entry.index,
            )
            for new in answered
        ]
        await db.execute(sql.keep, *map(list, zip(*rows, strict=True)))
