"""Servers, the provisioner and an orchestrator, and events written as the desk writes them."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
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
from contracts.subjects.subject import BACKBONE
from libs.bus.connection import BusConnection
from libs.bus.streams import NotProvisioned, channel_since
from libs.postgres.migrate import migrate
from libs.postgres.pool import ORCHESTRATOR_ROLE, OWNER_ROLE, dsn_for
from libs.runtime import ids
from libs.runtime.notify_settings import Notify
from libs.runtime.settings import Settings
from libs.servers.embedded_thread import held_in_thread
from services import launcher
from tests.fakes.channel_server import ChannelServer
from tests.fakes.notable import DATA, OF_THE_DESK
from tests.flat_settings import settings_with
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
        return self.settings.changed(notify=Notify.model_validate(notify))

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
        """The status of each of a channel's notices, by event."""
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
    await db.execute(INSERT, today, node, 0, node, kind.value, kind.owner, session, body)
    return str(ids.event_id(node, 0))


@asynccontextmanager
async def backbone_in(folder: Path, **settings: Any) -> AsyncIterator[Backbone]:
    """Embedded servers, the provisioner and one orchestrator, while the block runs."""
    made = settings_with(data_dir=folder / "data", **settings)
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
        "rules": {"all": {"events": ["fill", "halt", "undelivered"], "to": [name]}},
    }


def lead(monkeypatch: pytest.MonkeyPatch, name: str, url: str) -> SecretStr:
    """Say where a webhook is, and by which key."""
    monkeypatch.setenv(f"DESKBUS_NOTIFY_{name.upper()}", url)
    monkeypatch.setenv(f"DESKBUS_NOTIFY_{name.upper()}_KEY", "a key of the test's own")
    return SecretStr(url)


async def running(stack: AsyncExitStack, settings: Settings) -> None:
    """A notifier with these settings, and the provisioner that makes its channels, in the stack."""
    for name in ("provisioner", "notifier"):
        await stack.enter_async_context(launcher.service_running(name, settings))


async def heard(server: ChannelServer, count: int) -> list[str]:
    """The events that the server took, once they are so many."""
    await asyncio.to_thread(server.wait, lambda s: len(set(s.event_ids)) >= count, SOON_S)
    return server.event_ids


async def settled(backbone: Backbone, channel: str, count: int) -> Mapping[str, str]:
    """What is on record of a channel, once so many have ended."""
    return await _once(
        backbone, channel, lambda rows: sum(status != "due" for status in rows.values()) >= count
    )


async def recorded(backbone: Backbone, channel: str, record: Mapping[str, str]) -> None:
    """Wait until exactly this is on record of a channel."""
    await _once(backbone, channel, lambda rows: rows == record)


async def _once(
    backbone: Backbone, channel: str, is_so: Callable[[Mapping[str, str]], bool]
) -> Mapping[str, str]:
    async with asyncio.timeout(SOON_S):
        while True:
            if is_so(rows := await backbone.remembered(channel)):
                return rows
            await asyncio.sleep(0.05)


async def provisioned(bus: BusConnection, channel: str) -> None:
    """Wait until the channel's consumer is there."""
    async with asyncio.timeout(SOON_S):
        while True:
            with contextlib.suppress(NotProvisioned):
                await channel_since(bus, channel)
                return
            await asyncio.sleep(0.05)
