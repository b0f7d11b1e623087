"""`deskbus leaderboard`: how pipelines did, beside cash and holding, on the same sessions."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from contracts.leaderboard import LeaderboardQuery, LeaderboardRow, LeaderboardView
from contracts.subjects import LEADERBOARD
from libs.facts import amounts
from services.cli.shell.options import JsonOption, group
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.request import invalid
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import emit, one_line, out, table, write

app = group()


@app.command()
def leaderboard(
    since: Annotated[str | None, typer.Option(help="First session to compare.")] = None,
    until: Annotated[str | None, typer.Option(help="Last session to compare.")] = None,
    pipeline: Annotated[
        list[str] | None, typer.Option(help="Only this pipeline; may be repeated.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare the pipelines: return, drawdown, hits, vetoes and cost, beside cash and buy-and-hold.

    Only sessions count that all of them have: docs/leaderboard.md explains each number.
    """
    settings = load_settings()
    try:
        query = LeaderboardQuery(
            since=_day("--since", since),
            until=_day("--until", until),
            pipelines=tuple(pipeline or ()),
        )
    except ValidationError as error:
        raise invalid("leaderboard", error) from None

    async def work() -> LeaderboardView:
        async with reading_client(settings) as client:
            return await client.ask(LEADERBOARD, query)

    view = asking(work())
    if query.pipelines and not view.rows:
        raise Problem(ExitCode.NOT_FOUND, view.message)
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
        write(_table(view.rows), console)
        console.print()
    for line in _notes(view):
        console.print(Text(amounts.plain(line), style="dim"))


def _table(rows: Sequence[LeaderboardRow]) -> Table:
    heads = ("return", "max drawdown", "hits", "vetoes", "cycles", "tokens", "USD")
    grid = table("pipeline", *((head, "right") for head in heads), "accounts")
    for row in rows:
        is_pipeline = row.kind == "pipeline"
        grid.add_row(
            Text(_name(row), style="bold" if is_pipeline else "dim"),
            _return(row),
            amounts.UNKNOWN
            if row.max_drawdown_pct is None
            else amounts.percent(row.max_drawdown_pct),
            *(_counts(row) if is_pipeline else [""] * 5),
            one_line(", ".join(row.accounts), "dim"),
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


def _counts(row: LeaderboardRow) -> Sequence[str]:
    share = f" ({amounts.percent(Decimal(row.hits * 100) / row.judged)})" if row.judged else ""
    return (
        f"{row.hits}/{row.judged}{share}" if row.judged else amounts.UNKNOWN,
        f"{row.vetoes}/{row.picks}" if row.picks else amounts.UNKNOWN,
        f"{row.decisions:,}" + (f" + {row.failed:,} failed" if row.failed else ""),
        f"{row.usage.tokens:,}",
        f"{row.usage.cost_usd:,.4f}",
    )


def _notes(view: LeaderboardView) -> Sequence[str]:
    notes = [view.message] if view.message else []
    if view.universe:
        absent = f"; no price for {' '.join(view.absent)}" if view.absent else ""
        notes.append(f"buy-and-hold: equal parts of {' '.join(view.universe)}{absent}")
    if view.sessions:
        notes.append(
            "hits: filled picks that moved the right way within 5 sessions; "
            "vetoes: vetoed picks of all picks; "
            f"prices: {view.market_source}"
        )
    if len(view.currencies) > 1:
        notes.append(f"returns are in each account's own currency: {', '.join(view.currencies)}")
    return notes
