"""`deskbus trades`: the round trips of an account."""

from dataclasses import replace
from typing import Annotated

import typer

from contracts.message import PAGE_MAX
from contracts.performance import PerformanceQuery
from contracts.subjects.accounts import PERFORMANCE
from libs.report import cutoff
from libs.report import performance as words
from libs.report.view import NoRows
from libs.runtime.nearest import UnknownAccount
from services.cli.render.described import head, show
from services.cli.shell.invalid import typed
from services.cli.shell.list_options import tell_limit
from services.cli.shell.options import AccountArgument, JsonOption, account_either_way, group
from services.cli.shell.running import read

app = group()


@app.command()
@account_either_way
def trades(
    account: AccountArgument = "main",
    ticker: Annotated[str | None, typer.Option(help="Only trades of this ticker.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=PAGE_MAX, help="How many of the newest trades to search.")
    ] = 50,
    json: JsonOption = False,
) -> None:
    """List an account's trades: entry, exit, P&L and exit reason.

    Open trades come first, with unrealised P&L; then closed ones, newest first. Values are as of
    the newest close at which the account could be valued. `deskbus performance` shows the totals.
    """
    query = typed("account", PerformanceQuery, account=account, trips=limit, points=2)
    view = read(PERFORMANCE, query)
    if not view.found:
        raise UnknownAccount(account, view.accounts)
    trips = [trip for trip in view.trips if ticker is None or trip.ticker == ticker.upper()]
    of = "" if ticker is None else f" of {ticker.upper()}"
    none = NoRows(f"Account {account} has no trades{of} yet.")
    table = replace(words.trips(view, account, trips), title="", empty=none)
    title = head(f"trades of {account}", cutoff.as_of(view.last, view.currency or ""))
    show(trips, [title, *words.notes(view), table], json=json)
    if view.trips_more:
        tell_limit(len(view.trips), PAGE_MAX)
