"""`deskbus open`: the console in a browser."""

import os
import sys
import webbrowser
from typing import Annotated

import typer
from pydantic import BaseModel

from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import CliProblem
from services.cli.shell.running import RunningDesk, find_desk, load_settings
from services.cli.shell.terminal import aside, emit, put

app = group()


class Page(BaseModel):
    """The address of a page, and whether a browser was asked to show it."""

    url: str
    opened: bool


@app.command("open")
def open_console(
    page: Annotated[
        str, typer.Argument(help="A page: portfolio, performance, cycles/4f1d08a2, ...")
    ] = "",
    browser: Annotated[
        bool, typer.Option(help="Start a browser, or only print the address.")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Open the running desk's console in a browser, and print its address.

    Without a browser, over SSH for example, it only prints the address.
    """
    url = page_url(find_desk(load_settings()), page)
    opened = browser and shown(url)
    if json:
        emit([Page(url=url, opened=opened)])
        return
    put(url)
    if browser and not opened:
        aside("no browser here: open the address in yours")


def page_url(desk: RunningDesk, page: str = "") -> str:
    """The address of a page of the console. Raises `CliProblem` where the desk serves none."""
    if desk.http_url is None:
        raise CliProblem(
            "this desk serves no console, or its address is not known here",
            "`deskbus up` without --no-http serves one; with your own servers, it is at "
            "DESKBUS_HTTP_PORT of the console service",
        )
    return f"{desk.http_url}/{page.strip('/')}"


def shown(url: str) -> bool:
    """Ask a browser with a window to show the address; False where there is none."""
    if sys.platform.startswith("linux") and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        return False  # a browser in this very terminal is not what was asked for
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False
