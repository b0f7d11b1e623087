"""The relay beside transactions that are not its own."""

import asyncio
import contextlib
import uuid
from datetime import UTC, datetime

import pytest

from contracts.audit import EventType
from libs.bus.publisher import OutgoingEvent, Publisher
from libs.bus.streams import StreamState
from libs.postgres.pool import Connection, Pool
from libs.runtime import ids
from libs.runtime.settings import Settings
from services.orchestrator.clocks.relay import Relay

POLL_S = 40.0
"""More than the setting allows: on a machine under load, too, the relay looks long before."""
SEEN_S = 0.2
"""Longer than the relay takes to look for the first time; where it is not, the test is easier."""
INSERT = """
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, data)
values ($1, $2, 0, $2, $3, 'orchestrator', '{}')
"""


class Heard(Publisher):
    """A bus on which an event is heard once it is published."""

    reconnects = 0

    def __init__(self) -> None:
        self.ids: list[uuid.UUID] = []
        self.news = asyncio.Event()

    async def event(self, event: OutgoingEvent) -> None:
        self.ids.append(event.event_id)
        self.news.set()

    async def notice(self, event: OutgoingEvent) -> None:
        """Of a stream that is another one than an earlier test's, notices are published again."""

    async def confirmed(self) -> int:
        return 0

    async def notice_stream(self) -> StreamState:
        return StreamState(datetime.now(UTC), 0)


async def happened(db: Pool | Connection) -> uuid.UUID:
    node = uuid.uuid4()
    await db.execute(INSERT, datetime.now(UTC).date(), node, EventType.DATA_READ)
    return ids.event_id(node, 0)


async def test_an_event_behind_another_transaction_is_published_once_that_has_ended(
    pool: Pool,
) -> None:
    heard = Heard()
    relay = Relay(pool, heard, Settings().model_copy(update={"relay_poll_s": POLL_S}))
    running = asyncio.create_task(relay.run())
    try:
        async with pool.acquire() as other, other.transaction():
            # Its own events would come first, by the order of transactions.
            before = await happened(other)
            after = await happened(pool)
            relay.wake(hurry=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SEEN_S):
                    await heard.news.wait()
            assert after not in heard.ids
        # Nobody wakes it, and it would look by itself long after this.
        async with asyncio.timeout(POLL_S / 2):
            while after not in heard.ids:
                heard.news.clear()
                await heard.news.wait()
        assert heard.ids.index(before) < heard.ids.index(after)
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
