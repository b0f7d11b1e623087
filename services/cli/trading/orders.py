"""`deskbus orders`: the orders that are or were at a broker, one's life, and a cancel."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from contracts.subjects.venue import CANCEL_ORDER, VENUE_ORDERS
from contracts.venue import (
    CancelOrder,
    VenueOrdersQuery,
    VenueOrderType,
    VenueOrderView,
)
from libs.facts import amounts
from libs.report import view
from libs.report.tones import Tone
from libs.report.view import Table, Text
from services.cli.render.described import Shown, show
from services.cli.shell.invalid import typed
from services.cli.shell.list_options import filters
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import ask
from services.cli.shell.terminal import aside

ASK_TIMEOUT_S = 30.0

app = group()

OrderArgument = Annotated[str, typer.Argument(help="The order's id, as the list shows it.")]


@app.callback()
def orders() -> None:
    """List, show and cancel orders at a broker."""


@app.command("list")
@filters(VenueOrdersQuery, "order_id", open_only="--open")
def list_orders(query: VenueOrdersQuery, json: JsonOption = False) -> None:
    """List orders for a broker, newest first."""
    page = ask(VENUE_ORDERS, query)
    show(page.orders, [_table(page.orders)] if page.orders else [], json=json)
    if not page.orders and not json:
        aside("there are no broker orders")
    if page.more and not json:
        aside("there are more: --limit")


@app.command("show")
def show_order(order_id: OrderArgument, json: JsonOption = False) -> None:
    """Show an order's history, with the broker's messages."""
    query = typed("orders", VenueOrdersQuery, order_id=order_id)
    page = ask(VENUE_ORDERS, query)
    show(page.orders, _life(page.orders[0]), json=json)


@app.command()
def cancel(
    order_id: OrderArgument,
    reason: Annotated[str, typer.Option(help="Kept with the order.")] = "",
    json: JsonOption = False,
) -> None:
    """Ask the broker to cancel an order; shows whether the cancel is confirmed or pending.

    While the cancel is pending, the order may still fill. An order not sent yet is never sent.
    """
    request = typed("cancel", CancelOrder, order_id=order_id, reason=reason)
    answer = ask(CANCEL_ORDER, request, timeout_s=ASK_TIMEOUT_S)
    word = "confirmed" if answer.confirmed else "requested, still pending: the order may still fill"
    line = f"{_name(answer.order)}: {word} ({answer.order.state.value} {answer.order.status})"
    show([answer], [Text(line, Tone.GOOD if answer.confirmed else Tone.WARN)], json=json)


def _table(of: Sequence[VenueOrderView]) -> Table:
    return view.table(
        ("Order", "Shares", "Filled", "Terms", "For", "State", "Id"),
        (
            (
                view.say(f"{it.side} {it.asset}"),
                view.shares(it.quantity),
                view.shares(it.filled),
                view.say(_terms(it)),
                view.day(it.session),
                view.say(" ".join(filter(None, (it.state.value, it.status)))),
                view.say(str(it.order_id)),
            )
            for it in of
        ),
    )


def _terms(order: VenueOrderView) -> str:
    limit = order.terms.limit_price
    if order.terms.type is VenueOrderType.LIMIT and limit is not None:
        return f"limit {amounts.price(limit)}, day"
    return "market, day"


def _name(order: VenueOrderView) -> str:
    return f"{order.side} {amounts.quantity(order.quantity)} {order.asset}"


def _life(order: VenueOrderView) -> Iterable[Shown]:
    yield Text(f"{_name(order)}, {_terms(order)}, for {order.session}, account {order.account}")
    to = f"{order.terms.venue} {order.terms.account_number}"
    yield Text(f"{to}, to be sent by {order.send_by:%Y-%m-%d %H:%M} UTC, tries {order.tries}")
    if order.cancel:
        yield Text(f"wanted cancelled: {order.cancel}", Tone.WARN)
    for it in order.life:
        words = f"  {it.words}" if it.words else ""
        filled = f", {amounts.quantity(it.filled)} filled" if it.filled else ""
        yield Text(f"{it.at:%Y-%m-%d %H:%M:%S}  {it.state.value} {it.status}{filled}{words}")
