"""Start services: one by name (`python -m services.risk`), or the whole desk (`deskbus up`)."""

import asyncio
import importlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import structlog
from pydantic import SecretStr
from structlog.contextvars import bound_contextvars

from contracts.subjects.subject import BACKBONE, ORCHESTRATOR, SERVICES
from libs.bus.connection import CONNECT_TIMEOUT_S, BusLost
from libs.bus.local import LocalBus
from libs.bus.permissions import permissions
from libs.bus.service import ServiceRunner
from libs.keys.credentials import ensure_token
from libs.postgres.migrate import SchemaTooNew, WrittenBy01, migrate
from libs.postgres.pool import OWNER_ROLE, ROLES, dsn_for
from libs.runtime.background import Background
from libs.runtime.errors import DeskError, StartError
from libs.runtime.http_address import HttpAddress, has_programs, http_address, with_free_port
from libs.runtime.loop import keep_started, run
from libs.runtime.own_folder import make_data_dir
from libs.runtime.proposers import HTTP_TOKEN_FILE, Proposers, proposer_names
from libs.runtime.setting_names import as_set
from libs.runtime.settings import NoServers, Settings, settings_in_force
from libs.runtime.utf8 import use_utf8
from libs.runtime.whole_file import write_whole
from libs.servers.child_log import last_line, make_logs_dir
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.leftovers import birth_of
from libs.servers.supervisor import Child, Supervisor
from libs.telemetry.logging import configure_logging
from libs.web.monitored_process import watched_process

RUNTIME_FILE = "runtime.json"
READY_FILE_VARIABLE = "DESKBUS_READY_FILE"
"""Names the file that a service's process makes once it takes work."""
READY_POLL_S = 0.05
SERVICES_READY_TIMEOUT_S = 60.0
START_RETRY_S = 0.3
REGISTER_LOOK_S = 0.25
"""How often the register of proposers is looked at: one that is added or revoked counts on NATS
that much later."""
REGISTER_RETRY_S = 5.0

Serving = Coroutine[Any, Any, None]
Where = Callable[[], tuple[str, Path]]

log = structlog.get_logger()


class SettingsIncomplete(DeskError):
    """The settings contradict each other or are incomplete."""

    code = "settings_incomplete"


class ServicesNotReady(DeskError):
    """Services in separate processes did not start in time."""

    code = "services_not_ready"

    def __init__(self, missing: Sequence[Child]) -> None:
        last = "".join(f"\n  {it.log_path}: {last_line(it.log_path)}" for it in missing)
        late = f"after {SERVICES_READY_TIMEOUT_S:g} s some services are not ready"
        super().__init__(f"{late}; the last line of each log:{last}")


@dataclass(frozen=True)
class OpenDesk:
    """A running desk: where it is, and what ends it."""

    settings: Settings
    _finished: "asyncio.Future[None]"

    @property
    def nats_url(self) -> str:
        """Where NATS listens."""
        return self.settings.nats_address

    @property
    def secrets_dir(self) -> Path:
        """Where its keys and passwords are."""
        return self.settings.secrets_path

    @property
    def data_dir(self) -> Path:
        """Where its data is."""
        return self.settings.data_dir

    @property
    def http_url(self) -> str | None:
        """Where the HTTP API is; None where it is off."""
        return _http_url(self.settings)

    async def finished(self) -> None:
        """Wait until a part of the desk fails for good, and raise why."""
        await asyncio.shield(self._finished)


@asynccontextmanager
async def service_running(
    name: str, settings: Settings, local: LocalBus | None = None, *, reads_only: bool = False
) -> AsyncIterator["asyncio.Future[None]"]:
    """One service, taking work when the block is entered; the future fails when it does. `local`
    joins it to the others of its process; with `reads_only` it answers questions alone.

    Every line that it logs names it, also where others share its process.
    """
    async with AsyncExitStack() as stack:
        with bound_contextvars(service=name):  # its tasks take the name along
            failed = asyncio.ensure_future(await _begun(name, settings, stack, local, reads_only))
        try:
            yield failed
        finally:
            failed.cancel()
            with bound_contextvars(service=name):
                await stack.aclose()


