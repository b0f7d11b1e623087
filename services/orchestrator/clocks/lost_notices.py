"""Publishes again the notices that NATS has lost: its store was wiped, or a power cut took its end.

NATS told that it had them; the events are in Postgres. So it is on record which stream there was
and how far it had come, and one that is another or shorter is given what it may lack: notable
events since shortly before the newest one that is kept for a channel, as all before that was heard.
What was kept already is known by its id.
"""

import time

import structlog

from contracts.audit import NOTABLE_EVENTS
from libs.bus.publisher import UNPUBLISHED, Publisher
from libs.bus.streams import NOTICE_AGE_S_MAX, REPAIR_EVERY_S
from libs.postgres.pool import Connection
from services.orchestrator.clocks.outgoing import outgoing
from services.orchestrator.notices import sql

LOOK_EVERY_S = 5.0
AGAIN_MAX = 10_000
"""Events that are published again at most, the newest of them."""
BEFORE_S = 600.0
"""How much earlier than the newest that was heard another may have happened that was not: longer
than any transaction takes."""

log = structlog.get_logger()


class LostNotices:
    """Looks whether notices were lost. `look` before each batch that the relay publishes."""

    def __init__(self, publisher: Publisher, kept_s: float) -> None:
        self._publisher = publisher
        # Whatever is younger was not forgotten yet, if it was kept.
        self._back_s = min(kept_s, NOTICE_AGE_S_MAX)
        self._reconnects = -1
        self._look_at = 0.0

    async def look(self, db: Connection, sent: tuple[int, int]) -> None:
        """Every LOOK_EVERY_S, and at once where NATS was away: publish what is lost of that up to
        position `sent`, before anything that comes behind it. Raises one of `UNPUBLISHED`."""
        now, reconnects = time.monotonic(), self._publisher.reconnects
        if reconnects == self._reconnects and now < self._look_at:
            return
        self._reconnects, self._look_at = reconnects, now + LOOK_EVERY_S
        try:
            stream = await self._publisher.notice_stream()
        except UNPUBLISHED as error:
            # It is being made, or NATS stands still: no reason to keep other events back.
            log.warning("relay.notices_unknown", error=type(error).__name__)
            self._look_at = now + REPAIR_EVERY_S
            return
        known = await db.fetchrow(sql.read_notice_stream)
        is_other = known["made_at"] != stream.made_at
        is_shorter = stream.last < known["number"]
        if known["made_at"] is not None and (is_other or is_shorter):
            await self._again(db, sent, "another stream" if is_other else "its end is gone")
            stream = await self._publisher.notice_stream()
        if is_other or is_shorter:
            await db.execute(sql.know_notice_stream, stream.made_at, stream.last)

    async def _again(self, db: Connection, sent: tuple[int, int], why: str) -> None:
        rows = await db.fetch(
            sql.lost_notices, sorted(NOTABLE_EVENTS), *sent, self._back_s, BEFORE_S, AGAIN_MAX
        )
        for row in reversed(rows):
            await self._publisher.notice(outgoing(row, row["sequence"]))
        await self._publisher.confirmed()
        log.warning("relay.notices_again", why=why, events=len(rows))
