"""`deskbus trades`: the round trips of an account."""

from typing import Annotated

import typer
from pydantic import ValidationError

from contracts.message import PAGE_MAX
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.subjects.accounts import PERFORMANCE
from libs.runtime.nearest import UnknownAccount
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import emit, err, out
from services.cli.trading import performance

app = group()


@app.command()
def trades(
    account: Annotated[str, typer.Argument(help="The account's name.")] = "main",
    ticker: Annotated[str | None, typer.Option(help="Only trades of this ticker.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=PAGE_MAX, help="How many of the newest to look through.")
    ] = 50,
    json: JsonOption = False,
) -> None:
    """List an account's trades, from the first share to the last: entry, exit, P&L and what sold.

    Open ones come first, then the newest. `deskbus performance` has their sums.
    """
    settings = load_settings()
    try:
        query = PerformanceQuery(account=account, trips=limit, points=2)
    except ValidationError as error:
        raise invalid("account", error) from None

    async def work() -> PerformanceView:
        async with reading_client(settings) as client:
            return await client.ask(PERFORMANCE, query)

    view = asking(work())
    if not view.found:
        raise UnknownAccount(account, view.accounts)
    trips = [trip for trip in view.trips if ticker is None or trip.ticker == ticker.upper()]
    if json:
        emit(trips)
        return
    if trips:
        performance.show_trips(trips, out())
    else:
        of = "" if ticker is None else f" of {ticker.upper()}"
        err().print(f"account {account} has no trades{of} yet", style="dim")
    if view.trips_more and limit < PAGE_MAX:
        err().print(f"older ones with --limit, up to {PAGE_MAX}", style="dim")
