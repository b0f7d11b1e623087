"""Answers that studies have paid for: whoever asks the same of the same model in one gets them.

They are written in the transaction that settles what they cost, and read in the one that would hold
money back for asking again.
"""

from collections.abc import Sequence
from pathlib import Path

import orjson

from libs.postgres.pool import Connection
from libs.postgres.queries import Queries
from services.orchestrator.group import inputs
from services.orchestrator.group.changes import Loaded, NewEntry

sql = Queries(Path(__file__).parent / "study_answers.sql")


async def load(db: Connection, items: Sequence[inputs.GroupInput], loaded: Loaded) -> None:
    """Read the answers to what cells of studies are about to ask, as far as there are any."""
    addresses = [
        bytes.fromhex(address)
        for item in items
        if isinstance(item, inputs.Recorded) and item.record.reserve is not None
        if (row := loaded.operations.get(item.record.op_id)) is not None
        if loaded.cycles[row.cycle_id].of_study
        for address in item.record.reserve.addresses
    ]
    if addresses:
        rows = await db.fetch(sql.load, addresses)
        loaded.answers = {row["address"].hex(): row["reply"] for row in rows}


async def keep(db: Connection, answered: Sequence[NewEntry]) -> None:
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
