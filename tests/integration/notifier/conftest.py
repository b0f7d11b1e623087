"""Servers, the provisioner and an orchestrator, and events written as the desk writes them."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import orjson
import pytest
from pydantic import SecretStr

from contracts.audit import EventType
from contracts.notice import ChannelsQuery, ChannelsView
from contracts.subjects.notices import CHANNELS
from contracts.subjects.subject import BACKBONE
from libs.bus.client import Client, DeskNotReachable, open_client
from libs.postgres.migrate import migrate
from libs.postgres.pool import ORCHESTRATOR_ROLE, OWNER_ROLE, dsn_for
from libs.runtime import ids
from libs.runtime.notify_settings import Notify
from libs.runtime.settings import Settings
from libs.servers.embedded_thread import held_in_thread
from services import launcher
from tests.fakes.channel_server import ChannelServer
from tests.fakes.notable import DATA, OF_THE_DESK, OWNERS
from tests.open_folder import open_folder

SOON_S = 60.0
INSERT = """
insert into state_events (started_on, op_id, seq, cycle_id, type, owner, session_id, data)
values ($1, $2, $3, $4, $5, $6, $7, $8::jsonb)
"""


@dataclass(frozen=True)
class Backbone:
    """What a notifier needs around it."""

    settings: Settings

    def with_channels(self, notify: Mapping[str, Any]) -> Settings:
        """The settings of a notifier."""
        return self.settings.model_copy(update={"notify": Notify.model_validate(notify)})

    @asynccontextmanager
    async def database(
        self, role: str = ORCHESTRATOR_ROLE
    ) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        dsn = dsn_for(self.settings.postgres_address, role, self.settings.secrets_path)
        db = await asyncpg.connect(dsn)
        try:
            yield db
        finally:
            await db.close()

    async def happens(
        self, *quantities: int, kind: EventType = EventType.ORDER_FILLED
    ) -> Sequence[str]:
        """One event of the kind for each quantity, in this order; their ids."""
        async with self.database() as db, db.transaction():
            return [await happened(db, kind, quantity) for quantity in quantities]

    async def remembered(self, channel: str) -> Mapping[str, str]:
        """What became of a channel's notices, by event."""
        async with self.database() as db:
            rows = await db.fetch(
                "select event_id, status from notifications where channel = $1", channel
            )
        return {str(row["event_id"]): row["status"] for row in rows}


async def happened(db: "asyncpg.Connection[asyncpg.Record]", kind: EventType, quantity: int) -> str:
    """Write one event, as the desk does; its id."""
    node: UUID = uuid.uuid4()
    data = {**DATA[kind], **({"quantity": str(quantity)} if quantity else {})}
    session = None if kind in OF_THE_DESK else "main/2012-06-29"
    today = datetime.now(UTC).date()
    body = orjson.dumps(data).decode()
    await db.execute(INSERT, today, node, 0, node, kind.value, OWNERS[kind], session, body)
    return str(ids.event_id(node, 0))


@asynccontextmanager
async def backbone_in(folder: Path, **settings: Any) -> AsyncIterator[Backbone]:
    """Embedded servers, the provisioner and one orchestrator, while the block runs."""
    made = Settings(data_dir=folder / "data", relay_poll_s=0.05, **settings)
    async with AsyncExitStack() as stack:
        placed = await stack.enter_async_context(launcher.servers_of(made))
        await migrate(dsn_for(placed.postgres_address, OWNER_ROLE, placed.secrets_path))
        for name in BACKBONE:
            await stack.enter_async_context(launcher.service_running(name, placed))
        yield Backbone(placed)


@pytest.fixture(scope="module")
def backbone() -> Iterator[Backbone]:
    """One for all tests of a file; each has channels of its own."""
    with open_folder() as folder, held_in_thread(lambda: backbone_in(folder)) as running:
        yield running


@pytest.fixture
def name() -> str:
    """A channel of the test's own."""
    return f"c{uuid.uuid4().hex[:8]}"


def webhook(name: str, **changed: Any) -> dict[str, Any]:
    """The settings of one webhook that hears of every event."""
    return {
        "channels": {name: {"service": "webhook", "timeout_s": 5, **changed}},
        "rules": {"all": {"events": ["fill", "halt", "dead_letter", "outage"], "to": [name]}},
    }


def lead(monkeypatch: pytest.MonkeyPatch, name: str, url: str) -> SecretStr:
    """Say where a webhook is, and by which key."""
    monkeypatch.setenv(f"DESKBUS_NOTIFY_{name.upper()}", url)
    monkeypatch.setenv(f"DESKBUS_NOTIFY_{name.upper()}_KEY", "a key of the test's own")
    return SecretStr(url)


async def working(stack: AsyncExitStack, settings: Settings) -> None:
    """A notifier that has the lease, in the stack."""
    await stack.enter_async_context(launcher.service_running("notifier", settings))
    async with (
        asyncio.timeout(SOON_S),
        open_client(settings.nats_address, settings.secrets_path) as client,
    ):
        await at_work(client)


async def at_work(client: Client) -> ChannelsView:
    """What the notifier shows, once it has the lease: the one before it may have to let go."""
    while True:
        with contextlib.suppress(DeskNotReachable):
            view = await client.ask(CHANNELS, ChannelsQuery())
            if view.working:
                return view
        await asyncio.sleep(0.05)


async def heard(server: ChannelServer, count: int) -> list[str]:
    """The events that the server took, once they are so many."""
    await asyncio.to_thread(server.wait, lambda s: len(set(s.event_ids)) >= count, SOON_S)
    return server.event_ids


async def settled(backbone: Backbone, channel: str, count: int) -> Mapping[str, str]:
    """What is remembered of a channel, once so much has ended."""
    async with asyncio.timeout(SOON_S):
        while True:
            found = await backbone.remembered(channel)
            if sum(status != "due" for status in found.values()) >= count:
                return found
            await asyncio.sleep(0.05)