async def _begun(
    name: str,
    settings: Settings,
    stack: AsyncExitStack,
    local: LocalBus | None,
    reads_only: bool,
) -> Serving:
    """The service as part of the stack; what this gives raises once the service is lost."""
    app = importlib.import_module(f"services.{name}.app")
    if hasattr(app, "running"):  # it runs by itself: it hears no commands
        joined: dict[str, Any] = {"local": local} if name == ORCHESTRATOR else {}
        running = app.running(settings, **joined, **({"works": False} if reads_only else {}))
        failed: Serving = (await stack.enter_async_context(running)).failed()
        return failed
    routes = await stack.enter_async_context(app.service(settings))
    # Whose line it is, is said here: a service has no other, and cannot name itself on it.
    line = None if local is None else local.line(name)
    runner = ServiceRunner(routes, settings.nats_address, settings, line)
    await runner.start()
    stack.push_async_callback(runner.stop)
    return _lost(runner, name)


async def _lost(runner: ServiceRunner, name: str) -> None:
    await runner.lost.wait()
    raise BusLost(name)


@asynccontextmanager
async def desk(
    settings: Settings,
    *,
    processes: bool = False,
    replicas: Mapping[str, int] | None = None,
) -> AsyncIterator[OpenDesk]:
    """The whole desk, ready when the block is entered, stopped cleanly at its end.

    Servers are embedded unless both addresses are set. With `processes` every service is a process
    of its own (`replicas` of it), restarted when it dies; else all live in this one.
    """
    async with AsyncExitStack() as stack:
        if has_programs(settings):
            make_data_dir(settings.data_dir)
            ensure_token(settings.secrets_path / HTTP_TOKEN_FILE)
        settings = with_free_port(settings)
        settings = await stack.enter_async_context(servers_of(settings))
        await migrate(dsn_for(settings.postgres_address, OWNER_ROLE, settings.secrets_path))
        if processes:
            finished = await stack.enter_async_context(_as_processes(settings, replicas or {}))
        else:
            started = await stack.enter_async_context(watched_process(settings, "deskbus"))
            finished = await stack.enter_async_context(_in_process(settings))
            started.set()
        stack.enter_context(_announced(settings))
        yield OpenDesk(settings, finished)


@asynccontextmanager
async def console(settings: Settings, service: str = "console") -> AsyncIterator[Settings]:
    """The servers and one service alone: the record can be read, and no work moves.

    Gives the settings with the servers' addresses in them.
    """
    async with AsyncExitStack() as stack:
        settings = await stack.enter_async_context(servers_of(settings))
        await migrate(dsn_for(settings.postgres_address, OWNER_ROLE, settings.secrets_path))
        await stack.enter_async_context(service_running(service, settings, reads_only=True))
        yield settings


def mcp(settings: Settings, where: Where, http: HttpAddress | None, **how: Any) -> Serving:
    """The MCP server over HTTP, or over standard input and output: see services/mcp_server/app.py.

    `where` finds the running desk's NATS and keys whenever they are needed.
    """
    app = importlib.import_module("services.mcp_server.app")
    serve = app.over_stdio if http is None else partial(app.over_http, address=http)
    serving: Serving = serve(settings, where, **how)
    return serving


