"""NATS loses what it said it had: its store is wiped, or the end of a stream is gone."""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import psutil
import pytest
from pydantic import SecretStr

from contracts.subjects.subject import BACKBONE
from libs.bus.permissions import permissions
from libs.bus.streams import DUPLICATE_WINDOW_S
from libs.postgres.migrate import migrate
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.nats_server import store_dir
from services import launcher
from tests.fakes.channel_server import ChannelServer, channel_server
from tests.fakes.log_lines import log_lines
from tests.integration.notifier.conftest import (
    SOON_S,
    Backbone,
    heard,
    lead,
    settled,
    webhook,
    working,
)
from tests.open_folder import open_folder

DEATH_S = 10.0
NAME = "phone"


@dataclass(frozen=True)
class Losing(Backbone):
    """A backbone whose NATS forgets."""

    servers: Servers

    async def wipe(self) -> None:
        """kill -9 of NATS, whose store is gone before it starts again."""
        pid = self.servers.pid("nats")
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + DEATH_S
        # Nothing is awaited: the supervisor of this loop would start it too early.
        while _lives(pid) and time.monotonic() < until:
            time.sleep(0.002)  # noqa: ASYNC251
        shutil.rmtree(store_dir(self.servers.server_dir) / "jetstream")
        await self.servers.replaced("nats", pid)

    async def stored(self, number: int) -> None:
        """Wait until NATS has said that it has so many notices."""
        async with self.database() as db, asyncio.timeout(SOON_S):
            while await db.fetchval("select notices_number from relay_cursor") != number:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
async def losing() -> AsyncIterator[Losing]:
    """Servers of this test's own, which run in its loop."""
    with open_folder() as folder:
        async with (
            embedded_servers(
                folder / "data", permissions(), ROLES, database_owner=OWNER_ROLE
            ) as servers,
            AsyncExitStack() as stack,
        ):
            settings = Settings(
                data_dir=servers.data_dir,
                nats_url=servers.nats_url,
                postgres_dsn=SecretStr(servers.postgres_address),
                secrets_dir=servers.secrets_dir,
                relay_poll_s=0.05,
            )
            await migrate(servers.postgres_dsn(OWNER_ROLE))
            for name in BACKBONE:
                await stack.enter_async_context(launcher.service_running(name, settings))
            yield Losing(settings, servers)


@pytest.fixture
def server() -> Iterator[ChannelServer]:
    with channel_server() as running:
        yield running


@pytest.fixture
def notifier(losing: Losing, server: ChannelServer, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of a notifier with one webhook."""
    lead(monkeypatch, NAME, server.url)
    return losing.with_channels(webhook(NAME))


async def told_once(losing: Losing, server: ChannelServer, notifier: Settings) -> list[str]:
    """One event that a notifier has sent, which then stopped."""
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        events = await losing.happens(1)
        await settled(losing, NAME, 1)
        assert await heard(server, 1) == events
    return list(events)


async def test_what_was_not_heard_yet_is_published_again_to_a_store_made_anew_in_order(
    losing: Losing, server: ChannelServer, notifier: Settings
) -> None:
    events = await told_once(losing, server, notifier)
    events += await losing.happens(2, 3, 4)
    await losing.stored(4)
    with log_lines() as lines:
        await losing.wipe()
        events += await losing.happens(5)
        async with AsyncExitStack() as stack:
            await working(stack, notifier)
            came = await heard(server, 5)
            # What happens before the relay has seen that the store is new may come before them.
            assert [event for event in came if event != events[-1]] == events[:-1]
            assert sorted(came) == sorted(events), "each once"
            found = await settled(losing, NAME, 5)
    assert found == dict.fromkeys(events, "sent")
    (line,) = [line for line in lines if line["event"] == "relay.notices_again"]
    assert line["why"] == "another stream"


async def test_what_a_stream_has_lost_at_its_end_is_published_again(
    losing: Losing,
    server: ChannelServer,
    notifier: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after a power cut, before NATS had written to the disk what it had acknowledged: here the
    record says so, and no channel has them."""
    monkeypatch.setattr("services.orchestrator.clocks.lost_notices.LOOK_EVERY_S", 0.1)
    events = await told_once(losing, server, notifier)
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        events += await losing.happens(2, 3)
        await settled(losing, NAME, 3)
    # A stream that has lost them does not know them either; this one swallows them that long.
    await asyncio.sleep(DUPLICATE_WINDOW_S + 0.5)
    async with losing.database(OWNER_ROLE) as db:
        await db.execute("delete from notifications where event_id = $1", events[-1])
        await db.execute("update relay_cursor set notices_number = notices_number + 1")
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        await asyncio.to_thread(server.wait, lambda s: len(s.event_ids) == 4, SOON_S)
    assert server.event_ids == [*events, events[-1]], "those before it are known by their ids"


async def test_no_more_than_a_share_is_published_again_and_that_is_the_newest(
    losing: Losing,
    server: ChannelServer,
    notifier: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.orchestrator.clocks.lost_notices.AGAIN_MAX", 2)
    events = await told_once(losing, server, notifier)
    events += await losing.happens(2, 3, 4)
    await losing.stored(4)
    await losing.wipe()
    async with AsyncExitStack() as stack:
        await working(stack, notifier)
        assert await heard(server, 3) == [events[0], *events[-2:]]
