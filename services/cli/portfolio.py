"""`deskbus portfolio`: an account's books."""

from decimal import Decimal
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from contracts.account import Portfolio, Position, Side
from contracts.query import AccountQuery, AccountView
from contracts.subjects import ACCOUNT
from libs.bus.codec import describe
from services.cli import amounts
from services.cli.commands import JsonOption, group
from services.cli.problem import ExitCode, Problem
from services.cli.running import asking, load_settings, reading_client
from services.cli.terminal import emit, out, table, write

app = group()


@app.command()
def portfolio(
    account: Annotated[str, typer.Argument(help="The account's name.")] = "main",
    fills: Annotated[int, typer.Option(min=0, max=200, help="How many newest fills.")] = 20,
    json: JsonOption = False,
) -> None:
    """Show cash, positions, open orders and the newest fills of an account."""
    settings = load_settings()
    try:
        query = AccountQuery(account=account, fills=fills)
    except ValidationError as error:
        raise Problem(
            ExitCode.USAGE, f"{account!r} is no account name: {describe(error)}"
        ) from None

    async def work() -> AccountView:
        async with reading_client(settings) as client:
            view: AccountView = await client.ask(ACCOUNT, query)
            return view

    view = asking(work())
    if not view.found or view.portfolio is None:
        known = ", ".join(view.accounts) or "none: a cycle opens the account it trades"
        raise Problem(ExitCode.NOT_FOUND, f"no account is named {account!r}", f"there is: {known}")
    if json:
        emit([view])
    else:
        _show(view, view.portfolio)


def _show(view: AccountView, books: Portfolio) -> None:
    console = out()
    gain = books.equity.amount - view.starting_cash
    console.print(
        Text.assemble(
            (books.account, "bold"),
            f"  equity {amounts.money(books.equity.amount, books.equity.currency)}",
            (f"  {_signed(gain, view.starting_cash)}", _style(gain)),
            (f"  since {amounts.money(view.starting_cash)}", "dim"),
        )
    )
    console.print(
        Text(
            f"cash {amounts.money(books.cash.amount)} · as of {amounts.session(books.as_of)}",
            style="dim",
        )
    )
    if books.positions:
        console.print()
        write(_positions(books), console)
    for order in books.open_orders:
        what = f"{order.side.value} {amounts.quantity(order.quantity)} {order.asset}"
        held = f", {amounts.money(order.hold.amount)} held back" if order.hold.amount else ""
        console.print(Text(f"open order: {what}{held}", style="yellow"))
    if view.fills:
        console.print()
        write(_fills(view), console)


def _positions(books: Portfolio) -> Table:
    made = table(
        "position",
        ("shares", "right"),
        ("cost", "right"),
        ("price", "right"),
        ("value", "right"),
        ("of equity", "right"),
        ("gain", "right"),
        "sector",
    )
    for held in books.positions:
        gain = _gain(held)
        share = held.value / books.equity.amount * 100 if books.equity.amount else Decimal(0)
        made.add_row(
            Text(held.ticker, style="bold"),
            amounts.quantity(held.quantity),
            amounts.money(held.average_cost.amount),
            amounts.money(held.price.amount),
            amounts.money(held.value),
            amounts.percent(share),
            Text(_signed(gain, held.value - gain), style=_style(gain)),
            held.sector,
        )
    return made


def _fills(view: AccountView) -> Table:
    made = table("session", "fill", ("shares", "right"), "", ("price", "right"), ("fee", "right"))
    for fill in view.fills:
        style = "green" if fill.side is Side.BUY else "red"
        made.add_row(
            amounts.session(fill.session),
            Text(fill.side.value, style=style),
            amounts.quantity(fill.quantity),
            fill.asset,
            amounts.money(fill.price.amount),
            amounts.money(fill.fee.amount),
        )
    return made


def _gain(held: Position) -> Decimal:
    return held.value - held.quantity * held.average_cost.amount


def _signed(gain: Decimal, base: Decimal) -> str:
    share = f" ({gain / base * 100:+.2f}%)" if base else ""
    return f"{gain:+,.2f}{share}"


def _style(gain: Decimal) -> str:
    return "green" if gain > 0 else "red" if gain < 0 else "dim"
