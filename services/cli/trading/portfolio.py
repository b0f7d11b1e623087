"""`deskbus portfolio`: an account's books; what its owner brings in is in capital.py."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Annotated, Any

import typer

from contracts.account import Portfolio
from contracts.account_query import AccountQuery, AccountView, EquityPoint, EquityQuery, EquityView
from contracts.message import PAGE_MAX
from contracts.subjects.accounts import ACCOUNT, EQUITY
from libs.bus.client import Client
from libs.facts import amounts
from libs.quant.ticks import priced
from libs.report import account as of_account
from libs.report.view import Text
from libs.runtime.nearest import UnknownAccount
from services.cli.render.chart import TerminalChart
from services.cli.render.described import Shown, head, show
from services.cli.shell.invalid import typed
from services.cli.shell.list_options import tell_limit
from services.cli.shell.options import (
    AccountArgument,
    Commands,
    JsonOption,
    account_either_way,
    group,
)
from services.cli.shell.running import with_record
from services.cli.trading import capital

SHOW = "show"


class ShowFirst(Commands):
    """`deskbus portfolio ACCOUNT` shows it: whatever is no other command is an account's name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `show` in front of what names no command."""
        if not args or args[0] not in {*self.commands, "-h", "--help"}:
            args = [SHOW, *args]
        return super().parse_args(ctx, args)


app = group(ShowFirst)
capital.add_to(app)


@app.callback()
def portfolio() -> None:
    """Show an account, open one with your holdings, deposit and withdraw cash.

    `deskbus portfolio [ACCOUNT]` is short for `deskbus portfolio show [ACCOUNT]`.
    """


@app.command(SHOW)
@account_either_way
def show_account(
    account: AccountArgument = "main",
    fills: Annotated[
        int, typer.Option(min=0, max=PAGE_MAX, help="How many recent fills to show.")
    ] = 20,
    json: JsonOption = False,
) -> None:
    """Show an account: cash, positions, P&L, equity curve and recent fills.

    Numbers are as of the newest close at which the account could be valued. Later fills are listed
    but not counted yet.
    """
    asked = min(fills + bool(fills), PAGE_MAX)
    query = typed("name", AccountQuery, account=account, fills=asked)

    async def work(client: Client) -> tuple[AccountView, EquityView]:
        view = await client.ask(ACCOUNT, query)
        if json or not view.found:
            return view, EquityView(found=False)
        return view, await client.ask(EQUITY, EquityQuery(account=account))

    view, over_time = with_record(work)
    if not view.found or view.portfolio is None:
        raise UnknownAccount(account, view.accounts)
    shown = view.model_copy(update={"fills": view.fills[:fills]})
    show([shown], screen(shown, view.portfolio, over_time.points), json=json)
    if len(view.fills) > fills or len(view.fills) == PAGE_MAX:
        tell_limit(len(shown.fills), PAGE_MAX, option="--fills")


def screen(view: AccountView, books: Portfolio, points: Sequence[EquityPoint]) -> Iterable[Shown]:
    """The account: what it is worth and why, its chart, positions, orders and fills."""
    yield head(f"account {books.account}", of_account.heading(view))
    yield from of_account.notes(view)
    if view.closed_on is not None:
        yield of_account.worth(view), of_account.gains(view)
    if len(points) > 1:
        ends = f"{amounts.session(points[0].session)} to {amounts.session(points[-1].session)}"

        def written(equity: Decimal) -> str:
            return amounts.money(priced(equity, books.equity.currency))

        values = [point.equity for point in points]
        yield TerminalChart(values, written, f"equity at the close, {ends}")
    if view.held or books.positions:
        yield of_account.positions(view)
    if standing := of_account.standing(books):
        yield from (Text(""), *standing)
    if view.fills:
        yield of_account.fills(view)
