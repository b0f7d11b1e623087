"""`deskbus leaderboard`: how pipelines did, account by account, beside cash and holding."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from contracts.leaderboard import LeaderboardQuery, LeaderboardRow, LeaderboardView
from contracts.subjects.accounts import LEADERBOARD
from libs.facts import amounts
from libs.report import board
from services.cli.render import chart
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import Sheet, emit, out, table, write

CURVE_WIDTH = 12

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
    head = Text("leaderboard", style="bold")
    if view.sessions:
        count = amounts.count(view.sessions, "session")
        span = f"{amounts.session(view.first)} to {amounts.session(view.last)}"
        head.append(f"  {count}, from the close of {span}", style="dim")
    console.print(head)
    if view.rows:
        console.print()
        write(_table(view.rows, console), console)
        console.print()
    for line in _notes(view):
        console.print(Text(amounts.plain(line), style="dim"))


def _table(rows: Sequence[LeaderboardRow], console: Console) -> Sheet:
    """The rows with as many figures as fit on their lines, the most telling ones."""
    marks = chart.levels(console.encoding)
    curves = [chart.sparkline(row.curve, CURVE_WIDTH, marks) for row in rows]
    figures = list(board.columns(rows))
    while figures and _grid(rows, curves, figures).width_needed() > console.width:
        figures.pop()
    return _grid(rows, curves, figures)


def _grid(
    rows: Sequence[LeaderboardRow], curves: Sequence[str], figures: Sequence[board.Column]
) -> Sheet:
    heads = [(title.lower(), "right") for title, _ in figures]
    grid = table("pipeline", "account", "equity", ("return", "right"), *heads)
    for row, curve in zip(rows, curves, strict=True):
        style = "" if row.kind == "pipeline" else "dim"
        grid.add_row(
            Text(_name(row), style=style or "bold"),
            Text(row.account or ""),
            Text(curve, style="cyan", no_wrap=True),
            _return(row),
            *(Text(text_of(row), style=style, no_wrap=True) for _, text_of in figures),
        )
    return grid


def _name(row: LeaderboardRow) -> str:
    """The pipeline's name, with its provider where that is called otherwise."""
    others = [name for name in row.providers if name != row.name]
    return f"{row.name} ({', '.join(row.providers)})" if others else row.name


def _return(row: LeaderboardRow) -> Text:
    if row.return_pct is None:
        return Text(amounts.UNKNOWN)
    style = "green" if row.return_pct > 0 else "red" if row.return_pct < 0 else ""
    return Text(amounts.gain_percent(row.return_pct), style=style)


def _notes(view: LeaderboardView) -> Sequence[str]:
    notes = [view.message] if view.message else []
    if view.universe:
        absent = f"; no price for {' '.join(view.absent)}" if view.absent else ""
        notes.append(f"buy-and-hold: equal parts of {' '.join(view.universe)}{absent}")
    if view.sessions:
        notes.append(
            "win rate: of closed round trips; "
            "hits: filled picks that moved the right way within 5 sessions; "
            f"prices: {view.market_source}"
        )
    notes.extend(
        f"{row.key} took turns: it decided for {', '.join(row.accounts)}"
        for row in view.rows
        if row.accounts not in {(), (row.account,)}
    )
    if view.hidden:
        hidden = amounts.count(view.hidden, "row")
        notes.append(
            f"{hidden} without trades or of throw-away accounts: deskbus leaderboard --all"
        )
    if len(view.currencies) > 1:
        notes.append(f"returns are in each account's own currency: {', '.join(view.currencies)}")
    return notes
