"""`deskbus performance`: how an account did, beside its benchmark."""

from collections.abc import Iterable
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.text import Text

from contracts.message import PAGE_MAX
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.subjects.accounts import PERFORMANCE
from libs.facts import amounts
from libs.quant.ticks import priced
from libs.report import performance as words
from libs.runtime.nearest import UnknownAccount
from services.cli.render import chart
from services.cli.render.described import described, head
from services.cli.shell.invalid import invalid
from services.cli.shell.list_options import tell_limit
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import emit, out, write

NARROW = 100
"""Columns below which a month has a line of its own."""

app = group()


@app.command()
def performance(
    account: Annotated[str, typer.Argument(help="The account's name.")] = "main",
    benchmark: Annotated[
        str | None,
        typer.Option(help="Compare with `candidates`, `cash` or a ticker, whatever is set."),
    ] = None,
    trips: Annotated[
        int, typer.Option(min=0, max=PAGE_MAX, help="How many round trips to list.")
    ] = 20,
    json: JsonOption = False,
) -> None:
    """Show how an account did: return, risk, months and round trips, beside a benchmark."""
    settings = load_settings()
    try:
        query = PerformanceQuery(account=account, benchmark=benchmark, trips=trips)
    except ValidationError as error:
        raise invalid("performance", error) from None

    async def work() -> PerformanceView:
        async with reading_client(settings) as client:
            return await client.ask(PERFORMANCE, query)

    view = asking(work())
    if not view.found:
        raise UnknownAccount(account, view.accounts)
    if json:
        emit([view])
    else:
        show(account, view, out())
    if view.trips_more and trips:
        whole = "`deskbus export` writes the whole record"
        tell_limit(len(view.trips), PAGE_MAX, whole, option="--trips")


def show(account: str, view: PerformanceView, console: Console) -> None:
    """Print the figures, the curve, the months and the round trips."""
    parts: list[RenderableType] = [
        head(f"performance of {account}", words.heading(view)),
        *(described(note, console) for note in words.notes(view)),
        *_figures(view, console),
    ]
    if view.account is not None and view.months:
        months = words.by_month(view) if console.width < NARROW else words.months(view)
        parts += [Text(), described(months, console)]
    if view.tickers:
        parts += [Text(), described(words.tickers(view, account), console)]
    if view.trips:
        parts += [Text(), described(words.trips(view, account), console)]
    if view.message:
        parts.append(Text(view.message, "yellow"))
    write(Group(*parts), console)


def show_result(account: str, view: PerformanceView, console: Console) -> None:
    """Print in short how an account did: the figures and the curve."""
    equity = f"equity {amounts.money(priced(view.equity, view.currency or ''))}"
    title = head(account, f"{equity}  {words.heading(view)}")
    notes = [described(note, console) for note in words.notes(view)]
    write(Group(title, *notes, *_figures(view, console)), console)


def _figures(view: PerformanceView, console: Console) -> Iterable[RenderableType]:
    """Returns beside the benchmark, the sums of the round trips, and the curve."""
    if view.account is None:
        yield Text("Returns begin with the account's second session.", "dim")
    else:
        yield Text()
        yield described(words.figures(view), console)
        yield Text()
        yield described(words.trading(view.trades, view.currency or ""), console)
    if len(view.points) > 1:
        values = [point.return_pct for point in view.points]
        yield Text()
        yield from chart.lines(
            values, amounts.gain_percent, "time-weighted return at the close", console
        )