@asynccontextmanager
async def servers_of(settings: Settings) -> AsyncIterator[Settings]:
    """Settings with both addresses in them: the given ones, or those of embedded servers."""
    if (settings.nats.url is None) != (settings.postgres.dsn is None):
        missing = "DESKBUS_NATS_URL" if settings.nats.url is None else "DESKBUS_POSTGRES_DSN"
        raise SettingsIncomplete(
            f"{missing} is not set, but the other is: set both for your own servers, or neither"
        )
    if settings.nats.url is not None:
        yield settings
        return
    names = proposer_names(settings.secrets_path)
    async with (
        embedded_servers(
            settings.data_dir,
            permissions(proposers=names),
            ROLES,
            pg_bindir=settings.postgres.bindir,
            database_owner=OWNER_ROLE,
        ) as servers,
        Background(_admitting(servers, names)),
    ):
        try:
            yield settings.changed(
                nats={"url": servers.nats_url},
                postgres={"dsn": SecretStr(servers.postgres_address)},
                secrets_dir=servers.secrets_dir,
                data_dir=servers.data_dir,
            )
        except WrittenBy01 as error:  # people know embedded servers by their folder
            raise WrittenBy01(str(servers.data_dir)) from error


async def _admitting(servers: Servers, admitted: Sequence[str]) -> None:
    """Have NATS take whoever the register of proposers names, and let go of others, for ever."""
    register, seen, said = Proposers(servers.secrets_dir), None, ""
    while True:
        try:
            version = register.version()
            if version is None or version != seen:
                names = [one.name for one in register.active()]
                if names != admitted:
                    await servers.permit(permissions(proposers=names))
                    log.info("proposers.admitted", names=names)
                seen, admitted, said = version, names, ""
        except (OSError, DeskError, StartError) as error:
            # Whoever reads the register itself refuses them all meanwhile.
            if str(error) != said:
                said = str(error)
                log.error("proposers.not_admitted", why=said)  # noqa: TRY400 - `why` says all
            await asyncio.sleep(REGISTER_RETRY_S)
        await asyncio.sleep(REGISTER_LOOK_S)


@asynccontextmanager
async def _in_process(settings: Settings) -> AsyncIterator["asyncio.Future[None]"]:
    async with AsyncExitStack() as stack:
        local = LocalBus()
        ends = [
            await stack.enter_async_context(service_running(name, settings, local))
            for name in (*BACKBONE, *SERVICES)
        ]
        yield _first_failure(ends)


@asynccontextmanager
async def _as_processes(
    settings: Settings, replicas: Mapping[str, int]
) -> AsyncIterator["asyncio.Future[None]"]:
    unknown = set(replicas) - {*BACKBONE, *SERVICES}
    if unknown:
        known = ", ".join((*BACKBONE, *SERVICES))
        raise SettingsIncomplete(f"no service is named {', '.join(unknown)}; there are {known}")
    children = [
        child
        for name in (*BACKBONE, *SERVICES)
        for child in service_children(name, settings, replicas.get(name, 1))
    ]
    async with Supervisor(_with_ports(children, settings.metrics.port)) as supervisor:
        given_up = asyncio.ensure_future(supervisor.given_up())
        taking_work = asyncio.ensure_future(_taking_work(children))
        await asyncio.wait(
            [given_up, taking_work],
            return_when=asyncio.FIRST_COMPLETED,
            timeout=SERVICES_READY_TIMEOUT_S,
        )
        if given_up.done():
            given_up.result()
        if not taking_work.done():
            taking_work.cancel()
            raise ServicesNotReady(_not_ready(children))
        yield given_up


def _with_ports(children: Sequence[Child], first: int | None) -> Sequence[Child]:
    """The processes, each watched on a port of its own: `first` and those after it."""
    if not first:
        return children
    return [
        replace(child, env={**(child.env or {}), "DESKBUS_METRICS_PORT": str(port)})
        for port, child in enumerate(children, start=first)
    ]


async def _taking_work(children: Sequence[Child]) -> None:
    """Wait until every service is there; they start at the same time, in whatever order."""
    while _not_ready(children):  # noqa: ASYNC110 - another process makes the files
        await asyncio.sleep(READY_POLL_S)


