"""Notices to people: kept, given out in order, and remembered once it was sent.

The notifier asks; it has no database. One notifier at a time has the lease, and its epoch fences
those before it: so a channel's notices are sent in the order in which they were kept.
"""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from datetime import datetime
from pathlib import Path

import structlog
from pydantic import ValidationError

from contracts.notice import (
    DueNotice,
    KeepNotices,
    LeaseNotifier,
    NextNotices,
    Notice,
    NoticesGivenUp,
    NoticesKept,
    NoticesNext,
    NotifierLease,
    Settled,
)
from contracts.subjects.notices import KEEP_NOTICES, LEASE_NOTIFIER, NEXT_NOTICES
from contracts.subjects.subject import Answered
from libs.bus.server import Server
from libs.postgres.pool import Connection, Pool, Record
from libs.postgres.queries import Queries
from libs.runtime import ids
from libs.runtime.errors import DeskError, Unavailable
from libs.runtime.notify_settings import GIVE_UP_S_MAX
from libs.runtime.settings import Settings
from libs.runtime.wording import describe
from services.orchestrator.commit import OnCommit

FORGET_EVERY_S = 600.0
STALE_AFTER_S = 86_400.0
"""After the longest that a channel may be waited for, by then it is not set any more."""
FORGET_MAX = 5_000
"""Rows that one pass deletes at most; the rest waits for the next."""

sql = Queries(Path(__file__).with_name("notices.sql"))
log = structlog.get_logger()


class ChannelUnknown(DeskError):
    """A channel that no notifier has named when it took the lease."""

    code = "channel_unknown"


class Notices:
    """Answers the notifier's three questions, and forgets what is long over."""

    def __init__(self, pool: Pool, settings: Settings, on_commit: OnCommit) -> None:
        self._pool = pool
        self._kept_s = settings.notices_kept_s
        self._lease_s = settings.lease_s
        self._on_commit = on_commit
        self._lease_end: tuple[datetime | None, float] = (None, 0.0)
        """When another's lease ends, and since when by the steady clock it does."""

    async def serve(self, server: Server) -> None:
        """Begin to answer."""
        await server.serve(LEASE_NOTIFIER, lambda _, asked: _if_available(self._lease(asked)))
        await server.serve(KEEP_NOTICES, lambda _, asked: _if_available(self._keep(asked)))
        await server.serve(NEXT_NOTICES, lambda _, asked: _if_available(self._next(asked)))

    async def run(self) -> None:
        """Forget what is long over, until cancelled."""
        while True:
            try:
                await self.tidy()
            except Unavailable as error:
                log.warning("notices.interrupted", error=type(error).__name__)
            await asyncio.sleep(FORGET_EVERY_S)

    async def tidy(self) -> None:
        """Forget what is long over, and give up what nobody can be waiting for any more."""
        await self._pool.execute(sql.forget_notices, self._kept_s, FORGET_MAX)
        async with self._pool.acquire() as db, db.transaction():
            stale = await db.fetch(sql.stale_notices, GIVE_UP_S_MAX + STALE_AFTER_S, FORGET_MAX)
            lost = [
                await _settle(
                    db,
                    row["channel"],
                    [
                        Settled(event_id=event_id, outcome="given_up", code="channel_gone")
                        for event_id in row["event_ids"]
                    ],
                )
                for row in stale
            ]
        if any(lost):
            self._on_commit(hurry=True)

    async def _lease(self, asked: LeaseNotifier) -> NotifierLease:
        async with self._pool.acquire() as db, db.transaction():
            if asked.release:
                await db.execute(sql.give_lease_back, asked.instance)
                return NotifierLease(granted=False)
            run_out = self._run_out()
            epoch: int | None = await db.fetchval(
                sql.take_lease, asked.instance, self._lease_s, run_out
            )
            if epoch is None:
                end = await db.fetchval(sql.lease_end)
                if end != self._lease_end[0]:
                    self._lease_end = (end, time.monotonic())
                return NotifierLease(granted=False)
            await db.execute(sql.know_channels, sorted(asked.channels))
        return NotifierLease(granted=True, epoch=epoch, lease_s=self._lease_s)

    def _run_out(self) -> datetime | None:
        """The end of a lease that was not renewed for as long as one lasts; None where there is
        none. The database's clock may have jumped back, and then it lies far ahead."""
        end, since = self._lease_end
        return end if time.monotonic() - since > self._lease_s else None

    async def _keep(self, asked: KeepNotices) -> NoticesKept:
        rows = [
            (
                kept.notice.event_id,
                due.channel,
                kept.notice.model_dump_json(),
                due.gathered,
                kept.notice.at,
                due.due_at,
            )
            for kept in asked.notices
            for due in kept.due
        ]
        async with self._pool.acquire() as db, db.transaction():
            if not await db.fetchval(sql.hold_lease, asked.epoch):
                return NoticesKept(outcome="fenced")
            columns = list(map(list, zip(*rows, strict=True))) if rows else [[]] * 6
            kept: int = await db.fetchval(sql.keep_notices, *columns)
        return NoticesKept(outcome="ok", kept=kept)

    async def _next(self, asked: NextNotices) -> NoticesNext:
        channel = asked.channel
        async with self._pool.acquire() as db, db.transaction():
            # In the same order as a lease is asked for: first its row, then the channel's.
            has_lease = await db.fetchval(sql.hold_lease, asked.epoch) is True
            lost = await _settle(db, channel, asked.settled) if asked.settled else False
            due: list[DueNotice] = []
            if has_lease:
                if asked.failed:
                    await db.execute(
                        sql.try_failed, channel, asked.failed, asked.again_in_s, asked.tried
                    )
                if asked.held:
                    await db.execute(sql.hold_notices, channel, asked.held, asked.held_until)
                rows = await db.fetch(sql.next_notices, channel, asked.limit)
                due, unreadable = _read(channel, rows)
                if unreadable:
                    lost = await _settle(db, channel, unreadable) or lost
            state = await db.fetchrow(sql.channel_now, channel)
        if lost:
            self._on_commit(hurry=True)
        if state is None:
            raise ChannelUnknown(f"no notifier has named a channel {channel!r}")
        return _answer(state, due, has_lease=has_lease)


