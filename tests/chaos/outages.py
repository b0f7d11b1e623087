"""Outages of Postgres while real cycles begin and run: the desk waits, and fails nothing.

    python -m tests.chaos.outages [--cycles 60] [--lasts 12 45 360] [--keep]

Decision cycles of the `rules` provider on the bundled prices, each with an account of its own; a
third of them run already when Postgres goes, the others begin meanwhile. `deskbus up` runs on
servers that it did not start, as one process and as one a service. Tells how many cycles failed and
what happened twice; exits 1 where anything did.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import asyncpg
import psutil
from pydantic import SecretStr

from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from libs.bus.permissions import permissions
from libs.keys.credentials import ensure_secrets, postgres_password
from libs.keys.nats_config import NatsPlace
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.runtime.ports import LOOPBACK, choose_port
from libs.runtime.settings import Settings
from libs.servers.binaries import nats_program, postgres_programs
from libs.servers.embedded import DATABASE
from libs.servers.nats_server import nats_problem
from libs.servers.placement import reachable_root, server_identity
from libs.servers.postgres_roles import PsqlLogin, ensure_roles, run_sql
from libs.servers.postgres_server import SUPERUSER, PostgresError, prepare_postgres
from services.provisioner.secrets import nats_conf
from tests.chaos import books, invariants
from tests.chaos.load import User, user_of
from tests.chaos.machines import Machine, postgres_machine
from tests.flat_settings import settings_with
from tests.open_folder import open_folder
from tests.small_disk import Disk, NoSmallDisk, small_ext4

REPOSITORY = Path(__file__).parents[2]
AS_OF = "2012-06-29"
POSTGRES_DISK_BYTES = 256 * 1024**2
CYCLE_BYTES = 512 * 1024
"""A real cycle leaves less on Postgres' disk."""
NATS_STORE = "js"
"""Below the servers' folder."""
UP_TIMEOUT_S = 90.0
TIME_LIMIT_S = 300.0
TRACEBACK, TRACEBACK_CHARS_MAX = "Traceback (most recent call last)", 6_000
"""Of each cycle: less than the longest outage."""
BEFORE = 3
"""Of so many cycles one runs already when the outage begins."""
SETTLED_TIMEOUT_S = 300.0
"""How long after an outage the last cycle may take on a busy machine."""
REFUSED_TIMEOUT_S = 30.0
"""How long until NATS says that it stores nothing: the desk tries every two seconds."""
LIVENESS_S = 1.0
"""How long NATS may be unwell before it is restarted: less than any probe waits, to save time."""
POLL_S = 0.1


class Outage(StrEnum):
    """In what way Postgres cannot be used."""

    AWAY = "away"
    """Killed, and started again only then."""
    READ_ONLY = "read-only"
    """It writes nothing, as a managed one does without room on its disk."""
    CROWDED = "no connection left"
    """Others have them all, and those that were open are ended."""
    STANDBY = "a standby"
    """It comes back as a standby, and is promoted only then."""
    FULL = "out of room"
    """The disk of its data and its WAL is full."""


