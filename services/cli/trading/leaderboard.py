"""`deskbus leaderboard`: how pipelines did, account by account, beside cash and holding."""

from datetime import date
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.text import Text

from contracts.leaderboard import LeaderboardQuery, LeaderboardView
from contracts.subjects.accounts import LEADERBOARD
from libs.facts import amounts
from libs.report import board as words
from services.cli.render.described import head, sheet
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import emit, out, write

app = group()


@app.command()
def leaderboard(
    since: Annotated[str | None, typer.Option(help="First session to compare.")] = None,
    until: Annotated[str | None, typer.Option(help="Last session to compare.")] = None,
    pipeline: Annotated[
        list[str] | None, typer.Option(help="Only this pipeline; may be repeated.")
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(help="Only this row, as rules@main; may be repeated."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also throw-away accounts and those that never traded.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Compare the pipelines, account by account: return, Sharpe, drawdown, win rate and cost.

    Beside them stand cash and buy-and-hold. Only sessions count that all of them have:
    docs/leaderboard.md explains each number.
    """
    settings = load_settings()
    try:
        query = LeaderboardQuery(
            since=_day("--since", since),
            until=_day("--until", until),
            pipelines=tuple(pipeline or ()),
            rows=tuple(row or ()),
            everything=everything,
        )
    except ValidationError as error:
        raise invalid("leaderboard", error) from None

    async def work() -> LeaderboardView:
        async with reading_client(settings) as client:
            return await client.ask(LEADERBOARD, query)

    view = asking(work())
    if (query.pipelines or query.rows) and not view.rows:
        raise Problem(ExitCode.NOT_FOUND, view.message, "deskbus leaderboard")
    if json:
        emit([view])
    else:
        show(view, out())


def _day(option: str, text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise Problem(
            ExitCode.USAGE, f"{option} must be a date, e.g. 2012-06-29 (got {text!r})"
        ) from None


def show(view: LeaderboardView, console: Console) -> None:
    """Print the board, what holding holds, and what is to be said of the sessions."""
    parts: list[RenderableType] = [head("leaderboard", words.heading(view))]
    if view.rows:
        parts += [Text(), sheet(words.board(view), console), Text()]
    hidden = words.hidden(view)
    more = f"{hidden}: deskbus leaderboard --all" if hidden else ""
    notes = filter(None, (*words.notes(view), more))
    parts += (Text(amounts.plain(note), "dim") for note in notes)
    write(Group(*parts), console)