def _not_ready(children: Sequence[Child]) -> Sequence[Child]:
    return [c for c in children if not Path((c.env or {})[READY_FILE_VARIABLE]).exists()]


def service_children(name: str, settings: Settings, count: int = 1) -> Sequence[Child]:
    """`count` processes of one service, as the supervisor takes them."""
    logs = make_logs_dir(settings.data_dir / "logs")
    return [
        Child(
            name=f"{name}-{number}",
            argv=(sys.executable, "-m", f"services.{name}"),
            log_path=logs / f"{name}-{number}.log",
            env={
                **os.environ,
                **settings.environment,
                # Further consoles share its questions, but a port has one listener.
                "DESKBUS_HTTP_ENABLED": str(settings.http.enabled and number == 1),
                READY_FILE_VARIABLE: str(_no_file(logs / f"{name}-{number}.ready").absolute()),
            },
        )
        for number in range(1, count + 1)
    ]


def _no_file(path: Path) -> Path:
    """The path, without what an earlier run has left there."""
    path.unlink(missing_ok=True)
    return path


def _http_url(settings: Settings) -> str | None:
    address = http_address(settings)
    return None if address is None else address.url


def _first_failure(ends: Sequence["asyncio.Future[None]"]) -> "asyncio.Future[None]":
    async def first() -> None:
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    return asyncio.ensure_future(first())


@contextmanager
def _announced(settings: Settings) -> Iterator[None]:
    """While the block runs, runtime.json tells every other command where the desk is."""
    make_data_dir(settings.data_dir)
    path = settings.data_dir / RUNTIME_FILE
    body = {
        "nats_url": settings.nats.url,
        "postgres_dsn": settings.postgres_public,
        "secrets_dir": str(settings.secrets_path.absolute()),
        "data_dir": str(settings.data_dir.absolute()),
        "replay_dir": str(settings.market.replay_dir) if settings.market.replay_dir else None,
        "http_url": _http_url(settings),
        "pid": os.getpid(),
        "birth": birth_of(os.getpid()),
        "started_at": datetime.now(UTC).isoformat(),
    }
    write_whole(path, orjson.dumps(body, option=orjson.OPT_INDENT_2))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def main(name: str) -> None:
    """Run one service as this process, until SIGTERM or SIGINT; exit 1 when it is lost."""
    use_utf8()
    try:
        settings = settings_in_force()
    except DeskError as error:
        sys.exit(f"{name}: {as_set(error.message)}")
    configure_logging(settings.log.level, settings.log.format)
    structlog.contextvars.bind_contextvars(service=name)
    try:
        run(_until_stopped(name, settings))
    except DeskError as error:
        log.error("service.ended", error=as_set(str(error)))  # noqa: TRY400 - the sentence says it all
        sys.exit(1)


async def _until_stopped(name: str, settings: Settings) -> None:
    stop = asyncio.Event()
    for signal_ in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signal_, stop.set)
    watched = watched_process(settings, f"deskbus-{name}")
    async with watched as started, _started(name, settings) as failed:
        started.set()
        keep_started()
        if file := os.environ.get(READY_FILE_VARIABLE):  # whoever started this may wait for it
            Path(file).touch()  # noqa: ASYNC240 - an empty file, once
        ends: list[asyncio.Future[Any]] = [failed, asyncio.ensure_future(stop.wait())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()


@asynccontextmanager
async def _started(name: str, settings: Settings) -> AsyncIterator["asyncio.Future[None]"]:
    """The service, tried again while what it needs is still starting."""
    until = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        async with AsyncExitStack() as stack:
            try:
                failed = await stack.enter_async_context(service_running(name, settings))
            except DeskError as error:
                hopeless = isinstance(error, NoServers | SchemaTooNew | WrittenBy01)
                if hopeless or time.monotonic() > until:
                    raise
                log.info("service.waits", why=as_set(error.message))
                await asyncio.sleep(START_RETRY_S)
                continue
            yield failed
            return
