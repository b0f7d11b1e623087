"""`deskbus leaderboard`: how pipelines did, account by account, beside cash and holding."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

import typer

from contracts.leaderboard import LeaderboardQuery, LeaderboardView
from contracts.subjects.accounts import LEADERBOARD
from libs.report import board as words
from libs.report.view import Text
from libs.report.view import notes as notes_of
from services.cli.render.described import Shown, head, show
from services.cli.shell.invalid import day_of, typed
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import NoSuchThing
from services.cli.shell.running import read

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
    query = typed(
        "leaderboard",
        LeaderboardQuery,
        since=day_of("--since", since),
        until=day_of("--until", until),
        pipelines=tuple(pipeline or ()),
        rows=tuple(row or ()),
        everything=everything,
    )
    view = read(LEADERBOARD, query)
    if (query.pipelines or query.rows) and not view.rows:
        raise NoSuchThing(view.message, "deskbus leaderboard")
    show([view], screen(view), json=json)


def screen(view: LeaderboardView) -> Iterable[Shown]:
    """The board, what holding holds, and what is to be said of the sessions."""
    yield head("leaderboard", words.heading(view))
    hidden = words.hidden(view)
    more = f"{hidden}: deskbus leaderboard --all" if hidden else ""
    notes = notes_of(*words.notes(view), more)
    if view.rows:
        yield replace(words.board(view), title="", notes=(Text(""), *notes))
    else:
        yield from notes
