"""`deskbus report`: what a session brought to an account."""

from typing import Annotated

import typer
from rich.console import RenderableType

from contracts.report import ReportQuery
from contracts.subjects.reports import REPORT
from libs.facts.amounts import plain
from services.cli.shell.invalid import day_of, typed
from services.cli.shell.options import AccountOption, JsonOption, group
from services.cli.shell.problem import NoSuchThing
from services.cli.shell.running import read
from services.cli.shell.terminal import emit, out, put, write

app = group()


@app.command()
def report(
    session: Annotated[
        str | None,
        typer.Argument(help="The session, e.g. 2012-06-29; the account's newest by default."),
    ] = None,
    account: AccountOption = "main",
    json: JsonOption = False,
) -> None:
    """Show a session's report: what needs you, decisions, orders, P&L and costs.

    On a terminal the report is formatted. Elsewhere it is Markdown, as a job of kind `report`
    writes it to reports/ in the data directory.
    """
    query = typed("--account", ReportQuery, account=account, session=day_of("SESSION", session))
    view = read(REPORT, query)
    if view.report is None:
        raise NoSuchThing(view.message)
    if json:
        emit([view.report])
        return
    if out().is_terminal:
        write(_rendered(view.markdown), out())
        return
    for line in view.markdown.splitlines():
        put(plain(line))


def _rendered(markdown: str) -> RenderableType:
    """The report as a person reads it; a file or another program gets the Markdown itself."""
    from rich.markdown import Markdown  # noqa: PLC0415 - slow, and only wanted here

    text = "\n".join(plain(line) for line in markdown.splitlines())
    return Markdown(text, hyperlinks=False)
