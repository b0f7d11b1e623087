"""`deskbus orders`: the orders that are or were at a broker, one's life, and a cancel."""

from collections.abc import Iterable, Sequence
from typing import Annotated
from uuid import UUID

import typer

from contracts.message import PAGE_MAX
from contracts.subjects.venue import CANCEL_ORDER, VENUE_ORDERS
from contracts.venue import (
    CancelOrder,
    OrderChange,
    VenueOrdersQuery,
    VenueOrderType,
    VenueOrderView,
)
from libs.facts import amounts
from libs.report import view
from libs.report.tones import Tone
from libs.report.view import Column, Table, Text
from libs.runtime.ids import only_one, range_of
from services.cli.render.described import Shown, show
from services.cli.shell.invalid import typed
from services.cli.shell.list_options import filters
from services.cli.shell.options import JsonOption, group
from services.cli.shell.running import ask
from services.cli.shell.terminal import aside

ASK_TIMEOUT_S = 30.0

app = group()

OrderArgument = Annotated[str, typer.Argument(help="The order's id, or its first characters.")]


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
    """Show an order's life, with the broker's words."""
    query = typed("orders", VenueOrdersQuery, order_id=_whole(order_id))
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
    request = typed("cancel", CancelOrder, order_id=_whole(order_id), reason=reason)
    answer = ask(CANCEL_ORDER, request, timeout_s=ASK_TIMEOUT_S)
    word = "confirmed" if answer.confirmed else "requested, still pending: the order may still fill"
    line = f"{_name(answer.order)}: {word} ({_state(answer.order)})"
    show([answer], [Text(line, Tone.GOOD if answer.confirmed else Tone.WARN)], json=json)


def _whole(text: str) -> UUID:
    """The id that begins so, among the newest orders. Raises NotFound for none and several."""
    first, last = range_of("order", text)
    if first == last:
        return first
    known = (it.order_id for it in ask(VENUE_ORDERS, VenueOrdersQuery(limit=PAGE_MAX)).orders)
    return only_one("order", text, [it for it in known if first <= it <= last])


def _table(of: Sequence[VenueOrderView]) -> Table:
    return view.table(
        (
            "Order",
            "Shares",
            "Filled",
            "Terms",
            "For",
            Column("State", wraps=True),
            "Id",
        ),
        (
            (
                view.say(f"{it.side} {it.asset}"),
                view.shares(it.quantity),
                view.shares(it.filled),
                # Each is for one day: the next column's.
                view.say(_terms(it).removesuffix(", day")),
                view.say(f"{it.session}"),
                view.say(_state(it)),
                view.say(amounts.short(it.order_id)),
            )
            for it in of
        ),
    )


def _terms(order: VenueOrderView) -> str:
    limit = order.terms.limit_price
    if order.terms.type is VenueOrderType.LIMIT and limit is not None:
        return f"limit {amounts.price(limit)}, day"
    return "market, day"


def _state(of: VenueOrderView | OrderChange) -> str:
    return " ".join(filter(None, (of.state.value, of.status)))


def _name(order: VenueOrderView) -> str:
    return f"{order.side} {amounts.quantity(order.quantity)} {order.asset}"


def _life(order: VenueOrderView) -> Iterable[Shown]:
    yield Text(f"{_name(order)}, {_terms(order)}, for {order.session}, account {order.account}")
    yield Text(f"id {order.order_id}")
    to = f"{order.terms.venue} {order.terms.account_number}"
    yield Text(f"{to}, to be sent by {order.send_by:%Y-%m-%d %H:%M} UTC, tries {order.tries}")
    if order.cancel:
        yield Text(f"wanted cancelled: {order.cancel}", Tone.WARN)
    for it in order.life:
        words = f"  {it.words}" if it.words else ""
        filled = f", {amounts.quantity(it.filled)} filled" if it.filled else ""
        yield Text(f"{it.at:%Y-%m-%d %H:%M:%S}  {_state(it)}{filled}{words}")
