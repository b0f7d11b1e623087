"""What was executed, in one sentence. Pure."""

from decimal import Decimal

from contracts.account import OrderType, Side
from contracts.execution import ExecutionResult, OrderStatus
from libs.facts import amounts


def in_short(result: ExecutionResult) -> str:
    """`bought 39 AAPL and 888 MSFT for 50,024.49 USD`: the fills in one sentence."""
    parts = [_traded(result, side) for side in (Side.SELL, Side.BUY)]
    working = [order.type for order in result.orders if order.status is OrderStatus.WORKING]
    waiting, stops = working.count(OrderType.MARKET), working.count(OrderType.STOP)
    if waiting:
        parts.append(f"{amounts.count(waiting, 'order')} still to be filled")
    if stops:
        parts.append(f"{amounts.count(stops, 'stop')} placed on what is left")
    return "; ".join(filter(None, parts)) or "no order was filled"


def _traded(result: ExecutionResult, side: Side) -> str:
    fills = [fill for fill in result.fills if fill.side is side]
    if not fills:
        return ""
    names = [f"{amounts.quantity(fill.quantity)} {fill.asset}" for fill in fills]
    value = sum((fill.value for fill in fills), Decimal(0))
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    verb = "bought" if side is Side.BUY else "sold"
    return f"{verb} {listed} for {amounts.money(value, fills[0].price.currency)}"
