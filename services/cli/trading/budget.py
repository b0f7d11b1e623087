"""`deskbus budget`: today's remaining model budget, and what was spent."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from contracts.subjects.upkeep import BUDGET
from contracts.upkeep import BudgetQuery, BudgetView, DayUsage
from libs.facts import amounts
from libs.quant.ticks import priced
from services.cli.render.tree import LOST, PAID
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import asking, load_settings, reading_client
from services.cli.shell.terminal import emit, out, table, write

app = group()


@app.command()
def budget(
    days: Annotated[
        int, typer.Option(min=1, max=200, help="Also show this many recent days with paid calls.")
    ] = 1,
    json: JsonOption = False,
) -> None:
    """Show today's budget for models: its limits, what is spent, reserved and left.

    A day is a UTC day. When nothing is left, requests that use paid models are refused until the
    next day. The rules provider costs nothing.
    """
    settings = load_settings()

    async def work() -> BudgetView:
        async with reading_client(settings) as client:
            return await client.ask(BUDGET, BudgetQuery(days=days))

    view = asking(work())
    if json:
        emit([view])
    else:
        show(view, out(), several=days > 1)


def show(view: BudgetView, console: Console, *, several: bool = False) -> None:
    """Print the budget of today and, where asked for, what the last days used."""
    head = Text.assemble(
        (f"budget of {amounts.session(view.today)}", "bold"),
        (f" UTC; the next day begins {view.resets_at:%Y-%m-%d %H:%M}", "dim"),
    )
    console.print(head)
    console.print()
    write(_left(view), console)
    used = _today(view).usage
    if used.cost_usd is None:
        unpriced = "some calls have no price: what they cost is unknown, and tokens alone bound it"
        console.print(Text(f"\n{unpriced}", style="yellow"))
    if used.tokens:
        console.print(Text(f"\ntokens: {amounts.sorts(used)}", style="dim"))
    if several and view.days:
        console.print()
        write(_days(view.days), console)
    operation_usd = amounts.money(priced(view.operation_cost_usd_max, "USD"))
    cycle_usd = amounts.money(priced(view.cycle_cost_usd_max, "USD"))
    limits = (
        f"\none operation may use {view.operation_tokens_max:,} tokens and {operation_usd}; "
        f"one cycle {view.cycle_tokens_max:,} and {cycle_usd}, where its request says nothing"
    )
    console.print(Text(limits, style="dim"))


def _today(view: BudgetView) -> DayUsage:
    return next((day for day in view.days if day.day == view.today), DayUsage(day=view.today))


def _left(view: BudgetView) -> Table:
    used = _today(view).usage
    grid = table("", *((head, "right") for head in ("limit", "spent", "reserved", "left")))
    held, left = f"{view.tokens_held:,}", f"{view.tokens_left:,}"
    spent = f"{used.tokens:,}"
    style = "bold" if view.tokens_left and view.cost_usd_left else "bold red"
    grid.add_row(Text("tokens", "cyan"), f"{view.tokens_max:,}", spent, held, Text(left, style))
    grid.add_row(
        Text("USD", "cyan"),
        f"{view.cost_usd_max:,.4f}",
        amounts.paid(used.cost_usd),
        f"{view.cost_usd_held:,.4f}",
        Text(f"{view.cost_usd_left:,.4f}", style),
    )
    return grid


def _days(days: Sequence[DayUsage]) -> Table:
    grid = table("day", *((head, "right") for head in (*PAID, LOST, "USD")))
    for day in days:
        usage = day.usage
        grid.add_row(
            amounts.session(day.day),
            f"{usage.input_tokens:,}",
            f"{usage.output_tokens:,}",
            f"{usage.cache_read_tokens:,}/{usage.cache_write_tokens:,}",
            f"{usage.unsorted_tokens:,}",
            amounts.paid(usage.cost_usd),
        )
    return grid
