"""Orders and fills, and the change of the cash, as a table."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from contracts.account import Side
from contracts.execution import ExecutionResult
from libs.facts import amounts
from libs.quant.ticks import priced
from libs.report.orders import OrderRow
from services.cli.shell.terminal import table

REASON_CHARS = 160


def placed(rows: Sequence[OrderRow], result: ExecutionResult) -> Table:
    """One line an order with its fill; below the values what they did to the cash."""
    currency = result.cash_after.currency
    grid = table(
        ("order", "gives"),
        "status",
        ("shares", "right"),
        (f"price {currency}", "right"),
        "at the open of",
        (f"value {currency}", "right"),
        (f"fee {currency}", "right"),
        spare=(f"fee {currency}", "status"),
    )
    for row in rows:
        _add(grid, row, currency)
    before, after = result.cash_before, result.cash_after
    moved = priced(after.amount - before.amount, currency)
    for label, value in (
        ("cash before", amounts.money(before, currency)),
        ("change", amounts.change(moved, currency)),
        ("cash after", amounts.money(after, currency)),
    ):
        grid.add_row(Text(label, "cyan"), "", "", "", "", value, "")
    return grid


def _add(grid: Table, row: OrderRow, currency: str) -> None:
    order, fill = row.order, row.fill
    grid.add_row(
        Text(row.name, "bold green" if order.side is Side.BUY else "bold red"),
        order.status.value,
        amounts.quantity(order.quantity),
        amounts.price(fill.price, currency) if fill else "",
        amounts.session(fill.session) if fill else "",
        amounts.money(priced(fill.value, fill.price.currency), currency) if fill else "",
        amounts.money(fill.fee, currency) if fill else "",
    )


def notes(rows: Sequence[OrderRow]) -> Text:
    """The notes on an order beside its numbers; empty where all went as asked."""
    lines = [
        Text(f"{row.name}: {amounts.cut(note, REASON_CHARS)}", "yellow" if row.order.reason else "")
        for row in rows
        for note in row.notes
    ]
    return Text("\n").join(lines)
