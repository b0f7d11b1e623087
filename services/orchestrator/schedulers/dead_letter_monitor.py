"""Tells of dead letters as they are kept: each becomes an event, once.

Services and the server itself write letters past the orchestrator, so it looks for new ones. How
far it has come is on record; a letter's event has its id from the letter, so that two orchestrators
that look at the same time tell it once.
"""

import asyncio
from datetime import datetime

import structlog

from contracts.event_data import LetterKept
from libs.bus.dead_letters import DeadLetters
from libs.bus.publisher import UNPUBLISHED
from libs.postgres.pool import Pool
from libs.runtime import ids
from libs.runtime.errors import Unavailable
from services.orchestrator.commit import OnCommit
from services.orchestrator.notices import sql

LOOK_EVERY_S = 2.0
LETTERS_MAX = 50
"""Letters that one look tells; the rest waits for the next."""

log = structlog.get_logger()


class DeadLetterMonitor:
    """Looks every LOOK_EVERY_S, until cancelled."""

    def __init__(self, pool: Pool, letters: DeadLetters, on_commit: OnCommit) -> None:
        self._pool = pool
        self._letters = letters
        self._on_commit = on_commit

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                await self.look()
            except (Unavailable, *UNPUBLISHED) as error:
                log.warning("dead_letter_monitor.interrupted", error=type(error).__name__)
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Tell of the letters that came since the last look."""
        last = await self._letters.last()
        known: int | None = await self._pool.fetchval(sql.read_letter_cursor)
        seen = last if known is None else known  # none is told that was there before all looks
        if seen > last:  # the stream was made anew
            seen = 0
        until = min(last, seen + LETTERS_MAX)
        if until == known:
            return
        letters = await self._letters.between(seen + 1, until)
        async with self._pool.acquire() as db, db.transaction():
            for letter in letters:
                node = ids.letter_id(letter.sequence, letter.at)
                kept = LetterKept(
                    sequence=letter.sequence, subject=letter.subject, code=letter.failure.code
                )
                at: datetime = letter.at
                await db.execute(sql.tell_letter_kept, node, kept.model_dump_json(), at.date())
            await db.execute(sql.move_letter_cursor, until)
        if letters:
            self._on_commit(hurry=True)