@dataclass
class OwnServers:
    """Servers that the desk did not start."""

    nats: Machine
    nats_url: str
    store: Path
    postgres: Machine
    cluster: Path
    login: PsqlLogin
    secrets_dir: Path
    postgres_disk: Disk | None
    """None where no small disk can be mounted."""

    async def wipe(self) -> None:
        """NATS is killed and comes back without its store."""
        await self.nats.kill()
        shutil.rmtree(self.store, ignore_errors=True)
        await self.nats.start()

    async def refuse_to_store(self, disk: Disk, lasts_s: float) -> None:
        """NATS' disk is full for so long, from when it says so; then it is watched as by a
        liveness probe, which restarts what does not get well by itself."""
        disk.fill()
        try:
            async with asyncio.timeout(REFUSED_TIMEOUT_S):
                while await self.nats.is_up():  # noqa: ASYNC110
                    await asyncio.sleep(POLL_S)
            await asyncio.sleep(lasts_s)
        finally:
            disk.free()
        try:
            async with asyncio.timeout(LIVENESS_S):
                while not await self.nats.is_up():  # noqa: ASYNC110
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            await self.nats.kill()
            await self.nats.start()

    async def strike(self, outage: Outage, lasts_s: float) -> None:
        """Postgres cannot be used for so long."""
        match outage:
            case Outage.AWAY:
                await self.postgres.kill()
                await asyncio.sleep(lasts_s)
                await self.postgres.start()
            case Outage.STANDBY:
                await self.postgres.kill()
                (self.cluster / "standby.signal").touch()
                await self.postgres.start()
                await asyncio.sleep(lasts_s)
                await self._sql("select pg_promote(true)")
            case Outage.READ_ONLY:
                await self._read_only("on")
                await asyncio.sleep(lasts_s)
                await self._read_only("off")
            case Outage.CROWDED:
                await self._sql(f"alter database {DATABASE} connection limit 0")
                await self._sql(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    f" where datname = '{DATABASE}' and pid <> pg_backend_pid()"
                )
                await asyncio.sleep(lasts_s)
                await self._sql(f"alter database {DATABASE} connection limit -1")
            case Outage.FULL:
                assert self.postgres_disk is not None, "root: only root mounts a small disk"
                self.postgres_disk.fill()
                await asyncio.sleep(lasts_s)
                self.postgres_disk.free()

    async def _read_only(self, value: str) -> None:
        await self._sql(f"alter system set default_transaction_read_only = {value}")
        await self._sql("select pg_reload_conf()")

    async def _sql(self, statement: str) -> None:
        await run_sql(self.login, f"set default_transaction_read_only = off;\n{statement};")


@asynccontextmanager
async def own_servers(folder: Path, cycles: int = 0) -> AsyncIterator[OwnServers]:
    """Both, up; `folder` is one that every user may enter. Postgres has room for so many cycles."""
    secrets, run_as = folder / "secrets", server_identity()
    disks = ExitStack()
    postgres_disk = None
    with suppress(NoSmallDisk):
        size_bytes = POSTGRES_DISK_BYTES + cycles * CYCLE_BYTES
        postgres_disk = disks.enter_context(small_ext4(folder / "postgres", size_bytes))
    ensure_secrets(secrets, nats_identities=permissions(), postgres_roles=(SUPERUSER, *ROLES))
    port = choose_port(None, set())
    monitor_port = choose_port(None, {port})
    postgres_port = choose_port(None, {port, monitor_port})
    config = folder / "nats.conf"
    config.write_text(
        nats_conf(
            secrets, NatsPlace(LOOPBACK, port, monitor_port, folder / NATS_STORE), permissions()
        )
    )

    async def up() -> bool:
        return not await nats_problem(monitor_port)

    argv = [str(nats_program(None, lambda: folder)), "--config", str(config)]
    nats = Machine("nats", argv, folder / "nats.log", None, up)
    programs = postgres_programs(None, run_as, lambda: reachable_root(folder, run_as))
    password = postgres_password(secrets, SUPERUSER)
    cluster = await prepare_postgres(programs, folder, password, folder / "initdb.log", run_as)
    postgres = postgres_machine(folder, programs, cluster, postgres_port, run_as)
    login = PsqlLogin(programs.bindir / "psql", postgres_port, SUPERUSER, password)

    async def answers() -> bool:
        # What a killed one wrote into its pid file still stands there.
        with suppress(PostgresError):
            return await run_sql(login, "select 1") == "1"
        return False

    postgres.is_up = answers
    try:
        await asyncio.gather(nats.start(), postgres.start())
        passwords = {role: postgres_password(secrets, role) for role in ROLES}
        await ensure_roles(login, passwords=passwords, database=DATABASE, owner=OWNER_ROLE)
        url = f"nats://{LOOPBACK}:{port}"
        store = folder / NATS_STORE
        yield OwnServers(nats, url, store, postgres, cluster, login, secrets, postgres_disk)
    finally:
        await asyncio.gather(nats.kill(), postgres.kill())
        disks.close()


