"""How far a position is from what would sell it. Pure.

The rules have said what they saw; here that becomes the way that is left, in one unit a rule.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal

from contracts.account import OpenOrder, OrderType, Position, Side
from contracts.exit_signal import ExitTrigger, PositionExits
from contracts.types import Failure, Money
from libs.quant.exits.rules import (
    HOLD_PERIOD,
    MOMENTUM,
    REGIME,
    STOP_LOSS,
    TAKE_PROFIT,
    TRAILING_STOP,
    Fired,
    NotEvaluated,
)
from libs.quant.ticks import rounded_to_tick
from services.exit_signal.logic import Assessment, SellablePart, Signal, traded

STOP_ORDER = "stop_order"
DISTANCE_PLACES = 6

Unit = Literal["price", "return", "sessions"]
Values = Mapping[str, float]


def _down(fall: str) -> Callable[[Values], float]:
    """The part of the price that it may still fall: `fall` and `limit` are of a reference price."""

    def way(seen: Values) -> float:
        rest = 1 - seen[fall]
        return (seen["limit"] - seen[fall]) / rest if rest > 0 else 0.0

    return way


def _trail(seen: Values) -> float:
    """The part of the price down to the close that fires it. The price may be that of a fill after
    the newest close, so the fall so far, which is of closes, does not say it."""
    price = seen["price"]
    return 1 - seen["peak"] * (1 - seen["limit"]) / price if price > 0 else 0.0


def _up(seen: Values) -> float:
    return (seen["limit"] - seen["gain"]) / (1 + seen["gain"])


WAYS: Mapping[str, tuple[Unit, Callable[[Values], float]]] = {
    MOMENTUM: ("return", lambda seen: seen["gap"] + seen["least_gap"]),
    REGIME: ("return", lambda seen: seen["basket_return"]),
    STOP_LOSS: ("price", _down("loss")),
    TAKE_PROFIT: ("price", _up),
    TRAILING_STOP: ("price", _trail),
    HOLD_PERIOD: ("sessions", lambda seen: seen["limit"] - seen["sessions_held"]),
}
"""By rule: the unit, and the way that is left by what the rule saw."""


def exits_of(
    held: SellablePart, orders: Sequence[OpenOrder], assessment: Assessment | Failure
) -> PositionExits:
    """A position with its triggers, the nearest first."""
    position = held.position
    exits = PositionExits(
        ticker=position.ticker,
        quantity=position.quantity,
        price=position.price,
        average_cost=position.average_cost,
        value=position.value,
    )
    waiting = [
        _stop(position, order)
        for order in orders
        if (order.side, order.type) == (Side.SELL, OrderType.STOP) and order.stop_price is not None
    ]
    if isinstance(assessment, Failure):
        return exits.model_copy(
            update={"failure": assessment, "triggers": tuple(waiting), "nearest": _nearest(waiting)}
        )
    triggers = sorted(
        [*waiting, *(_trigger(position, signal) for signal in assessment.signals)], key=_order
    )
    return exits.model_copy(
        update={
            "assessment": assessment.summary,
            "note": assessment.not_sold,
            "triggers": tuple(triggers),
            "nearest": _nearest(triggers),
        }
    )


def by_distance(positions: Sequence[PositionExits]) -> Sequence[PositionExits]:
    """The nearest to a trigger first; who has no distance last."""
    return sorted(positions, key=lambda exits: (exits.nearest is None, exits.nearest, exits.ticker))


def _trigger(position: Position, signal: Signal) -> ExitTrigger:
    rule, finding = signal.rule, signal.finding
    unit, way = WAYS[rule.name]
    trigger = ExitTrigger(rule=rule.name, primary=rule.is_primary, unit=unit)
    if isinstance(finding, NotEvaluated):
        return trigger.model_copy(update={"detail": finding.reason})
    left = way({**finding.values, "price": float(traded(position).amount)})
    return trigger.model_copy(
        update={
            "triggered": isinstance(finding, Fired),
            "distance": 0.0
            if isinstance(finding, Fired)
            else round(max(left, 0.0), DISTANCE_PLACES),
            "at": _at(position, rule.name, left) if unit == "price" else None,
            "detail": finding.detail,
        }
    )


def _at(position: Position, rule: str, way: float) -> Money:
    """The price that fires the rule, in the account's currency: behind the price once it has. On
    its tick, never farther from the price than it is."""
    up = rule == TAKE_PROFIT
    amount = position.price.amount * Decimal(str(1 + way if up else 1 - way))
    rounded = rounded_to_tick(amount, ROUND_FLOOR if up else ROUND_CEILING)
    return Money(amount=rounded, currency=position.price.currency)


def _stop(position: Position, order: OpenOrder) -> ExitTrigger:
    """A stop order that waits: both prices as the ticker trades."""
    price, stop = traded(position).amount, order.stop_price
    if stop is None or price <= 0:
        return ExitTrigger(rule=STOP_ORDER, unit="price", detail="its price is not known")
    return ExitTrigger(
        rule=STOP_ORDER,
        unit="price",
        distance=round(max(float((price - stop.amount) / price), 0.0), DISTANCE_PLACES),
        at=stop,
        detail=f"an order sells {order.quantity.normalize():f} shares at this price",
    )


def _order(trigger: ExitTrigger) -> tuple[bool, bool, float]:
    """Distances of one kind side by side; sessions, and what is not known, after them."""
    return trigger.distance is None, trigger.unit == "sessions", trigger.distance or 0.0


def _nearest(triggers: Sequence[ExitTrigger]) -> float | None:
    known = [
        trigger.distance
        for trigger in triggers
        if trigger.distance is not None and (trigger.unit != "sessions" or trigger.triggered)
    ]
    return min(known, default=None)
