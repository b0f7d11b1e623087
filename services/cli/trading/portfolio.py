"""`deskbus portfolio`: an account's books; what its owner brings in is in capital.py."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from contracts.account import Portfolio, Position, Side
from contracts.account_query import AccountQuery, AccountView, EquityPoint, EquityQuery, EquityView
from contracts.subjects.accounts import ACCOUNT, EQUITY
from libs.facts import amounts
from libs.report import account as of_account
from libs.runtime.nearest import UnknownAccount
from services.cli.render import chart
from services.cli.shell.invalid import invalid
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.shape import ShapedGroup
from services.cli.shell.terminal import emit, out, table, write
from services.cli.trading import capital

SHOW = "show"


class ShowFirst(ShapedGroup):
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
    """Show an account, open one with your holdings, pay cash in and take it out.

    `deskbus portfolio [ACCOUNT]` is short for `deskbus portfolio show [ACCOUNT]`.
    """


@app.command(SHOW)
def show_account(
    account: Annotated[str, typer.Argument(help="The account's name.")] = "main",
    fills: Annotated[int, typer.Option(min=0, max=200, help="How many recent fills to show.")] = 20,
    json: JsonOption = False,
) -> None:
    """Show an account: cash, positions, P&L, equity curve and recent fills."""
    settings = load_settings()
    try:
        query = AccountQuery(account=account, fills=fills)
    except ValidationError as error:
        raise invalid("name", error) from None

    async def work() -> tuple[AccountView, EquityView]:
        async with reading_client(settings) as client:
            view = await client.ask(ACCOUNT, query)
            if json or not view.found:
                return view, EquityView(found=False)
            return view, await client.ask(EQUITY, EquityQuery(account=account))

    view, over_time = asking(work())
    if not view.found or view.portfolio is None:
        raise UnknownAccount(account, view.accounts)
    if json:
        emit([view])
    else:
        show(view, view.portfolio, over_time.points, out())


def show(
    view: AccountView, books: Portfolio, points: Sequence[EquityPoint], console: Console
) -> None:
    """Print the account: what it is worth and why, its chart, positions, orders and fills."""
    currency = books.equity.currency
    head = Text.assemble(
        (f"account {books.account}", "bold"),
        (f"  as of {amounts.session(books.as_of)}, amounts in {currency}", "dim"),
    )
    parts: list[RenderableType] = [head]
    if books.halt is not None:
        parts.append(Text(of_account.halted(books.halt), style="bold yellow"))
    parts += [Text(), _worth(view, books)]
    if len(points) > 1:
        parts += [Text(), *_chart(points, console)]
    if books.positions:
        parts += [Text(), _positions(books)]
        parts += map(_traded, (position for position in books.positions if position.foreign))
        parts += (Text(line, style="yellow") for line in of_account.unpriced(books))
    if plans := of_account.plans(books):
        parts += [Text(), *(Text(line, style="dim") for line in plans)]
    if books.open_orders:
        orders = (f"open order: {of_account.waiting(order)}" for order in books.open_orders)
        parts += [Text(), *(Text(line, style="yellow") for line in orders)]
    if view.fills:
        parts += [Text(), _fills(view)]
    write(Group(*parts), console)


def _worth(view: AccountView, books: Portfolio) -> Table:
    """How the starting cash became the equity, amount below amount."""
    held = sum((position.value for position in books.positions), Decimal(0))
    equity = books.equity.amount
    gain = equity - view.paid_in
    grid = table("", ("", "right"), "", ("", "right"))
    grid.show_header = False
    rows = (
        ("cash", amounts.money(books.cash.amount), "realised P&L", _change(view.realised)),
        ("positions", amounts.money(held), "unrealised P&L", _change(view.unrealised)),
        ("equity", amounts.money(equity), "dividends", _change(view.dividends)),
        (_paid_in_label(view), amounts.money(view.paid_in), "fees", _change(-view.fees)),
        (
            "exposure",
            _exposure(view, books),
            "total P&L",
            Text(_with_return(gain, view), _style(gain)),
        ),
    )
    for label, amount, other, change in rows:
        style = "bold" if label == "equity" else ""
        grid.add_row(Text(label, "cyan"), Text(amount, style), Text(other, "cyan"), change)
    return grid


def _paid_in_label(view: AccountView) -> str:
    return "starting cash" if view.paid_in == view.starting_cash else "paid in"


def _with_return(gain: Decimal, view: AccountView) -> str:
    """The P&L, and the return: time-weighted where more than the starting cash was paid in."""
    kind = "" if view.paid_in == view.starting_cash else " time-weighted"
    return f"{amounts.change(gain)} ({amounts.gain_percent(view.return_pct)}{kind})"


def _exposure(view: AccountView, books: Portfolio) -> str:
    """Gross and net in percent of equity; one number where they are the same."""
    equity = books.equity.amount
    notes = [
        amounts.percent(part / equity * 100)
        for part in (view.exposure_gross, view.exposure_net)
        if equity
    ]
    if len(set(notes)) == 2:
        return f"{notes[0]} gross, {notes[1]} net"
    return notes[0] if notes else ""


def _change(amount: Decimal) -> Text:
    return Text(amounts.change(amount), _style(amount))


def _chart(points: Sequence[EquityPoint], console: Console) -> Iterable[RenderableType]:
    """The equity at each session's close, its highest and lowest at the left."""
    values = [point.equity for point in points]
    labels = [amounts.money(max(values)), amounts.money(min(values))]
    margin = max(map(len, labels))
    marks = chart.levels(console.encoding)
    lines = chart.drawn(values, console.width - margin - 4, marks)
    for number, line in enumerate(lines):
        label = labels[0] if number == 0 else labels[1] if number == len(lines) - 1 else ""
        text = Text.assemble((f"{label:>{margin}}  ", "dim"), (line, "cyan"))
        text.no_wrap = True
        yield text
    ends = f"{amounts.session(points[0].session)} to {amounts.session(points[-1].session)}"
    yield Text(f"{'':>{margin}}  equity at the close, {ends}", style="dim")


