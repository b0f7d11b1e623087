"""`deskbus performance`: how an account did, beside its benchmark."""

from collections.abc import Iterable
from typing import Annotated

import typer

from contracts.message import PAGE_MAX
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.subjects.accounts import PERFORMANCE
from libs.facts import amounts
from libs.quant.ticks import priced
from libs.report import performance as words
from libs.report.tones import Tone
from libs.report.view import Text
from libs.runtime.nearest import UnknownAccount
from services.cli.render.chart import TerminalChart
from services.cli.render.described import Shown, head, show
from services.cli.shell.invalid import typed
from services.cli.shell.list_options import tell_limit
from services.cli.shell.options import AccountArgument, JsonOption, account_either_way, group
from services.cli.shell.running import read
from services.cli.shell.terminal import out

NARROW = 100
"""Columns below which a month has a line of its own."""

app = group()


@app.command()
@account_either_way
def performance(
    account: AccountArgument = "main",
    benchmark: Annotated[
        str | None,
        typer.Option(help="Compare with `candidates`, `cash` or a ticker, instead of the setting."),
    ] = None,
    trips: Annotated[
        int, typer.Option(min=0, max=PAGE_MAX, help="How many round trips to list.")
    ] = 20,
    json: JsonOption = False,
) -> None:
    """Show an account's return, risk, months and round trips against a benchmark."""
    query = typed(
        "performance", PerformanceQuery, account=account, benchmark=benchmark, trips=trips
    )
    view = read(PERFORMANCE, query)
    if not view.found:
        raise UnknownAccount(account, view.accounts)
    show([view], screen(account, view), json=json)
    if view.trips_more and trips:
        tell_limit(len(view.trips), PAGE_MAX, option="--trips")


def screen(account: str, view: PerformanceView) -> Iterable[Shown]:
    """The figures, the curve, the months and the round trips."""
    yield head(f"performance of {account}", words.heading(view))
    yield from words.notes(view)
    yield from _figures(view)
    if view.account is not None and view.months:
        yield words.by_month(view) if out().width < NARROW else words.months(view)
    if view.tickers:
        yield words.tickers(view, account)
    if view.trips:
        yield words.trips(view, account)
    if view.message:
        yield Text(view.message, Tone.WARN)


def result(account: str, view: PerformanceView) -> Iterable[Shown]:
    """How an account did, in short: the figures and the curve."""
    equity = f"equity {amounts.money(priced(view.equity, view.currency or ''))}"
    yield head(account, f"{equity}  {words.heading(view)}")
    yield from words.notes(view)
    yield from _figures(view)


def _figures(view: PerformanceView) -> Iterable[Shown]:
    """Returns beside the benchmark, the sums of the round trips, and the curve."""
    if view.account is None:
        yield Text("Returns begin with the account's second session.")
    else:
        yield words.figures(view)
        yield words.trading(view.trades, view.currency or "")
    if len(view.points) > 1:
        values = [point.return_pct for point in view.points]
        yield TerminalChart(values, amounts.gain_percent, "time-weighted return at the close")
