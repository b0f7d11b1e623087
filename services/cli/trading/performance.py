"""`deskbus performance`: how an account did, beside its benchmark."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from contracts.performance import PerformanceQuery, PerformanceView, RoundTrip
from contracts.subjects.accounts import PERFORMANCE
from libs.facts import amounts
from libs.report import performance as words
from libs.runtime.nearest import UnknownAccount
from services.cli.render import chart
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import Sheet, emit, out, table, write

NARROW = 100
"""Columns below which a month has a line of its own."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

app = group()


@app.command()
def performance(
    account: Annotated[str, typer.Argument(help="The account's name.")] = "main",
    benchmark: Annotated[
        str | None,
        typer.Option(help="Compare with `candidates`, `cash` or a ticker, whatever is set."),
    ] = None,
    trips: Annotated[int, typer.Option(min=0, max=200, help="How many round trips to list.")] = 20,
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


def show(account: str, view: PerformanceView, console: Console) -> None:
    """Print the figures, the curve, the months and the round trips."""
    narrow = console.width < NARROW
    head = Text.assemble((f"performance of {account}", "bold"))
    if view.first:
        span = f"{amounts.session(view.first)} to {amounts.session(view.last)}"
        head.append(f"  {span}, amounts in {view.currency}", "dim")
    parts: list[RenderableType] = [head]
    if view.account is None:
        parts.append(Text("Returns begin with the account's second session.", "dim"))
    else:
        parts += [Text(), _figures(view), *_notes(view)]
    if len(view.points) > 1:
        parts += [Text(), *_curve(view, console)]
    if view.account is not None and view.months:
        parts += [Text(), _months(view, narrow=narrow)]
    if view.tickers:
        parts += [Text(), _tickers(view)]
    if view.trips:
        parts += [Text(), _trips(view.trips)]
        if view.trips_more:
            parts.append(Text("more with --trips", "dim"))
    if view.message:
        parts.append(Text(view.message, "yellow"))
    write(Group(*parts), console)


def show_result(account: str, view: PerformanceView, console: Console) -> None:
    """Print in short how an account did: the figures and the curve."""
    span = f"{amounts.session(view.first)} to {amounts.session(view.last)}" if view.first else ""
    equity = f"equity {amounts.money(view.equity, view.currency or '')}"
    head = Text.assemble((f"{account}  ", "bold"), equity, (f"  {span}", "dim"))
    parts: list[RenderableType] = [head]
    if view.account is None:
        parts.append(Text("Returns begin with the account's second session.", "dim"))
    else:
        parts += [_figures(view), *_notes(view)]
    if len(view.points) > 1:
        parts += [Text(), *_curve(view, console)]
    write(Group(*parts), console)


def show_trips(trips: Sequence[RoundTrip], console: Console) -> None:
    """Print round trips, one a line; P&L is after fees."""
    write(_trips(trips), console)


def _figures(view: PerformanceView) -> Table:
    """Returns beside the benchmark, and what the round trips came to."""
    grid = table("", ("account", "right"), ("benchmark", "right"), "", "round trips")
    rows = words.figures(view)
    trading = words.trading(view.trades, view.currency or "")
    for number in range(max(len(rows), len(trading))):
        label, own, other = rows[number] if number < len(rows) else ("", "", "")
        name, text = trading[number] if number < len(trading) else ("", "")
        grid.add_row(
            Text(label, "cyan"), Text(own, _toned(own)), Text(other), Text(name, "cyan"), text
        )
    return grid


def _notes(view: PerformanceView) -> Iterable[Text]:
    yield Text(f"benchmark: {words.benchmark(view)}", "dim")
    if view.benchmark_message:
        yield Text(view.benchmark_message, "yellow")


def _toned(text: str) -> str:
    if text == amounts.UNKNOWN:
        return ""
    return "green" if text.startswith("+") else "red" if text.startswith("-") else ""


def _curve(view: PerformanceView, console: Console) -> Iterable[RenderableType]:
    """The time-weighted return at each close, its highest and lowest at the left."""
    values = [point.return_pct for point in view.points]
    labels = [amounts.gain_percent(max(values)), amounts.gain_percent(min(values))]
    margin = max(map(len, labels))
    lines = chart.drawn(values, console.width - margin - 4, chart.levels(console.encoding))
    for number, line in enumerate(lines):
        label = labels[0] if number == 0 else labels[1] if number == len(lines) - 1 else ""
        text = Text.assemble((f"{label:>{margin}}  ", "dim"), (line, "cyan"))
        text.no_wrap = True
        yield text
    yield Text(f"{'':>{margin}}  time-weighted return at the close", style="dim")


def _months(view: PerformanceView, *, narrow: bool) -> Table:
    """A row a year; a row a month where there is no room for twelve columns."""
    if narrow:
        grid = table("month", ("account", "right"), ("benchmark", "right"))
        for it in view.months:
            other = amounts.UNKNOWN
            if it.benchmark_pct is not None:
                other = amounts.gain_percent(it.benchmark_pct)
            grid.add_row(it.month, _gain(it.return_pct), other)
        return grid
    grid = table("year", *((month, "right") for month in MONTHS), ("year's", "right"))
    for year, months, whole in words.years(view):
        cells = [Text("") if pct is None else _gain(pct, short=True) for pct in months]
        grid.add_row(year, *cells, _gain(whole))
    return grid


def _gain(pct: Decimal, *, short: bool = False) -> Text:
    text = f"{amounts.rounded(pct, Decimal('0.1')):+f}" if short else amounts.gain_percent(pct)
    return Text(text, "green" if pct > 0 else "red" if pct < 0 else "dim")


def _tickers(view: PerformanceView) -> Table:
    grid = table("ticker", ("round trips", "right"), ("P&L after fees", "right"))
    for it in view.tickers:
        style = "green" if it.gain > 0 else "red" if it.gain < 0 else "dim"
        grid.add_row(it.ticker, str(it.trips), Text(amounts.change(it.gain), style))
    return grid


def _trips(trips: Sequence[RoundTrip]) -> Sheet:
    grid = table(
        *("ticker", "opened", "closed", ("shares", "right"), ("entry", "right")),
        *(("exit", "right"), ("P&L", "right"), ("return", "right")),
        *("sold by", "decided in", "sold in"),
        spare=("sold in", "decided in", "return", "shares"),
    )
    for trip in trips:
        style = "green" if trip.gain > 0 else "red" if trip.gain < 0 else "dim"
        grid.add_row(
            Text(trip.ticker, "bold"),
            f"{trip.opened}",
            f"{trip.closed}" if trip.closed else "open",
            amounts.quantity(trip.quantity),
            _money(trip.entry_price),
            _money(trip.exit_price),
            Text(amounts.change(trip.gain), style),
            Text("" if trip.gain_pct is None else amounts.gain_percent(trip.gain_pct), style),
            words.why_sold(trip),
            _short(trip.entry_cycle_id),
            _short(trip.exit_cycle_id),
        )
    return grid


def _money(amount: Decimal | None) -> str:
    return amounts.UNKNOWN if amount is None else amounts.money(amount)


def _short(cycle_id: object) -> str:
    return amounts.UNKNOWN if cycle_id is None else amounts.short(cycle_id)
