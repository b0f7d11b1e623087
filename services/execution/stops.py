"""Stop orders: placed on a buy and on what an exit leaves, kept within what is held, triggered by
prices. Pure.

An account has at most one stop order a ticker, and none is ever lowered: of two prices the higher
stands. It never sells more than is held: whatever makes the position smaller makes the order
smaller in the same transaction. Where a session trades too little for all of it, a new one stands
on the rest.
"""

from dataclasses import replace
from datetime import date
from decimal import ROUND_CEILING, Decimal
from uuid import UUID

from contracts.account import OrderStatus, OrderType, Side
from contracts.venue import DESK_STOPS
from libs.broker.broker import Broker, DayPrices, Filled, StopOrder, Working
from libs.quant import sizing
from libs.quant.risk.evaluation import venue_terms
from libs.quant.ticks import quoted, rounded_to_tick
from libs.runtime import ids
from services.execution import books as ledger
from services.execution.account import Account, BookedOrder, stop_money
from services.execution.changes import Changes, also
from services.execution.snapshots import OpenStop


def stop_of(account: Account, ticker: str) -> BookedOrder | None:
    """The stop order that waits on a ticker."""
    return next((stop for stop in account.stops if stop.ticker == ticker), None)


def open_stops(account: Account) -> tuple[OpenStop, ...]:
    """The stop orders that wait, by ticker, as a snapshot keeps them."""
    priced = ((stop, stop_money(stop, account.currency)) for stop in account.stops)
    stops = (
        OpenStop(stop.ticker, stop.quantity, price.amount, price.currency, stop.as_of)
        for stop, price in priced
        if price is not None
    )
    return tuple(sorted(stops, key=lambda stop: stop.ticker))


def after_fill(changes: Changes, filled: BookedOrder, ratio: Decimal) -> Changes:
    """The stop orders after a market order was filled at an open with that split `ratio`.

    A buy or an exit that names a stop gets one on all that is held then, in the place of an older
    one; it counts from the open on. An older one that stands higher stays, within what is held, and
    so does any where no stop is named.
    """
    if filled.status is not OrderStatus.FILLED:
        return changes
    left = _held(changes, filled.ticker)
    if filled.stop_price is None or left <= 0:
        return within_held(changes, filled.ticker)
    stop = _stop_after(filled, left, ratio)
    older = stop_of(changes.account, filled.ticker)
    if older is None or older.stop_price is None or stop.stop_price is None:
        return changes.place(stop)
    if older.stop_price > stop.stop_price:
        if older.quantity >= left:
            return within_held(changes, filled.ticker)
        stop = replace(stop, stop_price=older.stop_price)
    what = "buy" if filled.side is Side.BUY else "exit"
    changes = changes.end(_cancelled(older, f"a later {what} has placed another stop"))
    return changes.place(stop)


def _stop_after(filled: BookedOrder, left: Decimal, ratio: Decimal) -> BookedOrder:
    leg = f"{OrderType.STOP.value}/{filled.ticker}"
    price = filled.stop_price
    return replace(
        filled,
        order_id=ids.order_id(filled.cycle_id, filled.pipeline, leg),
        type=OrderType.STOP,
        side=Side.SELL,
        quantity=left,
        hold=Decimal(0),
        status=OrderStatus.WORKING,
        reason=DESK_STOPS if filled.terms else "",
        stop_price=None if price is None else _after_split(price, ratio),
        fill=None,
        acts=None,
        plan=None,
        thesis="",
        terms=None,
        window=None,
    )


def after_split(changes: Changes, ticker: str, ratio: Decimal) -> Changes:
    """The stop order on a ticker after a split: more shares at a lower price, or the reverse."""
    stop = stop_of(changes.account, ticker)
    if stop is None or stop.stop_price is None:
        return changes
    quantity = sizing.kept_shares(sizing.after_split(stop.quantity, ratio))
    if quantity <= 0:
        return changes.end(_cancelled(stop, "the split left nothing of it"))
    price = _after_split(stop.stop_price, ratio)
    stop = replace(stop, quantity=quantity, stop_price=price)
    why = f"split of {ratio.normalize():f} for 1: {quantity:f} shares at {_quoted(stop, changes)}"
    stop = replace(stop, reason=also(stop.reason, why))
    return within_held(changes.alter(stop), ticker)


def in_new_shares(changes: Changes, order: BookedOrder, ratio: Decimal) -> Changes:
    """A sale that waits, and the stop that follows it, after a split."""
    quantity = sizing.kept_shares(sizing.after_split(order.quantity, ratio))
    if quantity <= 0:
        return changes.end(_cancelled(order, "the split left nothing of it"))
    price = order.stop_price
    why = f"split of {ratio.normalize():f} for 1: {quantity:f} shares"
    return changes.alter(
        replace(
            order,
            quantity=quantity,
            stop_price=None if price is None else _after_split(price, ratio),
            reason=also(order.reason, why),
        )
    )


def _quoted(stop: BookedOrder, changes: Changes) -> str:
    price = stop_money(stop, changes.account.currency)
    return "" if price is None else quoted(price)


def _after_split(price: Decimal, ratio: Decimal) -> Decimal:
    """A stop price in new shares, rounded up: a stop is never lowered. As it is without a split."""
    return price if ratio == 1 else rounded_to_tick(price / ratio, ROUND_CEILING)