@dataclass
class OwnDesk:
    """`deskbus up` on them, as one process or as one a service."""

    servers: OwnServers
    settings: Settings
    folder: Path
    processes: bool
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beside what the settings come to."""
    process: asyncio.subprocess.Process = field(init=False)

    async def start(self) -> None:
        """Start it and wait until it takes work. Raises AssertionError where it ends before."""
        kept = {name: value for name, value in os.environ.items() if "DESKBUS" not in name}
        words = ["up", "--json", *(["--processes"] if self.processes else [])]
        with self._log_path.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "services.cli",
                *words,
                cwd=self.folder,
                env={
                    **kept,
                    **self.settings.environment,
                    "DESKBUS_LOG_FORMAT": "json",
                    "PYTHONPATH": str(REPOSITORY),
                    **self.environment,
                },
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        async with asyncio.timeout(UP_TIMEOUT_S):
            assert await self.process.stdout.readline(), self._log_path.read_text()[-2000:]

    async def keep(self) -> None:
        """Start it again whenever it has ended, until cancelled."""
        while True:
            await self.process.wait()
            with suppress(AssertionError):  # what it needs may just be away too
                await self.start()

    def send_signal(self, names: Sequence[str], number: signal.Signals) -> None:
        """To its processes of these services; one between two lives is left to it."""
        if not self.processes:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)
            return
        modules = {f"services.{name}" for name in names}
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if modules & set(child.cmdline()):
                    os.kill(child.pid, number)

    @property
    def _log_path(self) -> Path:
        return self.folder / "up.log"

    @property
    def logs(self) -> Sequence[Path]:
        """Of all its processes."""
        return [self._log_path, *(self.folder / "data" / "logs").glob("*.log")]

    @asynccontextmanager
    async def database(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        """A connection as the superuser."""
        login = self.servers.login
        address = f"{LOOPBACK}:{login.port}/{DATABASE}"
        db = await asyncpg.connect(f"postgresql://{SUPERUSER}:{login.password}@{address}")
        try:
            yield db
        finally:
            await db.close()

    def ended(self) -> list[str]:
        """Its exit code where it ended, and the tracebacks in its logs."""
        code = self.process.returncode
        return [*([] if code is None else [f"deskbus up: exit {code}"]), *self.tracebacks()]

    def tracebacks(self) -> list[str]:
        """The tracebacks in the logs of its processes, cut to TRACEBACK_CHARS_MAX."""
        return [
            f"{path.name}: {TRACEBACK}{each[:TRACEBACK_CHARS_MAX]}"
            for path in self.logs
            for each in f"\n{path.read_text()}".split(f"\n{TRACEBACK}")[1:]
        ]


@asynccontextmanager
async def desk_on(
    servers: OwnServers,
    folder: Path,
    given: Mapping[str, object],
    *,
    processes: bool,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[OwnDesk]:
    """The desk, taking work when the block is entered; `environment` is its own beside the
    settings."""
    settings = settings_with(
        nats_url=servers.nats_url,
        postgres_dsn=SecretStr(f"postgresql://{LOOPBACK}:{servers.login.port}/{DATABASE}"),
        secrets_dir=servers.secrets_dir,
        data_dir=folder / "data",
        http_port=0,
        **given,
    )
    desk = OwnDesk(servers, settings, folder, processes, environment or {})
    try:
        await desk.start()
        yield desk
    finally:
        with suppress(ProcessLookupError):
            desk.process.terminate()
        await desk.process.wait()


@dataclass
class Outcome:
    """What an outage came to."""

    outage: Outage
    lasts_s: float
    processes: bool
    cycles: int = 0
    failed: list[str] = field(default_factory=list)
    twice: dict[str, list[str]] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    after_s: float = 0.0
    """How long after the outage the last cycle ended."""
    broken: list[str] = field(default_factory=list)

    def row(self) -> str:
        """It as a row of the table."""
        counts = (self.cycles, len(self.failed), len(self.twice), len(self.ended), self.after_s)
        form = "many" if self.processes else "one"
        return f"| {' | '.join(map(str, (self.outage, f'{self.lasts_s:g} s', form, *counts)))} |"

    def judge(self) -> None:
        """Fill `broken`."""
        self.broken = [
            *(f"failed: {each}" for each in self.failed),
            *(f"{promise}: {rows[:3]}" for promise, rows in self.twice.items()),
            *(f"a process ended: {each}" for each in self.ended),
        ]


def wish(user: User, number: int, timeout_s: float) -> CycleRequest:
    """A decision cycle with an account of its own."""
    return CycleRequest.model_validate(
        {
            "idempotency_key": f"{user.run_name}-{number}",
            "as_of": AS_OF,
            "pipelines": [Pipeline(name="rules", account=f"{user.run_name}-{number}")],
            "timeout_s": timeout_s,
        }
    )


async def survive(
    desk: OwnDesk, outage: Outage, lasts_s: float, cycles: int, timeout_s: float = TIME_LIMIT_S
) -> Outcome:
    """Strike while cycles run and others begin; wait until all have ended, and count."""
    outcome = Outcome(outage, lasts_s, processes=desk.processes, cycles=cycles)
    async with user_of(desk.settings) as user:
        requests = [wish(user, number, timeout_s) for number in range(cycles)]
        first = cycles // BEFORE
        for request in requests[:first]:
            await user.begin(request)
        striking = asyncio.create_task(desk.servers.strike(outage, lasts_s))
        running = [asyncio.create_task(user.run(request)) for request in requests]
        await striking
        over = time.monotonic()
        async with asyncio.timeout(SETTLED_TIMEOUT_S):
            statuses = await asyncio.gather(*running)
        outcome.after_s = round(time.monotonic() - over, 1)
        async with desk.database() as db:
            rows = await db.fetch(
                "select cycle_id, status, reason from cycles where cycle_id = any($1::uuid[])",
                [user.cycle_id(request) for request in requests],
            )
            async with asyncio.timeout(SETTLED_TIMEOUT_S):
                while await invariants.relay_lag(db):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            outcome.twice = await books.broken(db)
            if left := await invariants.money_left_over(db):
                outcome.twice["no money is held back or lost"] = [str(left)]
    outcome.failed = [str(dict(row)) for row in rows if row["status"] != "completed"]
    outcome.failed += [str(each) for each in statuses[len(rows) :]]
    outcome.ended += desk.ended()
    outcome.judge()
    return outcome


async def struck(
    folder: Path,
    outage: Outage,
    lasts_s: float,
    cycles: int,
    *,
    processes: bool = False,
    **given: object,
) -> Outcome:
    """The same on a desk of its own below `folder`."""
    async with (
        own_servers(folder) as servers,
        desk_on(servers, folder, given, processes=processes) as desk,
    ):
        return await survive(desk, outage, lasts_s, cycles)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the table and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.outages", description=__doc__)
    parser.add_argument("--cycles", type=int, default=60)
    parser.add_argument("--lasts", type=float, nargs="+", default=[12.0, 45.0, 360.0])
    parser.add_argument("--outages", nargs="+", choices=[*Outage], default=[*Outage])
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    shortest = min(given.lasts)
    plans = [
        (Outage(outage), lasts_s, processes)
        for outage in given.outages
        for lasts_s in (given.lasts if outage == Outage.AWAY else [shortest])
        for processes in (False, True)
    ]
    sys.stdout.write(
        "| Postgres is | for | processes | cycles | failed | twice or wrong | ended | after, s |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    broken = False
    for plan in plans:
        outcome = _in_folder(given, *plan)
        broken = broken or bool(outcome.broken)
        sys.stdout.write(f"{outcome.row()}\n")
        sys.stdout.flush()  # the next one takes minutes
        for problem in outcome.broken:
            sys.stderr.write(f"BROKEN: {json.dumps(problem)}\n")
    sys.exit(1 if broken else 0)


def _in_folder(
    given: argparse.Namespace, outage: Outage, lasts_s: float, processes: bool
) -> Outcome:
    with open_folder("deskbus-outage-", keep=given.keep) as folder:
        return asyncio.run(struck(folder, outage, lasts_s, given.cycles, processes=processes))


if __name__ == "__main__":
    main()
