"""The record of messages to people, which the notifier asks for: it has no database."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from contracts.notice import EndedNotices, KeepNotices, SettleNotices
from contracts.subjects.notices import KEEP_NOTICES, SETTLE_NOTICES
from libs.bus.server import Server
from libs.bus.streams import NOTICE_AGE_S_MAX
from libs.postgres.pool import Pool
from libs.postgres.queries import Queries
from libs.runtime.errors import Unavailable
from libs.runtime.settings import Settings

TIDY_EVERY_S = 600.0
STALE = timedelta(seconds=NOTICE_AGE_S_MAX, days=1)
"""What waits for longer is no longer in NATS: it was lost, or its channel was removed."""
FORGET_MAX = 5_000
"""Rows that one pass deletes at most; the rest waits for the next."""
LOST = "lost"
"""The code of notices that NATS does not hold any more."""

sql = Queries(Path(__file__).with_name("notices.sql"))
log = structlog.get_logger()


class Notices:
    """Answers the notifier's two questions, and tidies the record."""

    def __init__(self, pool: Pool, settings: Settings) -> None:
        self._pool = pool
        self._kept_s = settings.notify.kept_s

    async def serve(self, server: Server) -> None:
        """Begin to answer."""
        await server.serve(KEEP_NOTICES, lambda _, query: _if_available(self._keep(query)))
        await server.serve(SETTLE_NOTICES, lambda _, query: _if_available(self._settle(query)))

    async def run(self) -> None:
        """Tidy the record, until cancelled."""
        while True:
            try:
                await self.tidy()
            except Unavailable as error:
                log.warning("notices.interrupted", error=type(error).__name__)
            await asyncio.sleep(TIDY_EVERY_S)

    async def tidy(self) -> None:
        """Delete what ended long ago, and give up what NATS cannot hold any more."""
        await self._pool.execute(sql.forget_notices, self._kept_s, FORGET_MAX)
        stale = datetime.now(UTC) - STALE
        await self._pool.execute(sql.give_up_notices, None, stale, LOST)

    async def _keep(self, query: KeepNotices) -> EndedNotices:
        async with self._pool.acquire() as db, db.transaction():
            await db.execute(sql.give_up_notices, query.channel, query.since, LOST)
            ended = await db.fetchval(
                sql.keep_notices,
                query.channel,
                [kept.notice.event_id for kept in query.notices],
                [kept.notice.model_dump_json() for kept in query.notices],
                [kept.notice.at for kept in query.notices],
                [kept.due_at for kept in query.notices],
            )
        return EndedNotices(ended=tuple(ended))

    async def _settle(self, query: SettleNotices) -> EndedNotices:
        async with self._pool.acquire() as db, db.transaction():
            ended = await db.fetchval(
                sql.settle_notices,
                query.channel,
                list(query.tried),
                query.code,
                query.give_up_after_s,
            )
        return EndedNotices(ended=tuple(ended))


async def _if_available(answer: Awaitable[EndedNotices]) -> EndedNotices | None:
    try:
        return await answer
    except Unavailable:
        return None  # unanswered: the notifier asks again
