"""The results of a decision's orders: in money, and how each ended. Pure.

The figures are those of the account's round trips (libs/quant/standing.py), as of its newest valued
close; nothing is computed a second time.
"""

from collections.abc import Sequence
from decimal import Decimal

from contracts.account import OrderStatus, OrderType, Side
from contracts.performance import OrderResult
from contracts.types import Money
from libs.facts import amounts
from libs.report import cutoff, links, performance, view
from libs.report.view import BLANK, Cell, Column, Table

IN_BOTH = (
    "P&L: a trade is in the decision that bought it and in the one that sold it, both with all fees"
)
"""Stands below a list of decisions: its P&L is no sum of an account."""
WAITS = "waits for its fill"
COLUMNS = (
    "Order",
    "P&L",
    Column("Return", spare=2),
    Column("Result", wraps=True),
    Column("Bought or sold in", spare=1),
)


def is_known(results: Sequence[OrderResult]) -> bool:
    """Whether anything is known of the orders: a P&L, a position, or why one was not filled."""
    return any(not pending(it) for it in results)


def table(results: Sequence[OrderResult], account: str) -> Table:
    """A row an order, with a link to the decision at the other end of its round trip."""
    currency = next((it.gain.currency for it in results if it.gain), "")
    rows = (
        view.row(
            view.say(order(it), link=links.ticker(it.ticker, account)),
            _gain(it, account),
            view.gain_percent(it.trip.gain_pct) if it.trip and it.side is Side.BUY else BLANK,
            ended(it),
            _other_end(it),
            key=it.ticker,
        )
        for it in results
    )
    as_of = next((it.as_of for it in results if it.as_of), None)
    is_open = any(it.trip and it.trip.closed is None for it in results)
    texts = (
        f"P&L after fees{f'; open ones {cutoff.as_of(as_of)}' if is_open else ''}",
        "of a sale: its part of the round trip, with the buy's fee"
        if any(_is_sale(it) for it in results)
        else "",
        "a stop's is part of its buy's" if any(_is_stop(it) and it.gain for it in results) else "",
    )
    notes = view.notes("; ".join(filter(None, texts)))
    return view.table(COLUMNS, rows, title="Result", currency=currency, notes=notes)


def order(result: OrderResult) -> str:
    """`buy AAPL`, or `sell AAPL, stop at 215.02 USD`."""
    at = f", stop at {amounts.price(result.stop_price)}" if result.stop_price else ""
    return f"{result.side.value} {result.ticker}{at}"


def gain(results: Sequence[OrderResult]) -> Money | None:
    """The P&L of a decision: of what it bought the round trips, of what it sold its part of theirs;
    None where nothing is known, or accounts of several currencies are in it."""
    # What a stop sold of a share that the same decision bought is in the buy's round trip.
    bought = {it.ticker for it in results if it.side is Side.BUY and it.gain is not None}
    own = [it for it in results if not (_is_stop(it) and it.ticker in bought)]
    gains = [it.gain for it in own if it.gain is not None]
    if len({money.currency for money in gains}) != 1:
        return None
    total = sum((money.amount for money in gains), Decimal(0))
    return Money(amount=total, currency=gains[0].currency)


def cell(results: Sequence[OrderResult]) -> Cell:
    """The P&L of a decision in a list."""
    total = gain(results)
    return view.gain(total.amount, total.currency) if total else BLANK


def by_order(results: Sequence[OrderResult]) -> dict[str, str]:
    """`buy AAPL`: `-839.60 USD; sold 2012-07-20: stop`."""
    return {order(it): sentence(it) for it in results}


def sentence(result: OrderResult) -> str:
    """The P&L, where it is known, and how it ended."""
    money = amounts.change(result.gain) if result.gain else ""
    return "; ".join(filter(None, (money, ended(result))))


def ended(result: OrderResult) -> str:
    """`sold 2012-07-20: stop`, `open`, `not filled (cancelled): the session had no bar`."""
    trip = result.trip
    if trip is None:
        return _without_trip(result)
    if _is_stop(result):
        return f"sold {result.filled_on}" if result.filled_on else "sold"
    if result.side is Side.BUY and result.gain is None:
        return f"added to what was bought {trip.opened}"
    if _is_sale(result):
        return f"bought {trip.opened}" + ("" if trip.closed else f"; {_held(trip.held)}")
    if trip.closed is None:
        part = performance.why_sold(trip)
        return "; ".join(filter(None, (f"open, {_held(trip.held)}", part and f"sold {part}")))
    return f"sold {trip.closed}: {performance.why_sold(trip)}"


def pending(result: OrderResult) -> str:
    """Why nothing is known of the order yet; empty where something is."""
    if result.gain is not None or result.trip is not None:
        return ""
    if result.status == OrderStatus.WORKING:
        return "waits for its price" if _is_stop(result) else result.reason or WAITS
    filled = result.status == OrderStatus.FILLED
    return "filled; no close has valued it yet" if filled else ""


def _without_trip(result: OrderResult) -> str:
    if waits := pending(result):
        return waits
    why = f": {result.reason}" if result.reason else ""
    return f"not filled ({result.status}){why}"


def _held(shares: Decimal) -> str:
    return f"{amounts.quantity(shares)} held"


def _is_sale(result: OrderResult) -> bool:
    return result.side is Side.SELL


def _is_stop(result: OrderResult) -> bool:
    return result.type is OrderType.STOP


def _gain(result: OrderResult, account: str) -> Cell:
    if result.gain is None:
        return BLANK if _is_stop(result) else view.unknown()
    own = view.gain(result.gain.amount, result.gain.currency)
    return own.linked(links.performance(account))


def _other_end(result: OrderResult) -> Cell:
    trip = result.trip
    if trip is None or (trip.closed is None and not _is_sale(result)):
        return BLANK
    if _is_sale(result):
        return view.decision(trip.entry_cycle_id, trip.entry_pipeline)
    return view.decision(trip.exit_cycle_id, trip.exit_pipeline)
