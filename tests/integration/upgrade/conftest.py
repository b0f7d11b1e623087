"""Servers, the old tree beside the present one, and desks with processes of either."""

import asyncio
import itertools
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import asyncpg
import pytest
from pydantic import SecretStr

from contracts.subjects.subject import SERVICES
from libs.bus.permissions import permissions
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.supervisor import Child, Supervisor
from services.launcher import READY_FILE_VARIABLE
from tests.integration.desk.caller import Caller, calling, wish
from tests.integration.upgrade.old_release import (
    environment_of,
    next_version,
    run_in,
    unpacked,
)

START_TIMEOUT_S = 90.0
END_TIMEOUT_S = 90.0
READY_POLL_S = 0.05
LANES = 2


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the version before."""
    return unpacked(tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="session")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of today, and one migration and one workflow version more: there is always something
    to be upgraded."""
    return next_version(tmp_path_factory.mktemp("new"))


def servers_in(folder: Path) -> AbstractAsyncContextManager[Servers]:
    """NATS with today's permissions, and a Postgres without a table."""
    return embedded_servers(folder / "desk", permissions(), ROLES, database_owner=OWNER_ROLE)


@pytest.fixture
async def servers(open_dir: Path) -> AsyncIterator[Servers]:
    """Servers of one test."""
    async with servers_in(open_dir) as running:
        yield running


@dataclass
class Asked:
    """One cycle from its request to its end; times are the loop's."""

    asked_at: float
    cycle_id: str = ""
    status: str = ""
    ended_at: float = inf


@dataclass
class Lanes:
    """Users who ask for one cycle after the other, each for an account of its own."""

    caller: Caller
    cycles: list[Asked] = field(default_factory=list)

    async def one(self) -> str:
        """One cycle to its end; its status."""
        clock = asyncio.get_running_loop().time
        asked = Asked(clock())
        self.cycles.append(asked)
        asked.cycle_id = await self.caller.accepted(wish())
        asked.status = (await self.caller.ended(asked.cycle_id, END_TIMEOUT_S))["status"]
        asked.ended_at = clock()
        return asked.status

    def crossing(self, moment: float) -> Sequence[Asked]:
        """The cycles that were in flight at a moment."""
        return [each for each in self.cycles if each.asked_at < moment < each.ended_at]

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """While the block runs every lane has a cycle in flight; at its end all have ended."""
        stopping = asyncio.Event()

        async def lane() -> None:
            while not stopping.is_set():
                await self.one()

        async with asyncio.TaskGroup() as group:
            for _ in range(LANES):
                group.create_task(lane())
            try:
                yield
            finally:
                stopping.set()


@dataclass
class Desk:
    """The desk's processes on one pair of servers, in groups that are started and stopped."""

    servers: Servers
    settings: Settings
    _groups: dict[str, AsyncExitStack] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def start(self, group: str, tree: Path, names: Sequence[str] = ()) -> None:
        """Start one process a name with a tree's code; they take work when this returns."""
        logs = self.settings.data_dir / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        children = [self._child(tree, name, logs) for name in names or (group,)]
        stack = AsyncExitStack()
        self._groups[group] = stack
        await stack.enter_async_context(Supervisor(children))
        async with asyncio.timeout(START_TIMEOUT_S):
            for child in children:
                while not _ready_file(child).exists():  # noqa: ASYNC110 - another process makes it
                    await asyncio.sleep(READY_POLL_S)

    async def stop(self, group: str) -> None:
        """End a group's processes as an operator does, by SIGTERM."""
        await self._groups.pop(group).aclose()

    async def replace(self, group: str, tree: Path, names: Sequence[str] = ()) -> float:
        """The group anew from a tree, both together for a while, as in a rolling upgrade.

        Gives the loop's time at which the new one took work and the old one was told to end.
        """
        async with self._groups.pop(group):
            await self.start(group, tree, names)
            return asyncio.get_running_loop().time()

    async def aclose(self) -> None:
        """End all."""
        for group in list(self._groups):
            await self.stop(group)

    async def migrate(self, tree: Path) -> None:
        """`deskbus db migrate` of a tree."""
        words = ("-m", "services.cli", "db", "migrate")
        await asyncio.to_thread(run_in, tree, *words, **self.settings.environment)

    @asynccontextmanager
    async def database(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        """The tables, as their owner."""
        db = await asyncpg.connect(self.servers.postgres_dsn(OWNER_ROLE))
        try:
            yield db
        finally:
            await db.close()

    def _child(self, tree: Path, name: str, logs: Path) -> Child:
        number = next(self._numbers)
        env = {
            **environment_of(tree),
            **self.settings.environment,
            READY_FILE_VARIABLE: str(logs / f"{name}-{number}.ready"),
        }
        argv = (sys.executable, "-m", f"services.{name}")
        return Child(f"{name}-{number}", argv, logs / f"{name}-{number}.log", env=env, cwd=tree)


def services_of(tree: Path) -> Sequence[str]:
    """Those of today's services that a tree has: an older one may have fewer."""
    return [name for name in SERVICES if (tree / "services" / name).is_dir()]


def _ready_file(child: Child) -> Path:
    return Path((child.env or os.environ)[READY_FILE_VARIABLE])


def settings_of(servers: Servers) -> Settings:
    """Where the servers are; a lost command is seen soon."""
    return Settings(
        nats={"url": servers.nats_url},
        postgres={"dsn": SecretStr(servers.postgres_address)},
        secrets_dir=servers.secrets_dir,
        data_dir=servers.data_dir,
        orchestrator={"sweep_s": 0.2, "resend_after_s": 1.0},
    )


@pytest.fixture
async def desk(servers: Servers) -> AsyncIterator[Desk]:
    """No process runs yet, no table is made yet."""
    made = Desk(servers, settings_of(servers))
    yield made
    await made.aclose()


@pytest.fixture
async def lanes(desk: Desk) -> AsyncIterator[Lanes]:
    """Users of the desk."""
    url, secrets = desk.settings.nats_address, desk.settings.secrets_path
    async with calling(url, secrets, "user") as caller:
        yield Lanes(caller)
