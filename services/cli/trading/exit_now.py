"""`deskbus exit now`: a person sells a position, or all, whatever the exit rules say."""

import shlex
import sys
from typing import Annotated

import typer

from contracts.account_query import AccountQuery
from contracts.cycle import EXIT, CycleRequest
from contracts.subjects.accounts import ACCOUNT
from libs.bus.client import Client
from libs.facts import amounts
from libs.market.choice import SourceName, source_of
from libs.runtime.nearest import UnknownAccount
from services.cli.render.described import show
from services.cli.shell import completion
from services.cli.shell.confirming import HashOption, tell_how, whole_hash
from services.cli.shell.invalid import typed
from services.cli.shell.options import AccountOption, ApprovalOption, JsonOption, group
from services.cli.shell.problem import WrongUsage
from services.cli.shell.questions import is_confirmed
from services.cli.shell.request import (
    CycleTree,
    build,
    to_its_end,
)
from services.cli.shell.request_options import DecisionOptions
from services.cli.shell.running import ask, load_settings, with_desk
from services.cli.shell.slots import books_of
from services.cli.shell.terminal import aside
from services.cli.trading import exit_all
from services.cli.trading.cycle_steps import end

ALL = "100"

app = group()


@app.callback()
def exit_() -> None:
    """Sell by hand (`deskbus exit-signals` shows what the exit rules say)."""


@app.command()
def now(
    ticker: Annotated[
        str | None,
        typer.Argument(help="A ticker that the account holds.", autocompletion=completion.tickers),
    ] = None,
    share: Annotated[str, typer.Option(help="How much of the position to sell, in percent.")] = ALL,
    account: AccountOption = "main",
    as_of: Annotated[
        str | None,
        typer.Option(
            help="Session to decide at, YYYY-MM-DD; by default the newest, with recorded data the "
            "account's."
        ),
    ] = None,
    approval: ApprovalOption = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Sell all positions: shows them first; confirm with --hash."),
    ] = False,
    confirmed: HashOption = None,
    json: JsonOption = False,
) -> None:
    """Sell a position, a part of it, or all positions at the next open.

    It requests an exit cycle, with the usual rules for sales, approval and execution, but without
    the exit rules. Afterwards the usual cooling-off applies to the ticker.

    --all shows every position first and sells only what it showed. If anything changes, so does the
    hash, and it shows the positions again.
    """
    wish = DecisionOptions(as_of=as_of, approval=approval)
    if everything is (ticker is not None) or (everything and share != ALL):
        raise WrongUsage("name a ticker, or sell everything with --all", "deskbus portfolio")
    if everything:
        _sell_all(wish, account, confirmed, json=json)
        return
    sale = {"ticker": (ticker or "").upper(), "share_pct": share.removesuffix("%")}
    request = build(wish, kind=EXIT, account=account, sell_now=sale)
    end(with_desk(lambda client: _sold(client, request)), json=json)


async def _sold(client: Client, request: CycleRequest) -> CycleTree:
    if request.as_of is None and source_of(load_settings()) is SourceName.REPLAY:
        # Of recorded data the newest session may be years after the account's.
        books = await books_of(client, request.pipelines[0].account)
        request = request.model_copy(update={"as_of": books.as_of if books else None})
    return await to_its_end(client, request)


def _sell_all(wish: DecisionOptions, account: str, confirmed: str | None, *, json: bool) -> None:
    """Show all positions, and sell them once that is confirmed."""
    view = ask(ACCOUNT, typed("--account", AccountQuery, account=account, fills=0))
    if view.portfolio is None:
        raise UnknownAccount(account, view.accounts)
    shown = exit_all.exit_of_all(view.portfolio)
    if not shown.lines:
        aside(f"{account} has no positions: nothing to sell")
        return
    if confirmed is None or not json:
        show([shown], exit_all.screen(shown), json=json)
    if not shown.sales:
        aside("open orders already sell every position: nothing to do")
        return
    if confirmed is not None:
        whole_hash(confirmed, shown.hash)
    elif not is_confirmed(f"Sell {amounts.count(len(shown.sales), 'position')}?"):
        tell_how(shlex.join(["deskbus", *sys.argv[1:]]), shown.hash)
        return
    request = build(wish, kind=EXIT, account=account, sell_all=shown.sales)

    async def sold(client: Client) -> CycleTree:
        key = await exit_all.free_key(client, shown)
        return await _sold(client, request.model_copy(update={"idempotency_key": key}))

    end(with_desk(sold), json=json)
