"""The relay beside transactions that are not its own."""

import asyncio
import contextlib
import uuid
from datetime import UTC, datetime

import pytest

from contracts.audit import EventType
from libs.bus.publisher import OutgoingEvent, Publisher
from libs.postgres.pool import Pool, PoolConnection
from libs.runtime import ids
from services.orchestrator.schedulers import relay as module
from services.orchestrator.schedulers.relay import Relay

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

    def __init__(self) -> None:
        self.ids: list[uuid.UUID] = []
        self.news = asyncio.Event()

    async def event(self, event: OutgoingEvent) -> None:
        self.ids.append(event.event_id)
        self.news.set()

    async def confirmed(self) -> None:
        """All that was published is there."""


async def happened(db: Pool | PoolConnection) -> uuid.UUID:
    node = uuid.uuid4()
    await db.execute(INSERT, datetime.now(UTC).date(), node, EventType.DATA_READ)
    return ids.event_id(node, 0)


async def test_an_event_behind_another_transaction_is_published_once_that_has_ended(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    monkeypatch.setattr(module, "POLL_S", POLL_S)
    relay = Relay(pool, heard)
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
