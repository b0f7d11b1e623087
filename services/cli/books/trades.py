"""`deskbus trades`: the round trips of an account."""

from dataclasses import replace
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Group
from rich.text import Text

from contracts.message import PAGE_MAX
from contracts.performance import PerformanceQuery, PerformanceView
from contracts.subjects.accounts import PERFORMANCE
from libs.report import cutoff
from libs.report import performance as words
from libs.runtime.nearest import UnknownAccount
from services.cli.render.described import described, head
from services.cli.shell.invalid import invalid
from services.cli.shell.list_options import tell_limit
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import emit, err, out, write

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

    Open ones come first, then the newest. All are as of the newest close at which the account could
    be valued, with the unrealised P&L of open ones. `deskbus performance` has their sums.
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
    elif trips:
        heading = head(f"trades of {account}", cutoff.as_of(view.last, view.currency or ""))
        notes = (described(note, out()) for note in words.notes(view))
        table = described(replace(words.trips(view, account, trips), title=""), out())
        write(Group(heading, *notes, Text(), table), out())
    else:
        of = "" if ticker is None else f" of {ticker.upper()}"
        later = cutoff.not_counted(view.not_counted, view.currency or "")
        text = "; ".join(filter(None, (f"account {account} has no trades{of} yet", later)))
        err().print(text, style="dim")
    if view.trips_more:
        tell_limit(len(view.trips), PAGE_MAX, "`deskbus export` writes the whole record")
