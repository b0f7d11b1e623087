"""`deskbus up`: the desk, until it is told to stop."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel
from rich.text import Text

from libs.runtime.loop import run as run_loop
from libs.runtime.settings import Settings
from libs.telemetry.logging import configure_logging
from services import launcher
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import find_desk, load_settings
from services.cli.shell.terminal import emit, err

REPLICAS_MAX = 64

app = group()


class Ready(BaseModel):
    """The line of --json once the desk takes requests."""

    status: str = "ready"
    nats_url: str
    postgres_dsn: str
    data_dir: Path
    secrets_dir: Path
    http_url: str | None = None
    at: datetime


@app.command()
def up(
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
            min=0, max=65_535, help="The console's port, 8000 by default; 0 takes a free one."
        ),
    ] = None,
    http: Annotated[bool, typer.Option(help="Serve the console and HTTP API.")] = True,
    json: JsonOption = False,
) -> None:
    """Start the desk and keep it running; Ctrl-C or SIGTERM stop it cleanly.

    NATS and Postgres are started from the installed packages, unless DESKBUS_NATS_URL and
    DESKBUS_POSTGRES_DSN name your own.
    """
    settings = load_settings().model_copy(update={"http": http})
    if port is not None:
        settings = settings.model_copy(update={"http_port": port})
    counts = _counts(replicas or ())
    if counts and not processes:
        raise Problem(ExitCode.USAGE, "--replicas needs --processes")
    _refuse_second(settings)
    configure_logging(settings.log_level, settings.log_format)
    run_loop(_hold(settings, processes=processes, replicas=counts, json=json))


def _counts(options: Sequence[str]) -> Mapping[str, int]:
    counts = {}
    for text in options:
        name, _, count = text.partition("=")
        if not name or not count.isdecimal() or not 1 <= int(count) <= REPLICAS_MAX:
            raise Problem(
                ExitCode.USAGE,
                f"--replicas {text!r} is not valid",
                f"write SERVICE=N with N from 1 to {REPLICAS_MAX}, for example research=3",
            )
        counts[name] = int(count)
    return counts


def _refuse_second(settings: Settings) -> None:
    if settings.nats_url is not None:
        return
    try:
        desk = find_desk(settings)
    except Problem:
        return
    raise Problem(
        ExitCode.FAILED,
        f"a desk is running in {settings.data_dir} already (process {desk.pid})",
        "use it, stop it, or start another with its own DESKBUS_DATA_DIR",
    )


async def _hold(
    settings: Settings, *, processes: bool, replicas: Mapping[str, int], json: bool
) -> None:
    holding = asyncio.ensure_future(
        _desk_until_lost(settings, processes=processes, replicas=replicas, json=json)
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, holding.cancel)
    try:
        await holding
    except asyncio.CancelledError:
        err().print("stopped", style="dim")


async def _desk_until_lost(
    settings: Settings, *, processes: bool, replicas: Mapping[str, int], json: bool
) -> None:
    async with launcher.desk(settings, processes=processes, replicas=replicas) as desk:
        ready = Ready(
            nats_url=desk.nats_url,
            postgres_dsn=desk.settings.postgres_public,
            data_dir=desk.data_dir.absolute(),
            secrets_dir=desk.secrets_dir.absolute(),
            http_url=desk.http_url,
            at=datetime.now(UTC),
        )
        if json:
            emit([ready])
        _announce(ready)
        await desk.finished()


def _announce(ready: Ready) -> None:
    lines = [
        ("The desk is up", "bold green"),
        (f"  NATS      {ready.nats_url}", ""),
        (f"  Postgres  {ready.postgres_dsn}", ""),
        *([(f"  console   {ready.http_url}", "")] if ready.http_url else []),
        (f"  data      {ready.data_dir}", ""),
        (f"  keys      {ready.secrets_dir}", ""),
        ("  In another terminal:", "dim"),
        ("    deskbus tail", ""),
        ("    deskbus cycle request --as-of 2012-06-29 --wait", ""),
        ("  Ctrl-C stops the desk; nothing is lost", "dim"),
    ]
    for text, style in lines:
        err().print(Text(text, style=style), soft_wrap=True)
