"""One whole desk for the session: its servers and all services, in a thread of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
import structlog

from libs.bus.connection import connect
from libs.bus.streams import COMMAND_STREAM
from libs.postgres.pool import dsn_for
from libs.runtime.http_address import http_address
from libs.runtime.settings import Settings
from libs.servers.embedded_thread import held_in_thread
from libs.servers.postgres_server import SUPERUSER
from libs.telemetry.logging import configure_logging
from services import launcher
from tests.flat_settings import settings_with
from tests.held_commands import not_handed_over
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.caller import Caller, calling, wish
from tests.open_folder import open_folder

HELD_BACK_S = 60.0
HTTP_S = 60.0

log = structlog.get_logger()


@dataclass(frozen=True)
class Desk:
    """The running desk as a test sees it."""

    settings: Settings

    @property
    def url(self) -> str:
        return self.settings.nats_address

    @property
    def secrets_dir(self) -> Path:
        return self.settings.secrets_path

    def calling(self, identity: str) -> AbstractAsyncContextManager[Caller]:
        """A connection under any identity's key."""
        return calling(self.url, self.secrets_dir, identity)

    @asynccontextmanager
    async def postgres(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        """A connection as the superuser, who alone may change what is on record."""
        dsn = dsn_for(self.settings.postgres_address, SUPERUSER, self.secrets_dir)
        db = await asyncpg.connect(dsn)
        try:
            yield db
        finally:
            await db.close()

    @asynccontextmanager
    async def held_back(self, durable: str) -> AsyncIterator[None]:
        """No service is given this command while the block runs: cycles wait right before it."""
        client = await connect(self.url, "provisioner", self.secrets_dir)
        until = (datetime.now(UTC) + timedelta(seconds=HELD_BACK_S)).isoformat()
        try:
            await client.jsm().pause_consumer(COMMAND_STREAM, durable, until)
            try:
                with not_handed_over(durable):
                    yield
            finally:
                await client.jsm().resume_consumer(COMMAND_STREAM, durable)
        finally:
            await client.close()


@pytest.fixture(scope="session")
def make_open_dir() -> Iterator[Callable[[], Path]]:
    """Makes folders that every user may enter."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(open_folder())


@asynccontextmanager
async def watched(settings: Settings) -> AsyncIterator[launcher.OpenDesk]:
    """The desk; should a part of it fail for good, the log of the test says so."""
    async with launcher.desk(settings) as running:
        finished = asyncio.ensure_future(running.finished())
        finished.add_done_callback(
            lambda ended: ended.cancelled() or log.error("desk.lost", why=repr(ended.exception()))
        )
        yield running
        finished.cancel()


@contextmanager
def desk_in(folder: Path, own_environment_in: OwnEnvironmentIn, **settings: Any) -> Iterator[Desk]:
    """A whole desk with its data in a folder, other settings as given."""
    configure_logging("error", "json")
    with own_environment_in(folder) as environment:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            made = settings_with(data_dir=folder / "data", orchestrator_sweep_s=0.1, **settings)
        with held_in_thread(lambda: watched(made)) as held:
            yield Desk(held.settings)


@pytest.fixture(scope="session")
def desk(make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn) -> Iterator[Desk]:
    """The shared desk, which answers HTTP too; each test uses keys and accounts of its own and
    leaves it running."""
    with desk_in(make_open_dir(), own_environment_in, http_enabled=True, http_port=0) as running:
        yield running


@pytest.fixture
async def site(desk: Desk) -> AsyncIterator[httpx2.AsyncClient]:
    """A caller of its pages."""
    async with _calling_http(desk, "") as client:
        yield client


@pytest.fixture
async def http(desk: Desk) -> AsyncIterator[httpx2.AsyncClient]:
    """A caller of its HTTP API."""
    async with _calling_http(desk, "/api/v1") as client:
        yield client


def _calling_http(desk: Desk, below: str) -> httpx2.AsyncClient:
    address = http_address(desk.settings)
    assert address is not None
    return httpx2.AsyncClient(base_url=f"{address.url}{below}", verify=False, timeout=HTTP_S)


@pytest.fixture
async def user(desk: Desk) -> AsyncIterator[Caller]:
    """Anybody's own program."""
    async with desk.calling("user") as caller:
        yield caller


@pytest.fixture(scope="module")
def unharmed(desk: Desk) -> Iterator[None]:
    """After the module: whatever was done to it, the desk completes a good cycle."""
    yield

    async def good_cycle() -> str:
        async with desk.calling("user") as caller:
            return str((await caller.run(wish()))["status"])

    assert asyncio.run(good_cycle()) == "completed"
