"""`deskbus report`: what a session brought to an account."""

from datetime import date
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import RenderableType

from contracts.report import ReportQuery, ReportView
from contracts.subjects.reports import REPORT
from libs.facts.amounts import plain
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import emit, out, write

app = group()


@app.command()
def report(
    session: Annotated[
        str | None,
        typer.Argument(help="The session, e.g. 2012-06-29; the account's newest by default."),
    ] = None,
    account: Annotated[str, typer.Option(help="The account's name.")] = "main",
    json: JsonOption = False,
) -> None:
    """Show a session's report: what needs you, decisions, orders, P&L and costs.

    Rendered on a terminal; elsewhere it is the same Markdown that a job of kind `report` writes to
    reports/ in the data directory.
    """
    settings = load_settings()
    try:
        query = ReportQuery(
            account=account, session=date.fromisoformat(session) if session else None
        )
    except ValidationError as error:
        raise invalid("--account", error) from None
    except ValueError:
        raise Problem(
            ExitCode.USAGE, f"SESSION must be a date, e.g. 2012-06-29 (got {session!r})"
        ) from None

    async def work() -> ReportView:
        async with reading_client(settings) as client:
            return await client.ask(REPORT, query)

    view = asking(work())
    if view.report is None:
        raise Problem(ExitCode.NOT_FOUND, view.message)
    if json:
        emit([view.report])
        return
    if out().is_terminal:
        write(_rendered(view.markdown), out())
        return
    for line in view.markdown.splitlines():
        out().print(plain(line), soft_wrap=True)


def _rendered(markdown: str) -> RenderableType:
    """The report as a person reads it; a file or another program gets the Markdown itself."""
    from rich.markdown import Markdown  # noqa: PLC0415 - slow, and only wanted here

    text = "\n".join(plain(line) for line in markdown.splitlines())
    return Markdown(text, hyperlinks=False)
