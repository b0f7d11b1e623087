"""`deskbus exit now`: a person sells a position, whatever its exit rules say."""

from typing import Annotated

import typer

from contracts.cycle import EXIT, CycleRequest
from libs.bus.client import Client
from libs.market.choice import SourceName, source_of
from services.cli.shell.options import (
    AccountOption,
    ApprovalOption,
    HeldArgument,
    JsonOption,
    group,
)
from services.cli.shell.request import (
    CycleTree,
    build,
    to_its_end,
)
from services.cli.shell.request_options import DecisionOptions
from services.cli.shell.running import load_settings, with_desk
from services.cli.shell.slots import books_of
from services.cli.trading.cycle_steps import end

app = group()


@app.callback()
def exit_() -> None:
    """Sell by hand (`deskbus exit-signals` tells what the exit rules say)."""


@app.command()
def now(
    ticker: HeldArgument,
    share: Annotated[
        str, typer.Option(help="How much of the position to sell, in percent.")
    ] = "100",
    account: AccountOption = "main",
    as_of: Annotated[
        str | None,
        typer.Option(
            help="The session to decide at, YYYY-MM-DD; the newest by default, on recorded data "
            "the account's own."
        ),
    ] = None,
    approval: ApprovalOption = False,
    json: JsonOption = False,
) -> None:
    """Sell a position, or a part of it, at the next open.

    An exit cycle does it: through the same rules, approval and execution as a sale by the exit
    rules, which nobody asks this time. Afterwards the ticker cools off like after any sale.
    """
    sale = {"ticker": ticker.upper(), "share_pct": share.removesuffix("%")}
    wish = DecisionOptions(as_of=as_of, approval=approval)
    request = build(wish, kind=EXIT, account=account, sell_now=sale)
    end(with_desk(lambda client: _sold(client, request)), json=json)


async def _sold(client: Client, request: CycleRequest) -> CycleTree:
    if request.as_of is None and source_of(load_settings()) is SourceName.REPLAY:
        # Of recorded data the newest session may be years after the account's.
        books = await books_of(client, request.pipelines[0].account)
        request = request.model_copy(update={"as_of": books.as_of if books else None})
    return await to_its_end(client, request)
