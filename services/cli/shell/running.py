"""Find the running desk and talk to it."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.subjects.subject import USERS, Answered, Asked, Subject
from libs.bus.client import ASK_TIMEOUT_S, Client, open_client
from libs.runtime.own_text import UnreadableFile
from libs.runtime.settings import Settings, WrongSetting, settings_in_force
from libs.runtime.wording import describe
from libs.servers.leftovers import birth_of
from libs.servers.server_record import ProcessMark
from libs.telemetry.logging import configure_logging
from services.cli.shell.problem import CliProblem, ExitCode, WrongUsage
from services.cli.shell.terminal import aside

SERVERS = ("nats", "postgres")
"""Servers that a desk starts; each has a log in its own words."""
RUNTIME_FILE = "runtime.json"
RECORD_DIR = "servers"
"""In the data directory, once a desk has been there."""
START_HINT = (
    "start one with `deskbus up`, or set DESKBUS_DATA_DIR to the data directory of a running desk"
)

T = TypeVar("T")
Work = Callable[[Client], Coroutine[Any, Any, T]]
"""What a command does with a client."""


class RunningDesk(BaseModel):
    """Where a desk is: as runtime.json says, or the settings of one with own servers."""

    model_config = ConfigDict(frozen=True)

    nats_url: str
    secrets_dir: Path
    postgres_dsn: str | None = None
    http_url: str | None = None
    data_dir: Path | None = None
    replay_dir: Path | None = None
    pid: int | None = None
    birth: str | None = None
    """With the pid it tells the desk's process from a later one of the same number."""
    started_at: datetime | None = None


def load_settings() -> Settings:
    """The settings in force. A wrong one is a `CliProblem` that names it."""
    try:
        return settings_in_force()
    except (UnreadableFile, WrongSetting) as error:
        raise WrongUsage(
            error.message,
            "docs/configuration.md shows how settings are written; `deskbus config --help`",
        ) from error


def find_desk(settings: Settings) -> RunningDesk:
    """The desk to talk to. Raises `CliProblem` (not reachable) where there is none."""
    if settings.nats.url is not None:
        return RunningDesk(
            nats_url=settings.nats.url,
            secrets_dir=settings.secrets_path,
            postgres_dsn=settings.postgres_public if settings.postgres.dsn else None,
            data_dir=settings.data_dir,
            replay_dir=settings.market.replay_dir,
        )
    path = settings.data_dir / RUNTIME_FILE
    try:
        desk = RunningDesk.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise CliProblem(
            f"no desk is running here ({path} does not exist)", START_HINT, ExitCode.NOT_REACHABLE
        ) from None
    except (OSError, ValidationError) as error:
        what = describe(error) if isinstance(error, ValidationError) else str(error)
        raise CliProblem(
            f"{path} cannot be read: {what}", START_HINT, ExitCode.NOT_REACHABLE
        ) from error
    if desk.pid is not None and process_of(desk) is None:
        raise CliProblem(
            f"the desk of {path} has crashed (its process {desk.pid} has ended)",
            "restart it with `deskbus up`: it continues where it stopped",
            ExitCode.NOT_REACHABLE,
        )
    return desk


def desk_here(settings: Settings) -> RunningDesk | None:
    """The desk that runs in this data directory; None where none does, or with servers of your
    own, of which nobody here knows who else is there."""
    if settings.nats.url is not None:
        return None
    try:
        return find_desk(settings)
    except CliProblem:
        return None


def as_the_desk(settings: Settings) -> Settings:
    """The settings with the running desk's own recorded data, where none are set here."""
    if settings.market.replay_dir is not None:
        return settings
    try:
        desk = find_desk(settings)
    except CliProblem:
        return settings
    return settings.changed(market={"replay_dir": desk.replay_dir})


def process_of(desk: RunningDesk) -> ProcessMark | None:
    """The desk's process while it runs, whoever's it is; None where it has ended, or where this is
    not known."""
    birth = None if desk.pid is None else birth_of(desk.pid)
    if desk.pid is None or birth is None or desk.birth not in {None, birth}:
        return None
    return ProcessMark(desk.pid, birth)


@asynccontextmanager
async def desk_client(settings: Settings) -> AsyncIterator[Client]:
    """A client of the running desk. Raises `CliProblem` and `DeskNotReachable`.

    People have two keys: who holds all connections of one keeps no person from the kill switch.
    """
    desk = find_desk(settings)
    identity, spare, *_ = USERS
    async with open_client(desk.nats_url, desk.secrets_dir, identity, spare=spare) as client:
        yield client


@asynccontextmanager
async def reading_client(settings: Settings, service: str = "console") -> AsyncIterator[Client]:
    """A client that may only ask. Where no desk runs, its servers are started to read the record.

    Nothing is decided meanwhile: only the `service` that answers runs. Raises `CliProblem` where
    there is no record either.
    """
    try:
        find_desk(settings)
    except CliProblem:
        if not (settings.data_dir / RECORD_DIR).is_dir():
            raise
    else:
        async with desk_client(settings) as client:
            yield client
        return
    from services import launcher  # noqa: PLC0415 - loads the servers' packages

    aside("no desk is running; reading its record")
    async with (
        launcher.console(settings, service) as reading,
        open_client(reading.nats_address, reading.secrets_path) as client,
    ):
        yield client


def asking(work: Coroutine[Any, Any, T]) -> T:
    """Run a short command's work; the libraries' own words only when something is wrong."""
    configure_logging("error", "auto")
    return asyncio.run(work)


async def until_stopped(work: Awaitable[None]) -> bool:
    """Work until it ends, or SIGINT or SIGTERM stops it; whether one did."""
    task = asyncio.ensure_future(work)
    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


def with_desk(work: Work[T]) -> T:
    """Connect to the running desk, do the work and give its result."""
    return asking(_connected(desk_client(load_settings()), work))


def with_record(work: Work[T], service: str = "console") -> T:
    """The same for work that only asks; where no desk runs, the record alone answers."""
    return asking(_connected(reading_client(load_settings(), service), work))


async def _connected(client: AbstractAsyncContextManager[Client], work: Work[T]) -> T:
    async with client as connected:
        return await work(connected)


def ask(
    row: Subject[Asked, Answered], question: Asked, *, timeout_s: float = ASK_TIMEOUT_S
) -> Answered:
    """The running desk's answer to one request or question."""
    return with_desk(lambda client: client.ask(row, question, timeout_s=timeout_s))


def read(row: Subject[Asked, Answered], question: Asked) -> Answered:
    """The answer to one question, from the record where no desk runs."""
    return with_record(lambda client: client.ask(row, question))
