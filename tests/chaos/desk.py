"""A whole desk in processes of its own, which can be killed, frozen and wiped at will."""

import asyncio
import json
import os
import shutil
import signal
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import asyncpg
import psutil
from pydantic import SecretStr

from libs.bus.permissions import permissions
from libs.postgres.migrate import migrate
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.runtime.ports import LOOPBACK, choose_port
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.nats_server import store_dir
from libs.servers.supervisor import Child, ChildError, Supervisor
from tests.chaos.hosts import HERE, Host
from tests.fakes import paid_model
from tests.fakes.chaos_desk import MODEL, SERVICES, WHOLE
from tests.fakes.chaos_workflow import COMMANDS
from tests.flat_settings import settings_with

REPOSITORY = Path(__file__).parents[2]
ROLES_OF = {
    "provisioner": 1,
    "orchestrator": 2,
    "thinker": 2,
    "scholar": 1,
    "clerk": 1,
    "effector": 1,
}
"""Processes of the made-up desk, by role."""
ONE_PROCESS_ROLES = {"provisioner": 1, WHOLE: 2}
"""The same with all of it in each of two processes, without NATS between its parts."""
PARTS = {WHOLE: ("orchestrator", *SERVICES)}
"""Who has a connection of its own in a process of this role; in others only the role itself."""
MADE_UP = "tests.fakes.chaos_desk"
CONSOLE = "console-1"
SERVERS = ("nats", "postgres")
DEATH_TIMEOUT_S = 10.0
START_TIMEOUT_S = 30.0
MONITOR_TIMEOUT_S = 1.0

QUICK = {
    "orchestrator_lease_s": 2.0,
    "orchestrator_sweep_s": 0.2,
    "orchestrator_resend_after_s": 1.0,
    "orchestrator_resend_after_s_max": 5.0,
    "orchestrator_reply_timeout_s": 1.0,
}
"""Settings with which a desk notices faults quickly."""

EFFECTS = """
create schema chaos;
create table chaos.effects (
    key text not null, op_id uuid not null, at timestamptz not null default clock_timestamp()
);
grant usage on schema chaos to deskbus_execution;
grant select, insert on chaos.effects to deskbus_execution;
"""
"""No unique key: an effect that happens twice is to be seen, not refused."""

UNANSWERED = """
select c.cycle_id, clock_timestamp() - c.accepted_at as age, o.service, o.step, o.status, o.sends,
    o.epoch, o.due_at - clock_timestamp() as due_in
from cycles c left join operations o
    on o.cycle_id = c.cycle_id and o.status in ('pending', 'running')
where c.status = 'running' limit 40
"""

