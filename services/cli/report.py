"""`deskbus report`: what a session brought to an account."""

from datetime import date
from typing import Annotated

import typer
from pydantic import ValidationError

from contracts.report import ReportQuery, ReportView
from contracts.subjects import REPORT
from libs.facts.amounts import plain
from services.cli.commands import JsonOption, group
from services.cli.problem import ExitCode, Problem
from services.cli.request import invalid
from services.cli.running import asking, load_settings, reading_client
from services.cli.terminal import emit, out

app = group()


@app.command()
def report(
    session: Annotated[
        str | None, typer.Argument(help="Such as 2012-06-29; the account's newest by default.")
    ] = None,
    account: Annotated[str, typer.Option(help="The account's name.")] = "main",
    json: JsonOption = False,
) -> None:
    """Show what a session brought: what needs a person, was decided, done, earned and spent.

    The same Markdown that a job of kind `report` writes to reports/ in the data directory.
    """
    settings = load_settings()
    try:
        query = ReportQuery(
            account=account, session=date.fromisoformat(session) if session else None
        )
    except ValidationError as error:
        raise invalid("--account", error) from None
    except ValueError:
        raise Problem(ExitCode.USAGE, f"{session!r} is no date", "write it as 2012-06-29") from None

    async def work() -> ReportView:
        async with reading_client(settings) as client:
            view: ReportView = await client.ask(REPORT, query)
            return view

    view = asking(work())
    if view.report is None:
        raise Problem(ExitCode.NOT_FOUND, view.message)
    if json:
        emit([view.report])
        return
    for line in view.markdown.splitlines():
        heading = line.startswith("#")
        out().print(plain(line), style="bold cyan" if heading else "", soft_wrap=True)
