"""An account in words: its positions, its waiting orders, a halt of its buys. Pure."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from contracts.account import HeldPlan, OpenOrder, Portfolio, Position
from contracts.halt import Halt
from contracts.types import Money
from libs.facts import amounts
from libs.report import orders

HALT_REASON_CHARS = 400


def gain(held: Position) -> Decimal:
    """The position's gain over its cost."""
    return held.value - held.quantity * held.average_cost.amount


def unpriced(books: Portfolio) -> Sequence[str]:
    """The positions that stand at an older session's price, a sentence each."""
    return [
        f"{position.ticker} has no price now: it is valued at its last price, of "
        f"{amounts.session(position.priced_on)}, and cannot be sold until it has a new one"
        for position in books.positions
        if position.priced_on
    ]


def plans(books: Portfolio) -> Sequence[str]:
    """A sentence for each position: why it was bought, what would prove it wrong, and when it is
    looked at again."""
    stops = {order.asset: order.stop_price for order in books.open_orders if order.stop_price}
    return [
        f"{held.ticker}: {_plan(held, held.plan, stops.get(held.ticker), books.as_of)}"
        for held in books.positions
        if held.plan is not None
    ]


def _plan(held: Position, plan: HeldPlan, stop: Money | None, as_of: date) -> str:
    """`bought on Mon 2012-05-14 (For: ...); wrong if it falls to 545.20 USD; looked at again by
    2012-07-14`. The stop is the one that stands now: a split or an exit moves it."""
    event = f"if its {plan.review_event} speaks against it" if plan.review_event else ""
    falls = f"if it falls to {amounts.price(stop)}" if stop else ""
    wrong = " or ".join(filter(None, (falls, event)))
    again = f"looked at again by {plan.review_by}" if plan.review_by else ""
    if plan.is_due(as_of):
        again = (
            f"to be looked at again since {plan.review_by}: it is kept only if it would be bought"
        )
    return "; ".join(filter(None, (orders.entered(held), wrong and f"wrong {wrong}", again)))


def waiting(order: OpenOrder) -> str:
    """`buy 3 AAPL, 100.00 USD reserved, decided Fri 2012-06-29`; of a stop its price."""
    text = f"{order.side.value} {amounts.quantity(order.quantity)} {order.asset}"
    if stop := order.stop_price:
        text += f" at a stop of {amounts.price(stop)}"
    if order.hold.amount:
        text += f", {amounts.money(order.hold.amount, order.hold.currency)} reserved"
    return f"{text}, decided {amounts.session(order.as_of)}" if order.as_of else text


def halted(halt: Halt) -> str:
    """`buys of main are halted since 2026-11-22 02:00:00 UTC by cli: crash`."""
    whose = halt.account or "every account"
    since = f"{halt.since:%Y-%m-%d %H:%M:%S} UTC"
    because = f": {amounts.cut(halt.reason, HALT_REASON_CHARS)}" if halt.reason else ""
    return f"buys of {whose} are halted since {since} by {halt.by}{because}"


def remedy(halt: Halt) -> str:
    """The command that ends a halt."""
    return "deskbus resume" + (f" --account {halt.account}" if halt.account else "")
