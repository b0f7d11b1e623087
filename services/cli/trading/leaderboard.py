"""`deskbus leaderboard`: how pipelines did, account by account, beside cash and holding."""

from collections.abc import Iterable
from dataclasses import replace

from contracts.leaderboard import LeaderboardQuery, LeaderboardView
from contracts.subjects.accounts import LEADERBOARD
from libs.report import board as words
from libs.report.view import Text
from libs.report.view import notes as notes_of
from services.cli.render.described import Shown, head, show
from services.cli.shell.list_options import filters
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import NoSuchThing
from services.cli.shell.running import read

app = group()


@app.command()
@filters(LeaderboardQuery, pipelines="--pipeline", rows="--row", everything="--all")
def leaderboard(query: LeaderboardQuery, json: JsonOption = False) -> None:
    """Compare pipelines by account: return, Sharpe, drawdown, win rate and cost.

    Cash and buy-and-hold are in the table too. Only sessions that all of them have count;
    docs/leaderboard.md explains each number.
    """
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
