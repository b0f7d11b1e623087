"""What was ordered and filled, and what it did to the cash."""

from rich.table import Table
from rich.text import Text

from contracts.account import OrderType, Side
from contracts.execution import ExecutionResult, Fill, Order
from libs.facts import amounts
from services.cli.terminal import table

REASON_CHARS = 160


def placed(result: ExecutionResult) -> Table:
    """One line an order with its fill; below the values what they did to the cash."""
    currency = result.cash_after.currency
    made = table(
        "order",
        "status",
        ("shares", "right"),
        (f"price {currency}", "right"),
        "at the open of",
        (f"value {currency}", "right"),
        (f"fee {currency}", "right"),
    )
    fills = {fill.order_id: fill for fill in result.fills}
    for order in result.orders:
        _add(made, order, fills.get(order.order_id))
    before, after = result.cash_before.amount, result.cash_after.amount
    for label, value in (
        ("cash before", amounts.money(before)),
        ("change", amounts.change(after - before)),
        ("cash after", amounts.money(after)),
    ):
        made.add_row(Text(label, "cyan"), "", "", "", "", value, "")
    return made


def _add(made: Table, order: Order, fill: Fill | None) -> None:
    made.add_row(
        Text(_named(order), side_style(order.side)),
        order.status.value,
        amounts.quantity(order.quantity),
        amounts.money(fill.price.amount) if fill else "",
        amounts.session(fill.session) if fill else "",
        amounts.money(fill.value) if fill else "",
        amounts.money(fill.fee.amount) if fill else "",
    )


def notes(result: ExecutionResult) -> Text:
    """Why an order was not filled, or was cut, and what was exchanged at which rate; empty where
    all went as asked in one currency.
    """
    told = [
        Text(f"{_named(order)}: {amounts.cut(order.reason, REASON_CHARS)}", "yellow")
        for order in result.orders
        if order.reason
    ]
    told += [
        Text(f"{fill.side.value} {fill.asset}: {amounts.foreign(fill.foreign)}", "dim")
        for fill in result.fills
        if fill.foreign is not None
    ]
    return Text("\n").join(told)


def _named(order: Order) -> str:
    """`sell AAPL`, and for a stop order `sell AAPL at 95.00`."""
    at = ""
    if order.type is OrderType.STOP and order.stop_price is not None:
        at = f" at {amounts.money(order.stop_price.amount)}"
    return f"{order.side.value} {order.asset}{at}"


def side_style(side: Side) -> str:
    """Green for what comes in, red for what goes out."""
    return "bold green" if side is Side.BUY else "bold red"
