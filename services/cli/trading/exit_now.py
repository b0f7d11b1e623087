"""`deskbus exit now`: a person sells a position, whatever its exit rules say."""

from typing import Annotated

import typer

from contracts.account_query import AccountQuery
from contracts.cycle import EXIT, CycleRequest, CycleStatus
from contracts.subjects.accounts import ACCOUNT
from libs.bus.client import Client
from libs.market.choice import SourceName, source_of
from libs.runtime.settings import Settings
from services.cli.render import story
from services.cli.shell.options import (
    AccountOption,
    ApprovalOption,
    HeldArgument,
    JsonOption,
    group,
)
from services.cli.shell.progress import CycleProgress
from services.cli.shell.request import (
    ENDS,
    CycleOptions,
    CycleTree,
    build,
    request_and_follow,
    with_nodes,
)
from services.cli.shell.running import asking, desk_client, load_settings
from services.cli.shell.terminal import emit, err, out

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
    settings = load_settings()
    sale = {"ticker": ticker.upper(), "share_pct": share.removesuffix("%")}
    wish = CycleOptions(
        kind=EXIT, as_of=as_of, account=account, approval_required=approval, sell_now=sale
    )
    outcome = asking(_sold(settings, build(wish)))
    if json:
        emit([outcome.view])
    else:
        story.tell(outcome.view, out(), outcome.nodes)
    raise typer.Exit(ENDS[outcome.view.status or CycleStatus.RUNNING])


async def _sold(settings: Settings, request: CycleRequest) -> CycleTree:
    async with desk_client(settings) as client:
        if request.as_of is None and source_of(settings) is SourceName.REPLAY:
            request = await _at_its_own_session(client, request)
        with CycleProgress(err()) as progress:
            view = await request_and_follow(client, request, progress.heard)
        return await with_nodes(client, view)


async def _at_its_own_session(client: Client, request: CycleRequest) -> CycleRequest:
    """Of recorded data the newest session may be years after the account's."""
    query = AccountQuery(account=request.pipelines[0].account, fills=0)
    view = await client.ask(ACCOUNT, query)
    if view.portfolio is None:
        return request
    return request.model_copy(update={"as_of": view.portfolio.as_of})
