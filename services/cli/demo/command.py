"""`deskbus demo`: fill a desk with a year, open its console, and say what to look at."""

import asyncio
import os
import signal
import sys
import webbrowser
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from libs.bus.client import open_client
from libs.market.calendar import exchange_calendar
from libs.runtime.loop import run as run_loop
from libs.runtime.settings import Settings
from libs.telemetry.logging import configure_logging
from services import launcher
from services.cli.demo.filling import CALLER, Year, fill
from services.cli.demo.market import write_market
from services.cli.demo.place import Mark, Place
from services.cli.demo.receiver import receiver
from services.cli.demo.sealed import EXIT_RULES, MAIN, seal, settings_in
from services.cli.demo.tour import Stop, tour
from services.cli.shell.options import group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.progress import Progress
from services.cli.shell.running import RunningDesk, find_desk
from services.cli.shell.terminal import err, out

FOLDER = Path(".deskbus-demo")
SESSIONS_MIN, SESSIONS_MAX = 5, 260
HONEST = (
    "Prices are real (bokeh-sampledata, June 2009 to May 2010). Headlines are synthetic, and the "
    "provider `scripted` is a script, no model: it was made for this demo and costs nothing."
)

app = group()


@app.command()
def demo(
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete the demo that is there, and make it anew.")
    ] = False,
    folder: Annotated[Path, typer.Option("--dir", help="The demo's own directory.")] = FOLDER,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, help="The console's port; by default 8000, or the next free one."
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option(help="Open a browser, where there is one and this is a terminal.")
    ] = True,
    sessions: Annotated[
        int | None,
        typer.Option(
            min=SESSIONS_MIN, max=SESSIONS_MAX, help="Fill only the year's last sessions."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when it is filled; open it later without this.")
    ] = False,
) -> None:
    """Show a desk that has lived a year: decisions, exits, an LLM's chats and costs, mistakes.

    It needs no key and no network, and knows nothing of your own desk: settings, keys and servers
    of the environment are ignored, and everything is kept in a directory of its own. The console
    opens within seconds and fills in half a minute, on a busy machine in one; a second
    `deskbus demo` opens what is there.
    """
    seal()
    place = Place(folder.absolute())
    running = _running(place)
    if running is not None and fresh:
        raise Problem(
            ExitCode.FAILED,
            f"this demo is running (process {running.pid})",
            "stop it with Ctrl-C in its terminal, then: deskbus demo --fresh",
        )
    if running is not None:
        asyncio.run(_show_running(place, running, browser=browser))
        return
    if fresh:
        place.clear()
    known = None if fresh else place.mark
    mark = known or Mark(sessions=sessions)
    place.write(mark)
    write_market(place.folder / "market")
    (place.folder / "exit_signals.toml").write_text(EXIT_RULES)
    settings = settings_in(place.folder, port)
    configure_logging(settings.log_level, settings.log_format)
    run_loop(_hold(place, mark, settings, browser=browser, once=once))


def _running(place: Place) -> RunningDesk | None:
    """The demo of this directory where it runs already."""
    if place.mark is None:
        return None
    try:
        return find_desk(settings_in(place.folder))
    except Problem:
        return None


async def _show_running(place: Place, desk: RunningDesk, *, browser: bool) -> None:
    url = desk.http_url or ""
    err().print(f"the demo is running already: {url}", style="bold green", soft_wrap=True)
    async with open_client(desk.nats_url, desk.secrets_dir, CALLER) as client:
        _tell(await tour(client), url, place.folder)
    if browser:
        _open(url)


async def _hold(place: Place, mark: Mark, settings: Settings, *, browser: bool, once: bool) -> None:
    living = asyncio.ensure_future(_live(place, mark, settings, browser=browser, once=once))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, living.cancel)
    try:
        await living
    except asyncio.CancelledError:
        filled = (place.mark or mark).filled
        rest = "opens it again" if filled else "continues filling it"
        err().print(f"stopped; `deskbus demo` {rest}", style="dim")


async def _live(place: Place, mark: Mark, settings: Settings, *, browser: bool, once: bool) -> None:
    with receiver(place.folder) as addresses:
        # The environment is sealed: no other channel has an address in it.
        os.environ.update(addresses)
        await _open_desk(place, mark, settings, browser=browser, once=once)


async def _open_desk(
    place: Place, mark: Mark, settings: Settings, *, browser: bool, once: bool
) -> None:
    async with launcher.desk(settings) as desk:
        url = desk.http_url or ""
        err().print(Text.assemble(("The demo is open: ", "bold green"), url), soft_wrap=True)
        err().print(HONEST, style="dim")
        if browser:
            _open(url)
        lost = asyncio.ensure_future(desk.finished())
        try:
            await _unless_lost(_filled(place, mark, desk.settings), lost)
            async with open_client(desk.nats_url, desk.secrets_dir, CALLER) as client:
                _tell(await tour(client), url, place.folder)
            if not once:
                err().print("Ctrl-C stops it; `deskbus demo` opens it again", style="dim")
                await lost
        finally:
            lost.cancel()


async def _filled(place: Place, mark: Mark, settings: Settings) -> None:
    if mark.filled:
        return
    year = Year.of(mark.sessions, exchange_calendar())
    with Progress(err(), lambda _: "") as progress:
        await fill(settings, year, progress.counts)
    place.write(mark.model_copy(update={"filled": True}))


async def _unless_lost(work: Coroutine[Any, Any, None], lost: "asyncio.Future[None]") -> None:
    filling = asyncio.ensure_future(work)
    try:
        await asyncio.wait({filling, lost}, return_when=asyncio.FIRST_COMPLETED)
        if lost.done() and not filling.done():
            lost.result()
        await filling
    finally:
        filling.cancel()


def _open(url: str) -> None:
    """Open a browser for a person at a terminal; without one nothing happens."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return
    try:
        webbrowser.get()
    except webbrowser.Error:
        return
    webbrowser.open(url)


def _tell(stops: Sequence[Stop], url: str, folder: Path) -> None:
    console: Console = out()
    command = f"DESKBUS_DATA_DIR={folder} deskbus performance {MAIN}"
    console.print(Text(f"Look at (or: {command})", "bold"), soft_wrap=True)
    for number, stop in enumerate(stops, start=1):
        line = Text(f"  {number}. {stop.words} ").append(f"{url}{stop.path}", "cyan")
        console.print(line, soft_wrap=True)
