"""The relay: publishes state_events in commit-safe order, at least once.

One orchestrator at a time holds the advisory lock. Rows are read below the oldest running
transaction, so that none can appear behind the cursor; the cursor moves after the publish. An
event's `sequence` is its rank within its cycle in that order: derived, gapless, the same for all.
"""

import asyncio
import time
from enum import Enum, auto

import structlog

from libs.bus.publisher import UNPUBLISHED, Publisher
from libs.postgres.events import Ranks
from libs.postgres.pool import Pool, PoolConnection
from libs.runtime.background import event_within
from libs.runtime.errors import Unavailable
from services.orchestrator.schedulers.outgoing import outgoing
from services.orchestrator.store import sql

LOCK_KEY = 0x72656C61  # "rela"
RETRY_AFTER_S = 0.5
BATCH_MAX = 500
"""Events that are published before the cursor moves."""
WAIT_S = 0.004
"""How long events gather, where nobody waits for one of them."""
POLL_S = 0.2
"""How long the relay sleeps when nothing is new."""
IDLE_S_MAX = 12
"""How long the relay's session may be silent; more than the longest wait for NATS."""
CURSOR_EVERY_S = 0.1
"""How often the cursor is moved while events flow: what a crash repeats at most."""

HELD_S = 0.002
"""How long the relay sleeps at first where a running transaction holds events."""

log = structlog.get_logger()


class _More(Enum):
    """Whether there are more events behind a batch."""

    NOW = auto()
    HELD = auto()
    LATER = auto()


class Relay:
    """Publishes what is committed. `wake` after a commit; `run` in one task."""

    def __init__(self, pool: Pool, publisher: Publisher) -> None:
        self._pool = pool
        self._publisher = publisher
        self._news = asyncio.Event()
        self._hurry = asyncio.Event()
        self._ranks = Ranks()
        self._sent: tuple[int, int] = (0, 0)
        self._saved = self._sent
        self._save_at = 0.0

    def wake(self, *, hurry: bool = False) -> None:
        """Events were committed; `hurry` says that somebody waits for one of them."""
        self._news.set()
        if hurry:
            self._hurry.set()

    async def run(self) -> None:
        """Wait for the lock, then relay; again after every lost connection; until cancelled."""
        while True:
            try:
                async with self._pool.acquire() as db:
                    await self._hold(db)
            except (Unavailable, *UNPUBLISHED) as error:
                log.warning("relay.interrupted", error=type(error).__name__)
            await asyncio.sleep(RETRY_AFTER_S)

    async def _hold(self, db: PoolConnection) -> None:
        if not await db.fetchval("select pg_try_advisory_lock($1)", LOCK_KEY):
            return
        log.info("relay.started")
        # A cursor that is lost in a crash repeats some events, which at-least-once allows.
        await db.execute("set synchronous_commit = off")
        # The lock is the session's: a frozen orchestrator must not keep the events to itself.
        await db.execute(f"set idle_session_timeout = '{IDLE_S_MAX}s'")
        self._ranks = Ranks()
        self._saved = self._sent = tuple(await db.fetchrow(sql.read_cursor))
        held_s = HELD_S
        try:
            while True:
                before = self._sent
                more = await self._pass(db)
                is_stuck = more is _More.HELD and self._sent == before
                held_s = self._longer(held_s) if is_stuck else HELD_S
                if more is _More.HELD:
                    # No news ends this: what is committed meanwhile is held too, and each look
                    # reads it again.
                    await asyncio.sleep(held_s)
                elif more is _More.LATER:
                    await event_within(self._news, POLL_S)
                    # Commands go first, and a batch may grow: most events are for watching.
                    await event_within(self._hurry, WAIT_S)
                await self._save(db)
        except UNPUBLISHED as error:
            # The order must hold, so nothing is skipped: begin again at the cursor.
            log.warning("relay.unpublished", error=type(error).__name__)
        finally:
            await db.execute("select pg_advisory_unlock($1)", LOCK_KEY)

    def _longer(self, held_s: float) -> float:
        """Seconds to wait for a transaction that has held events for so long: it may be long."""
        return min(2 * held_s, POLL_S)

    async def _pass(self, db: PoolConnection) -> _More:
        """Publish one batch: what is final, in order. Raises one of `UNPUBLISHED`."""
        self._news.clear()
        self._hurry.clear()
        fetched = await db.fetch(sql.unpublished_events, BATCH_MAX, *self._sent)
        rows = [row for row in fetched if row["is_final"]]
        if rows:
            numbers = await self._ranks.of(db, rows, self._sent)
            for row, number in zip(rows, numbers, strict=True):
                await self._publisher.event(outgoing(row, number))
            self._sent = (rows[-1]["xid"], rows[-1]["id"])
        if len(rows) < len(fetched):
            return _More.HELD
        return _More.NOW if len(rows) == BATCH_MAX else _More.LATER

    async def _save(self, db: PoolConnection) -> None:
        """Move the cursor, once the server has what was sent; at most every CURSOR_EVERY_S."""
        now = time.monotonic()
        if self._sent == self._saved or now < self._save_at:
            return
        await self._publisher.confirmed()
        await db.execute(sql.move_cursor, *self._sent)
        self._saved, self._save_at = self._sent, now + CURSOR_EVERY_S
