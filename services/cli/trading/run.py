"""`deskbus run`: the desk up, one decision, its story, the desk down."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.text import Text

from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView
from libs.bus.client import Client, open_client
from libs.market.choice import is_bundled
from libs.runtime.loop import run as run_loop
from libs.runtime.settings import Settings
from libs.telemetry.logging import configure_logging
from services import launcher
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem
from services.cli.shell.progress import CycleProgress
from services.cli.shell.request import (
    ENDS,
    CycleTree,
    build,
    request_and_follow,
    with_nodes,
)
from services.cli.shell.request_options import (
    AS_OF_CHOSEN,
    AS_OF_DEFAULT,
    DecisionOptions,
    takes,
)
from services.cli.shell.running import RunningDesk, find_desk, load_settings
from services.cli.shell.terminal import err, facts, out, write
from services.cli.trading.cycle_steps import tell_story

app = group()


@app.command()
@takes(DecisionOptions)
def run(
    wish: DecisionOptions,
    account: Annotated[
        str | None,
        typer.Option(help="The paper account to trade; by default a new one for this run."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run one decision cycle on real prices: start the desk, decide, show why, stop.

    Needs no key and no network. The account is a fresh paper account, so the same date gives the
    same decision every time; use --account to keep one. If a desk is already running, the command
    uses it and leaves it running.
    """
    settings = load_settings()
    chosen = None if wish.as_of else _chosen(settings)
    account = account or f"run-{secrets.token_hex(4)}"
    request = build(replace(wish, as_of=wish.as_of or chosen), account=account)
    # What goes wrong is told at the end; the log would bury the story, unless it is asked for.
    level = settings.log.level if "level" in settings.log.model_fields_set else "error"
    configure_logging(level, settings.log.format)

    async def decide() -> CycleTree:
        with CycleProgress(err(), _continues) as progress:
            async with _desk(settings, progress) as (client, lost):
                following = request_and_follow(client, request, progress.heard)
                view = await _unless_lost(asyncio.ensure_future(following), lost)
                return await with_nodes(client, view)

    outcome = run_loop(decide())
    tell_story(outcome, json=json)
    if not json and outcome.view.cycle_id is not None:
        _tell_where(settings, outcome.view, chosen=chosen)
    raise typer.Exit(ENDS[outcome.view.status or CycleStatus.RUNNING])


def _continues(cycle: str) -> str:
    """The desk of `run` ends with it, and the cycle waits for the next one."""
    if not cycle:
        return ""
    return f"cycle {cycle} has not ended: it continues at the next `deskbus up`"


@asynccontextmanager
async def _desk(
    settings: Settings, progress: CycleProgress
) -> AsyncIterator[tuple[Client, "asyncio.Future[None] | None"]]:
    """A client of the running desk, or of one that lives as long as the block and may be lost."""
    running = _running(settings)
    if running is not None:
        progress.says(f"using the running desk (process {running.pid})")
        async with open_client(running.nats_url, running.secrets_dir) as client:
            yield client, None
        return
    progress.says("starting NATS, Postgres and the services")
    async with launcher.desk(settings) as desk:
        progress.says("ready")
        lost = asyncio.ensure_future(desk.finished())
        try:
            async with open_client(desk.nats_url, desk.secrets_dir) as client:
                yield client, lost
        finally:
            lost.cancel()
        progress.says("stopping")


def _chosen(settings: Settings) -> str | None:
    """The session where none is named: the sample's; of another source its newest."""
    return AS_OF_DEFAULT if is_bundled(settings) else None


def _running(settings: Settings) -> RunningDesk | None:
    if settings.nats.url is not None:
        return None
    try:
        return find_desk(settings)
    except CliProblem:
        return None


async def _unless_lost(
    work: "asyncio.Future[CycleView]", lost: "asyncio.Future[None] | None"
) -> CycleView:
    """The work's outcome; where the desk is lost meanwhile, why."""
    waited: set[asyncio.Future[Any]] = {work} if lost is None else {work, lost}
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if lost is not None and lost.done() and not work.done():
            lost.result()
        return await work
    finally:
        work.cancel()


def _tell_where(settings: Settings, view: CycleView, *, chosen: str | None) -> None:
    account = view.pipelines[0].account if view.pipelines else ""
    commands = f"deskbus portfolio {account}    deskbus up    deskbus --help"
    steps: tuple[tuple[str, str], ...] = (
        ("Data", str(settings.data_dir.absolute())),
        ("Console", _console(settings)),
        ("Next", commands),
    )
    if chosen is not None:
        why = f"{chosen}: {AS_OF_CHOSEN}; choose another with --as-of"
        steps = (("Date", why), *steps)
    write(facts([(label, Text(value, style="dim")) for label, value in steps]), out())


def _console(settings: Settings) -> str:
    """Where the console is, or would be: it shows the same record in a browser."""
    running = _running(settings)
    if running is not None and running.http_url is not None:
        return running.http_url
    host = settings.http.host if settings.http.host != "0.0.0.0" else "127.0.0.1"  # noqa: S104
    return f"http://{host}:{settings.http.port or 8000} once `deskbus up` runs"