def within_held(changes: Changes, ticker: str) -> Changes:
    """The stop order on a ticker for no more than is held; cancelled where nothing is."""
    stop = stop_of(changes.account, ticker)
    held = _held(changes, ticker)
    if stop is None or stop.quantity <= held:
        return changes
    if held <= 0:
        return changes.end(_cancelled(stop, "the position is closed"))
    why = f"cut from {stop.quantity:f} to {held:f} shares: no more are held"
    return changes.alter(replace(stop, quantity=held, reason=also(stop.reason, why)))


def trigger_late(changes: Changes, ticker: str, day: DayPrices, broker: Broker) -> Changes:
    """The stop order on a ticker at the open of a session, where one that was missed before it
    reached it."""
    stop = stop_of(changes.account, ticker)
    if stop is None or stop.stop_price is None:
        return changes
    reached = [on for on, low in sorted(day.missed.items()) if low <= stop.stop_price]
    return _ask(changes, stop, day, broker, reached[0]) if reached else changes


def trigger(changes: Changes, ticker: str, day: DayPrices | None, broker: Broker) -> Changes:
    """The stop order on a ticker at the prices of a session: filled where they reached it. What is
    left of one that has sold at the session's open is not for this session any more."""
    stop = stop_of(changes.account, ticker)
    if stop is None or (day is not None and stop.order_id == _rest_id(stop, day.session)):
        return changes
    return _ask(changes, stop, day, broker)


REACHED = "reached on "
"""The beginning of what the reason of a stop order says that was reached, and waits for an open."""


def reached(changes: Changes, stop: BookedOrder, session: date) -> Changes:
    """A stop order of a bound account whose price a session came down to: the desk sells at the
    next open. It stays until that sale is filled."""
    if REACHED in stop.reason:
        return changes
    why = f"{REACHED}{session}, sold at the next open"
    return changes.alter(replace(stop, reason=also(stop.reason, why)))


def sell_reached(changes: Changes, ticker: str, as_of: date) -> Changes:
    """The sale at the broker of a stop order that was reached, as of a session; none while another
    sale of the ticker works, or nothing is left in one of both books."""
    account, stop = changes.account, stop_of(changes.account, ticker)
    binding = account.broker
    if stop is None or REACHED not in stop.reason or binding is None or binding.window is None:
        return changes
    works = any(o.ticker == ticker and o.terms is not None for o in account.working)
    there = binding.positions.get(ticker, Decimal(0))
    quantity = min(stop.quantity, _held(changes, ticker), there)
    if works or quantity <= 0 or ticker in binding.blocked:
        return changes
    return changes.place(
        replace(
            stop,
            order_id=_rest_id(stop, as_of),
            type=OrderType.MARKET,
            quantity=quantity,
            status=OrderStatus.WORKING,
            reason=f"stop at {_quoted(stop, changes)} {stop.reason[stop.reason.index(REACHED) :]}",
            as_of=as_of,
            stop_price=None,
            exit=False,
            terms=venue_terms(binding.bound, Side.SELL, Decimal(0), account.currency),
            window=binding.window,
        )
    )


def _ask(
    changes: Changes,
    stop: BookedOrder,
    day: DayPrices | None,
    broker: Broker,
    reached_on: date | None = None,
) -> Changes:
    if stop.stop_price is None:
        return changes
    ticker = stop.ticker
    currency = changes.account.currency if stop.foreign is None else stop.foreign.price.currency
    asked = StopOrder(stop.order_id, ticker, stop.quantity, stop.stop_price, currency, reached_on)
    held = changes.account.books.quantity(ticker)
    answer = broker.answer_stop(asked, day, held=held)
    if isinstance(answer, Working):
        return changes
    if not isinstance(answer, Filled):
        return changes.end(_cancelled(stop, answer.reason))
    entry = ledger.filled(stop.order_id, ticker, stop.side, answer, changes.account.books)
    done = replace(
        stop,
        status=OrderStatus.FILLED,
        quantity=answer.quantity,
        reason=also(stop.reason, answer.note),
        fill=answer,
    )
    changes = changes.post(entry).end(done)
    left = min(stop.quantity, _held(changes, ticker) + answer.quantity) - answer.quantity
    return changes.place(_rest_of(stop, left, answer)) if left > 0 else changes


def _rest_of(stop: BookedOrder, left: Decimal, filled: Filled) -> BookedOrder:
    """The stop order on what a session traded too little to sell: it protects what is left."""
    return replace(
        stop,
        order_id=_rest_id(stop, filled.session),
        quantity=left,
        reason=f"the rest of a stop that sold {filled.quantity:f} shares on {filled.session}",
    )


def _rest_id(stop: BookedOrder, session: date) -> UUID:
    leg = f"{OrderType.STOP.value}/{stop.ticker}/{session}"
    return ids.order_id(stop.cycle_id, stop.pipeline, leg)


def _held(changes: Changes, ticker: str) -> Decimal:
    return changes.account.books.quantity(ticker)


def _cancelled(stop: BookedOrder, why: str) -> BookedOrder:
    return replace(stop, status=OrderStatus.CANCELLED, reason=also(stop.reason, why))
