"""The desk's clock, by which limits and leases run out: it stands while nothing can be committed.

Every orchestrator beats: a small commit that lets the clock go on for a part of a lease. None does
where Postgres takes no commit, neither the beat's nor that of the work that waits, or where NATS
brings no result. Then the clock stands. The first beat after that, under the lock of the clock's
one row and of all running cycles, gives what runs the time back; how often and how long it stood is
on record in the table `outages`.

Beats are counted. Where Postgres counts fewer than this orchestrator has seen, it has lost commits
that it had confirmed: a standby that was behind became the primary, or another server answers.

Where Postgres' clock itself jumps, ahead or back, limits and leases are moved with it: they are as
long after the jump as before. `now` is Postgres' time for all orchestrators, whatever their own
machines' clocks show.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

import structlog

from contracts.event_data import OutageEnded
from libs.postgres.pool import CAN_COMMIT, DatabaseUnavailable, Pool
from libs.runtime import ids
from libs.runtime.errors import Unavailable
from libs.runtime.settings import Settings
from libs.telemetry import metrics
from services.orchestrator.commit import OnCommit
from services.orchestrator.store import sql

STANDS_AFTER_LEASES = 1 / 3
"""Without a beat for this part of a lease the clock stands: the next renewal is then still in time.
"""
BEATS_PER_LEASE = 12
JUMP_S_MIN = 2.0
"""An outage that lasted so much longer than it is since the beat before is a clock that jumped."""

Away = Literal["postgres", "nats", "desk"]
"""What an orchestrator could not reach, so that it did not beat; `desk`: nothing, it beats late."""

log = structlog.get_logger()


class DeskClock:
    """Keeps the clock going from `run` on, while `connected` says that the bus is there, and
    `refused`, which gives why Postgres commits no input, gives nothing."""

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        connected: Callable[[], bool] = lambda: True,
        on_commit: OnCommit | None = None,
        refused: Callable[[], str] = str,
    ) -> None:
        self._pool = pool
        self._refused = refused
        self._settings = settings
        self._connected = connected
        self._on_commit = on_commit
        self._away: Away = "desk"
        self._beats = 0
        self._beaten: tuple[datetime, float] | None = None
        """Postgres' time at its newest beat, and the steady clock's right before it."""
        for away in get_args(Away):
            metrics.OUTAGE_SECONDS.begin(away)

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            try:
                if not self._connected():
                    self._away = "nats"
                elif why := self._refused():
                    raise DatabaseUnavailable(why)
                else:
                    await self.beat()
                    self._away = "desk"
            except Unavailable as error:
                self._away = "postgres"
                log.warning("desk_clock.stands", why=str(error)[:400])
            await asyncio.sleep(self._settings.orchestrator.lease_s / BEATS_PER_LEASE)

    async def rest(self) -> None:
        """Let the clock go on without a beat, as nothing runs: a desk that a person stops does not
        stand still. Another orchestrator's next beat ends that; a cycle that runs keeps its time as
        in an outage. Called once all work has ended."""
        try:
            await self._pool.execute(sql.rest_clock)
        except Unavailable as error:
            log.warning("desk_clock.not_rested", why=str(error)[:400])

    def now(self) -> datetime:
        """Postgres' time: that of the newest beat, carried on by the steady clock, ahead by as long
        as that beat took. Before the first beat this machine's time."""
        if self._beaten is None:
            return datetime.now(UTC)
        at, steady = self._beaten
        return at + timedelta(seconds=time.monotonic() - steady)

    async def beat(self) -> float:
        """Let the clock go on; returns for how many seconds it had stood, or Postgres' clock
        jumped, which is below zero where it jumped back."""
        goes_on_s = self._settings.orchestrator.lease_s * STANDS_AFTER_LEASES
        asked_at = time.monotonic()
        async with self._pool.acquire() as db, db.transaction():
            # The clock's one row has its room already: a disk that takes no new row would take it.
            await db.execute(CAN_COMMIT)
            beat = await db.fetchrow(sql.beat, goes_on_s)
        if beat is not None:
            await self._counted(beat["beats"], beat["beat_at"])
            self._beaten = (beat["beat_at"], asked_at)
            return 0.0
        async with self._pool.acquire() as db, db.transaction():
            # Whoever comes second finds that it goes.
            if not await db.fetchval(sql.lock_clock):
                return 0.0
            running = [row["cycle_id"] for row in await db.fetch(sql.running_cycles)]
            await db.execute(sql.lock_cycles, running, [])
            longest_s = max(
                self._settings.orchestrator.lease_s, self._settings.orchestrator.resend_after_s_max
            )
            stood = await db.fetchrow(sql.give_time_back, goes_on_s, longest_s)
            since, until = stood["since_at"], stood["until_at"]
            stood_s: float = (until - since).total_seconds()
            jump_s = self._jumped_s(stood_s)
            outage = OutageEnded(since=since, until=until, clock_jump_s=jump_s)
            node = ids.outage_id(since)
            await db.execute(sql.tell_outage, since.date(), node, outage.model_dump_json())
        await self._counted(stood["beats"], until)
        self._beaten = (until, asked_at)
        if self._on_commit is not None:
            self._on_commit(hurry=True)
        if jump_s is not None:
            log.error("desk_clock.jumped", seconds=round(jump_s, 1), cycles=len(running))
            return stood_s
        metrics.OUTAGE_SECONDS.observe(stood_s, self._away)
        log.warning(
            "desk_clock.stood", away=self._away, seconds=round(stood_s, 1), cycles=len(running)
        )
        return stood_s

    async def _counted(self, beats: int, at: datetime) -> None:
        """Say so where Postgres counts fewer beats than before: commits are lost."""
        lost = self._beats + 1 - beats
        self._beats = beats
        if lost <= 0 or self._beaten is None:
            return
        since = self._beaten[0]
        log.error("desk_clock.commits_lost", beats=lost, since=since.isoformat())
        outage = OutageEnded(since=since, until=at, beats_lost=lost)
        node = ids.outage_id(since)
        await self._pool.execute(sql.tell_outage, since.date(), node, outage.model_dump_json())
        if self._on_commit is not None:
            self._on_commit(hurry=True)

    def _jumped_s(self, stood_s: float) -> float | None:
        """By how much Postgres' clock jumped; None where the desk stood. An orchestrator that has
        just begun cannot know whether the clock jumped ahead, and takes that for an outage."""
        if stood_s < 0 or self._beaten is None:
            return stood_s if stood_s < 0 else None
        is_jump = stood_s > time.monotonic() - self._beaten[1] + JUMP_S_MIN
        return stood_s if is_jump else None
