"""`deskbus up`: the desk, until it is told to stop."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from libs.market.choice import first_request
from libs.runtime.loop import keep_started
from libs.runtime.loop import run as run_loop
from libs.runtime.own_folder import make_data_dir
from libs.runtime.settings import Settings
from libs.servers.child_log import LogFile
from libs.telemetry.logging import configure_logging
from services import launcher
from services.cli.desk import background
from services.cli.desk.narrator import narrated
from services.cli.operating.market_files import market_note, require_exit_rules
from services.cli.shell.invalid import writing
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem, WrongUsage
from services.cli.shell.progress import CycleProgress
from services.cli.shell.running import (
    RECORD_DIR,
    RunningDesk,
    asking,
    desk_here,
    load_settings,
    until_stopped,
)
from services.cli.shell.terminal import aside, emit, err

REPLICAS_MAX = 64
STARTING = "starting NATS, Postgres and the services"

app = group()


class Ready(RunningDesk):
    """The line of --json once the desk takes requests."""

    status: str = "ready"
    at: datetime


@app.command()
def up(
    detach: Annotated[
        bool,
        typer.Option("--detach", "-d", help="Run it in the background and return."),
    ] = False,
    processes: Annotated[
        bool, typer.Option("--processes", help="Run every service in its own process.")
    ] = False,
    replicas: Annotated[
        list[str] | None,
        typer.Option(help="Processes of a service, e.g. research=3; may be repeated."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help="The console's port; by default 8000 or the next free one; 0 takes any free one.",
        ),
    ] = None,
    http: Annotated[bool, typer.Option(help="Serve the console and HTTP API.")] = True,
    json: JsonOption = False,
) -> None:
    """Start the desk and keep it running; Ctrl-C or SIGTERM stop it cleanly.

    It starts NATS and Postgres from the installed packages, unless DESKBUS_NATS_URL and
    DESKBUS_POSTGRES_DSN name your own servers. On a terminal the log goes to a file (`deskbus
    logs`), and each finished cycle prints one line. Elsewhere, or if DESKBUS_LOG_FORMAT is set, the
    log goes to standard error.
    """
    settings = load_settings().changed(http={"enabled": http})
    if port is not None:
        settings = settings.changed(http={"port": port})
    counts = _counts(replicas or ())
    if counts and not processes:
        raise WrongUsage("--replicas needs --processes")
    _refuse_second(settings)
    require_exit_rules(settings)
    if detach:
        _start_in_background(settings, json=json)
        return
    desk = launcher.desk(settings, processes=processes, replicas=counts)
    if run_loop(until_stopped(_until_lost(desk, settings, log=_log_to(settings), json=json))):
        aside("stopped")


def _start_in_background(settings: Settings, *, json: bool) -> None:
    words = [word for word in sys.argv[1:] if word not in {"--detach", "-d", "--json"}]
    is_new = not (settings.data_dir / RECORD_DIR).is_dir()
    with CycleProgress(err()) as progress:
        progress.says(STARTING)
        desk = background.start(words, settings)
    if json:
        emit([_ready(desk)])
    notes = asking(market_note(settings))
    announce(desk, settings, notes=notes, in_background=True, is_new=is_new)


def _ready(desk: RunningDesk) -> Ready:
    return Ready(**dict(desk), at=datetime.now(UTC))


def _log_to(settings: Settings) -> Path | None:
    """Set up the log; the file that it goes to, None where that is standard error.

    A person's terminal shows one line a cycle and no log. What reads standard error otherwise, a
    container's engine or systemd, gets it there, and so does who has chosen a format.
    """
    a_person_looks = settings.log.format == "auto" and sys.stderr.isatty()
    if not a_person_looks and background.IN_BACKGROUND_VARIABLE not in os.environ:
        configure_logging(settings.log.level, settings.log.format)
        return None
    path = background.log_path(settings)
    with writing(path, "make it writable, or set DESKBUS_DATA_DIR"):
        make_data_dir(settings.data_dir)
        file = LogFile(path)
    configure_logging(settings.log.level, "json", file, on_error=_point_at_log)
    return path


def _point_at_log(event: str) -> None:
    aside(f"  error: {event}; `deskbus logs` has more", "red")


def _counts(options: Sequence[str]) -> Mapping[str, int]:
    counts = {}
    for text in options:
        name, _, count = text.partition("=")
        if not name or not count.isdecimal() or not 1 <= int(count) <= REPLICAS_MAX:
            raise WrongUsage(
                f"--replicas {text!r} is not valid",
                f"write SERVICE=N with N from 1 to {REPLICAS_MAX}, for example research=3",
            )
        counts[name] = int(count)
    return counts


def _refuse_second(settings: Settings) -> None:
    if desk := desk_here(settings):
        raise CliProblem(
            f"a desk is already running in {settings.data_dir} (process {desk.pid})",
            "use it, stop it, or start another with its own DESKBUS_DATA_DIR",
        )


async def _until_lost(
    starting: AbstractAsyncContextManager[launcher.OpenDesk],
    settings: Settings,
    *,
    log: Path | None,
    json: bool,
) -> None:
    is_new = not (settings.data_dir / RECORD_DIR).is_dir()
    async with AsyncExitStack() as stack:
        with nullcontext() if log is None else CycleProgress(err()) as progress:
            if progress is not None:
                progress.says(STARTING)
            desk = await stack.enter_async_context(starting)
        running = RunningDesk(
            nats_url=desk.nats_url,
            postgres_dsn=desk.settings.postgres_public,
            data_dir=desk.data_dir.absolute(),
            secrets_dir=desk.secrets_dir.absolute(),
            http_url=desk.http_url,
            pid=os.getpid(),
        )
        keep_started()
        if json:
            emit([_ready(running)])
        announce(running, settings, notes=await market_note(settings), log=log, is_new=is_new)
        if log is not None and sys.stderr.isatty():
            await stack.enter_async_context(narrated(running, err()))
        await desk.finished()


def announce(
    desk: RunningDesk,
    settings: Settings,
    *,
    notes: Sequence[str] = (),
    log: Path | None = None,
    in_background: bool = False,
    is_new: bool = False,
) -> None:
    """Say where the desk is, what is wrong with its data, and how to use, watch and stop it; of a
    new one, how a first cycle is asked for."""
    where = [
        ("console", desk.http_url),
        ("data", desk.data_dir),
        ("log", background.log_path(settings).absolute() if in_background else log),
        ("NATS", desk.nats_url),
        ("Postgres", desk.postgres_dsn),
        ("keys", desk.secrets_dir),
    ]
    process = f" (process {desk.pid})" if in_background else ""
    first = first_request(settings) if is_new else ""
    lines = [
        (f"The desk is up{process}", "bold green"),
        *((f"  {name:<9} {place}", "") for name, place in where if place),
        *((f"  {note}", "yellow") for note in (*_port_note(desk, settings), *notes)),
        *(
            (f"  {line}", "dim")
            for line in _next_steps(
                first,
                in_background=in_background,
                may_bind=settings.alpaca.trading_key_file is not None,
            )
        ),
    ]
    for text, style in lines:
        aside(text, style)


def _port_note(desk: RunningDesk, settings: Settings) -> Sequence[str]:
    """Say that the console is not where it is looked for, and why."""
    wanted = settings.http.port
    port = urlsplit(desk.http_url or "").port
    if port is None or not wanted or port == wanted:
        return ()
    taken = f"port {wanted} is in use by another program"
    return (f"{taken}, so the console uses {port}; set another with --port",)


def _next_steps(first: str, *, in_background: bool, may_bind: bool) -> Sequence[str]:
    """How the desk is used; of a new one (`first`), what to do next."""
    bind = "deskbus account bind main    before its first cycle, or never; then:"
    if in_background:
        return (
            "deskbus open      shows the console in a browser",
            "deskbus status    shows the desk's health",
            "deskbus logs -f   follows its log",
            "deskbus down      stops it; nothing is lost",
            *(
                (
                    f"next: {bind}"
                    if may_bind
                    else "next: deskbus portfolio import FILE    your broker's export; or ask at "
                    "once:",
                    f"      {first}",
                )
                if first
                else ()
            ),
        )
    return (
        f"In another terminal: deskbus open, deskbus tail{first and ','}",
        *((f"  {bind}",) if first and may_bind else ()),
        *((f"  {first}",) if first else ()),
        "Ctrl-C stops the desk; nothing is lost",
    )