def _positions(books: Portfolio) -> Table:
    grid = table(
        "position",
        ("shares", "right"),
        ("cost", "right"),
        ("price", "right"),
        ("value", "right"),
        ("of equity", "right"),
        ("unrealised P&L", "right"),
        "sector",
        spare=("sector", "cost"),
    )
    for held in books.positions:
        gain = of_account.gain(held)
        share = held.value / books.equity.amount * 100 if books.equity.amount else Decimal(0)
        grid.add_row(
            Text(held.ticker, style="bold"),
            amounts.quantity(held.quantity),
            amounts.money(held.average_cost.amount),
            amounts.money(held.price.amount),
            amounts.money(held.value),
            amounts.percent(share),
            Text(_signed(gain, held.value - gain), style=_style(gain)),
            held.sector,
        )
    return grid


def _traded(held: Position) -> Text:
    foreign = amounts.foreign(held.foreign) if held.foreign else ""
    return Text(f"{held.ticker}: {foreign}", style="dim")


def _fills(view: AccountView) -> Table:
    grid = table(
        "session", "fill", ("shares", "right"), "ticker", ("price", "right"), ("fee", "right")
    )
    for fill in view.fills:
        style = "green" if fill.side is Side.BUY else "red"
        grid.add_row(
            amounts.session(fill.session),
            Text(fill.side.value, style=style),
            amounts.quantity(fill.quantity),
            fill.asset,
            amounts.money(fill.price.amount),
            amounts.money(fill.fee.amount),
        )
    return grid


def _signed(gain: Decimal, base: Decimal) -> str:
    share = f" ({amounts.gain_percent(gain / base * 100)})" if base else ""
    return f"{amounts.change(gain)}{share}"


def _style(gain: Decimal) -> str:
    return "green" if gain > 0 else "red" if gain < 0 else "dim"