Database: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
POSTGRES_GONE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""Errors of a connection whose server was killed, in the middle of a statement or not."""


@dataclass
class ChaosDesk:
    """The running desk. Names of processes: `nats`, `postgres`, `thinker-2`, ...; `roles` says how
    many there are of each."""

    settings: Settings
    servers: Servers
    supervisor: Supervisor
    names: Sequence[str]
    model: paid_model.Log
    roles: Mapping[str, int]
    frozen: dict[str, list[int]] = field(default_factory=dict)

    def pid(self, name: str) -> int:
        """The present pid of a process; ChildError while it is between two lives."""
        return self.servers.pid(name) if name in SERVERS else self.supervisor.pid(name)

    def log_of(self, name: str) -> str:
        """What a process has logged so far, over all its lives."""
        return (self.settings.data_dir / "logs" / f"{name}.log").read_text()

    @asynccontextmanager
    async def database(self, role: str = OWNER_ROLE) -> AsyncIterator[Database]:
        """A connection to Postgres, however often that must be tried."""
        db = await self._connected(role)
        try:
            yield db
        finally:
            await db.close()

    async def _connected(self, role: str) -> Database:
        while True:
            with suppress(*POSTGRES_GONE):
                return await asyncpg.connect(self.servers.postgres_dsn(role), timeout=5)
            await asyncio.sleep(0.1)

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """As `asyncio.timeout`; who runs out of it is told what was unanswered then."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            async with self.database() as db:
                rows = await db.fetch(UNANSWERED)
            told = "\n".join(str(dict(row)) for row in rows)
            raise AssertionError(f"not done after {seconds:g} s; unanswered:\n{told}") from error

    async def whole(self) -> None:
        """Wait until every process of the desk has its connection to NATS."""
        owed = Counter[str]()
        for role, count in self.roles.items():
            owed.update({f"deskbus-{part}": count for part in PARTS.get(role, (role,))})
        while owed - Counter(name for name, _ in self.connections()):  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    def connections(self) -> list[tuple[str, int]]:
        """NATS's clients: their names, and how many messages they were sent."""
        try:
            url = f"{self.servers.nats_monitor_url}/connz"
            with urllib.request.urlopen(url, timeout=MONITOR_TIMEOUT_S) as answer:
                found = json.load(answer)["connections"]
        except OSError:
            return []
        return [(each.get("name", ""), each["out_msgs"]) for each in found]

    def named(self, pid: int) -> str:
        """The process of the desk that has this pid now."""
        return next(name for name in self.names if self.pid(name) == pid)

    def kill(self, *names: str) -> None:
        """kill -9, now; a process between two lives is left to it."""
        for name in names:
            with suppress(ChildError, ProcessLookupError):
                os.kill(self.pid(name), signal.SIGKILL)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of the made-up desk."""
        for name in self.names:
            if name != CONSOLE:
                with suppress(ChildError, ProcessLookupError):
                    os.kill(self.pid(name), number)

    def freeze(self, name: str) -> None:
        """SIGSTOP, the whole tree: Postgres works in children of its own."""
        with suppress(ChildError, psutil.NoSuchProcess):
            root = psutil.Process(self.pid(name))
            pids = [root.pid, *(child.pid for child in root.children(recursive=True))]
            self.frozen[name] = pids
            _signal(pids, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """SIGCONT to what `freeze` stopped."""
        _signal(self.frozen.pop(name, []), signal.SIGCONT)

    def wipe(self) -> None:
        """kill -9 of NATS, and its JetStream store is gone before it starts again.

        Nothing is awaited here: the supervisor runs in this loop and would start it too early.
        """
        with suppress(ChildError):
            pid = self.pid("nats")
            _signal([pid], signal.SIGKILL)
            until = time.monotonic() + DEATH_TIMEOUT_S
            while _lives(pid) and time.monotonic() < until:
                time.sleep(0.002)
        shutil.rmtree(store_dir(self.servers.server_dir) / "jetstream", ignore_errors=True)


DeskT = TypeVar("DeskT", bound=ChaosDesk)


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@asynccontextmanager
async def chaos_desk(
    folder: Path, given: Mapping[str, float], roles: Mapping[str, int] = ROLES_OF
) -> AsyncIterator[ChaosDesk]:
    """A desk below `folder`, which every user must be able to enter."""
    async with embedded_servers(
        folder / "desk",
        {**permissions(), **permissions(COMMANDS)},
        ROLES,
        database_owner=OWNER_ROLE,
    ) as servers:
        await tables(servers.postgres_dsn(OWNER_ROLE))
        settings = settings_with(
            nats_url=servers.nats_url,
            postgres_dsn=SecretStr(servers.postgres_address),
            secrets_dir=servers.secrets_dir,
            data_dir=servers.data_dir,
            **given,
        )
        async with desk_of(ChaosDesk, settings, servers, folder, roles) as desk:
            try:
                yield desk
            finally:
                for name in list(desk.frozen):
                    desk.thaw(name)


@asynccontextmanager
async def desk_of(
    kind: type[DeskT],
    settings: Settings,
    servers: Any,
    folder: Path,
    roles: Mapping[str, int] = ROLES_OF,
    hosts: Sequence[Host] = (HERE,),
    model_host: str = LOOPBACK,
    *,
    real: bool = False,
) -> AsyncIterator[DeskT]:
    """The desk's processes, spread over `hosts`, and the paid model, on servers that are up. Roles
    of a `real` desk are the shipped services."""
    model = f"{model_host}:{choose_port(None, set())}"
    log_path = folder / "model.log"
    children = _children(settings, model, roles, hosts, real)
    async with _model(model, log_path), Supervisor(children) as supervisor:
        names = [child.name for child in children]
        await supervisor.ready()
        yield kind(settings, servers, supervisor, names, paid_model.Log(log_path), roles)


async def tables(dsn: str) -> None:
    """The desk's tables, and the one where effects are seen; `dsn` is their owner's."""
    await migrate(dsn)
    db = await asyncpg.connect(dsn)
    try:
        await db.execute(EFFECTS)
    finally:
        await db.close()


@asynccontextmanager
async def _model(address: str, log_path: Path) -> AsyncIterator[None]:
    """The paid model: the one process that no fault touches."""
    argv = [str(Path(paid_model.__file__)), address, str(log_path)]
    process = await asyncio.create_subprocess_exec(sys.executable, *argv)
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection(*address.split(":"))
                    writer.close()
                    break
                await asyncio.sleep(0.02)
        yield
    finally:
        process.terminate()
        await process.wait()


def _children(
    settings: Settings,
    model: str,
    roles: Mapping[str, int],
    hosts: Sequence[Host],
    real: bool,
) -> list[Child]:
    env = {**os.environ, **settings.environment, MODEL: model}
    desk = {
        f"{role}-{number}": ["-m", *([f"services.{role}"] if real else [MADE_UP, role])]
        for role, count in roles.items()
        for number in range(1, count + 1)
    }
    argv = {**desk, CONSOLE: ["-m", "services.console"]}
    return [
        Child(
            name=name,
            argv=[*host.words, sys.executable, *words],
            log_path=settings.data_dir / "logs" / f"{name}.log",
            env=env,
            cwd=REPOSITORY,
        )
        for (name, words), host in zip(argv.items(), cycle(hosts), strict=False)
    ]
