"""`deskbus demo`: fill a desk with a year, open its console, and say what to look at."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from libs.bus.client import open_client
from libs.runtime.loop import run as run_loop
from libs.runtime.settings import Settings
from libs.telemetry.logging import configure_logging
from services import launcher
from services.cli.demo.filling import CALLER, fill
from services.cli.demo.market import write_market
from services.cli.demo.place import DemoFolder, DemoMark
from services.cli.demo.receiver import receiver
from services.cli.demo.sealed import EXIT_RULES, MAIN, seal, settings_in
from services.cli.demo.tour import tour
from services.cli.desk.console import shown
from services.cli.shell.options import group
from services.cli.shell.problem import CliProblem
from services.cli.shell.progress import CycleProgress
from services.cli.shell.running import RunningDesk, find_desk, until_stopped
from services.cli.shell.terminal import aside, err, out

FOLDER = Path(".deskbus-demo")
SESSIONS_MIN, SESSIONS_MAX = 5, 260
HONEST = (
    "Prices are real (bokeh-sampledata, June 2009 to May 2010). Headlines are synthetic. The "
    "provider `scripted` is a script made for this demo, not a model, and costs nothing."
)

app = group()


@app.command()
def demo(
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete the existing demo and create a new one.")
    ] = False,
    folder: Annotated[Path, typer.Option("--dir", help="The demo's own directory.")] = FOLDER,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, help="The console's port; by default 8000, or the next free one."
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option(help="Open a browser, if this is a terminal and there is one.")
    ] = True,
    sessions: Annotated[
        int | None,
        typer.Option(
            min=SESSIONS_MIN,
            max=SESSIONS_MAX,
            help="Fill only this many of the year's last sessions.",
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once", help="Stop when the demo is filled; open it later without this option."
        ),
    ] = False,
) -> None:
    """Show a sample desk with a year of decisions, exits, LLM calls, costs and mistakes.

    It needs no key and no network and never touches your own desk: it ignores settings, keys and
    servers in the environment and uses its own directory. The console opens in seconds and fills in
    30 to 60 seconds. A second `deskbus demo` opens the existing demo.
    """
    seal()
    place = DemoFolder(folder.absolute())
    running = _running(place)
    if running is not None and fresh:
        raise CliProblem(
            f"this demo is running (process {running.pid})",
            "stop it with Ctrl-C in its terminal, then: deskbus demo --fresh",
        )
    if running is not None:
        text = f"the demo is already running: {running.http_url}"
        _open(text, running.http_url, browser=browser)
        asyncio.run(_show(running, place))
        return
    if fresh:
        place.clear()
    mark = (None if fresh else place.mark) or DemoMark(sessions=sessions)
    place.write(mark)
    write_market(place.folder / "market")
    (place.folder / "exit_signals.toml").write_text(EXIT_RULES)
    settings = settings_in(place.folder, port)
    configure_logging(settings.log.level, settings.log.format)
    if run_loop(until_stopped(_hold(place, mark, settings, browser=browser, once=once))):
        rest = "opens it again" if (place.mark or mark).filled else "continues filling it"
        aside(f"stopped; `deskbus demo` {rest}")


def _running(place: DemoFolder) -> RunningDesk | None:
    """The demo of this directory where it runs already."""
    if place.mark is None:
        return None
    try:
        return find_desk(settings_in(place.folder))
    except CliProblem:
        return None


async def _show(desk: RunningDesk | launcher.OpenDesk, place: DemoFolder) -> None:
    """Say what to look at."""
    async with open_client(desk.nats_url, desk.secrets_dir, CALLER) as client:
        stops = await tour(client)
    console = out()
    command = f"DESKBUS_DATA_DIR={place.folder} deskbus performance {MAIN}"
    console.print(Text(f"Look at (or: {command})", "bold"), soft_wrap=True)
    for number, (path, words) in enumerate(stops.items(), start=1):
        line = Text(f"  {number}. {words} ").append(f"{desk.http_url}{path}", "cyan")
        console.print(line, soft_wrap=True)


async def _hold(
    place: DemoFolder, mark: DemoMark, settings: Settings, *, browser: bool, once: bool
) -> None:
    with receiver() as addresses:
        # The environment is sealed: no other channel has an address in it.
        os.environ.update(addresses)
        async with launcher.desk(settings) as desk:
            _open(f"The demo is open: {desk.http_url}", desk.http_url, browser=browser)
            aside(HONEST)
            lost = asyncio.ensure_future(desk.finished())
            filling = asyncio.ensure_future(_fill(desk, place, mark))
            try:
                await asyncio.wait({filling, lost}, return_when=asyncio.FIRST_COMPLETED)
                await (filling if filling.done() else lost)
                if not once:
                    aside("Ctrl-C stops it; `deskbus demo` opens it again")
                    await lost
            finally:
                filling.cancel()
                lost.cancel()


async def _fill(desk: launcher.OpenDesk, place: DemoFolder, mark: DemoMark) -> None:
    if not mark.filled:
        with CycleProgress(err(), lambda _: "") as progress:
            await fill(desk.settings, mark.sessions, progress.counts)
        place.write(mark.model_copy(update={"filled": True}))
    await _show(desk, place)


def _open(text: str, url: str | None, *, browser: bool) -> None:
    """Say where it is; for a person at a terminal open a browser there, if there is one."""
    aside(text, "bold green")
    if browser and url and sys.stdout.isatty() and sys.stderr.isatty():
        shown(url)