async def _settle(db: Connection, channel: str, settled: Sequence[Settled]) -> bool:
    """Write what became of notices; True where an event tells that some were given up."""
    columns = (
        [word.event_id for word in settled],
        [word.outcome for word in settled],
        [word.code for word in settled],
    )
    lost = await db.fetchrow(sql.settle_notices, channel, *columns)
    if lost is None or not lost["given_up"]:
        return False
    data = NoticesGivenUp(
        channel=channel,
        count=lost["given_up"],
        code=lost["error_code"],
        oldest_at=lost["oldest_at"],
    )
    node = ids.given_up_id(channel, settled[0].event_id)
    await db.execute(sql.tell_given_up, node, data.model_dump_json())
    return True


def _read(channel: str, rows: Sequence[Record]) -> tuple[list[DueNotice], list[Settled]]:
    """The notices of these rows; those that cannot be read are given up, or all behind would wait
    for them."""
    due, unreadable = [], []
    for row in rows:
        try:
            notice = Notice.model_validate_json(row["notice"])
        except ValidationError as error:
            of, why = row["event_id"], describe(error)
            log.error("notices.unreadable", channel=channel, event_id=str(of), why=why)  # noqa: TRY400
            unreadable.append(Settled(event_id=of, outcome="given_up", code="unreadable"))
            continue
        fields = {name: row[name] for name in ("due_at", "gathered", "tries")}
        due.append(DueNotice(notice=notice, **fields))
    return due, unreadable


def _answer(state: Record, due: Sequence[DueNotice], *, has_lease: bool) -> NoticesNext:
    due_in_s = state["due_in_s"]
    waits = None if due_in_s is None else max(due_in_s, state["try_in_s"], 0.0)
    return NoticesNext(
        outcome="ok" if has_lease else "fenced",
        now=state["now"],
        notices=tuple(due),
        wait_s=0.0 if due else waits,
        waiting=state["waiting"],
        failures=state["failures"],
        failing_since=state["failing_since"],
    )


async def _if_available(answer: Awaitable[Answered]) -> Answered | None:
    try:
        return await answer
    except Unavailable:
        return None  # unanswered: another orchestrator, or this one later, is asked again
