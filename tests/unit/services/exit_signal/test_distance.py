"""How far a position is from each of its triggers, and which position is nearest to one."""

from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.account import ActedExit, OpenOrder, Side
from contracts.exit_signal import ExitTrigger, PositionExits
from contracts.types import Failure, Money
from libs.quant.exits.terms import ExitTerms
from services.exit_signal.distance import by_distance, exits_of
from services.exit_signal.logic import SellablePart, assess
from tests.unit.services.exit_signal.conftest import FALLING, RISING, facts, position

STOP = {"pct": 10}


def stop_order(price: str) -> OpenOrder:
    return OpenOrder(
        order_id=UUID(int=1),
        asset="AAPL",
        side=Side.SELL,
        quantity=Decimal(53),
        hold=Money(amount=Decimal(0)),
        stop_price=Money(amount=Decimal(price)),
        as_of="2012-06-29",
    )


def told(
    *orders: OpenOrder, months: Any = RISING, seen: dict[str, Any] | None = None, **terms: Any
) -> PositionExits:
    """A position of 53 shares at 100 that cost 80."""
    held = SellablePart(position())
    found = assess(facts(months, **(seen or {})), ExitTerms.model_validate(terms), held)
    return exits_of(held, orders, found)


def trigger(found: PositionExits, rule: str) -> ExitTrigger:
    return next(each for each in found.triggers if each.rule == rule)


def test_a_stop_loss_tells_how_far_the_price_may_fall_and_to_what() -> None:
    found = trigger(told(stop_loss=STOP), "stop_loss")
    assert (found.unit, found.distance) == ("price", pytest.approx(0.28))
    assert found.at == Money(amount=Decimal(72))


def test_a_take_profit_tells_how_far_the_price_may_rise() -> None:
    found = trigger(told(take_profit={"pct": 50}), "take_profit")
    assert (found.distance, found.at) == (pytest.approx(0.2), Money(amount=Decimal(120)))


def test_a_trailing_stop_is_measured_from_the_close() -> None:
    seen = {"peak": 125.0, "close": 100.0}
    found = trigger(told(trailing_stop={"pct": 28}, seen=seen), "trailing_stop")
    assert (found.distance, found.at) == (pytest.approx(0.1), Money(amount=Decimal(90)))


def test_a_trailing_stop_fires_at_its_close_whatever_a_later_fill_paid() -> None:
    seen = {"peak": 125.0, "close": 110.0}
    found = trigger(told(trailing_stop={"pct": 28}, seen=seen), "trailing_stop")
    assert found.at == Money(amount=Decimal(90)), "28% below 125, not below 125 * 100 / 110"
    assert found.distance == pytest.approx(0.1), "of the price that is shown, 100"


def test_what_rounds_to_nothing_has_no_sign() -> None:
    seen = {"peak": 100.0, "close": 99.9999}
    found = trigger(told(trailing_stop={"pct": 28}, seen=seen), "trailing_stop")
    assert found.detail.startswith("+0.00% from the highest close")


def test_a_stop_order_that_waits_is_a_trigger_too() -> None:
    found = trigger(told(stop_order("95")), "stop_order")
    assert (found.distance, found.at) == (pytest.approx(0.05), Money(amount=Decimal(95)))
    assert "53 shares" in found.detail


def test_momentum_tells_the_gap_and_nothing_is_left_of_it_once_it_has_fired() -> None:
    quiet, fired = (trigger(told(months=months), "momentum") for months in (RISING, FALLING))
    # 2 points above the mean, and half a point below it before it fires.
    assert (quiet.unit, quiet.distance, quiet.triggered) == ("return", pytest.approx(0.025), False)
    assert (fired.distance, fired.triggered) == (0.0, True)


def test_a_position_whose_signal_has_acted_says_so() -> None:
    act = ActedExit(
        ticker="AAPL",
        as_of=date(2012, 6, 29),
        rules=("momentum",),
        month="2012-06",
        held=Decimal(53),
        asked=Decimal(26),
        sold=Decimal(26),
    )
    held = SellablePart(position("27"), exits=(act,))
    found = exits_of(held, [], assess(facts(FALLING), ExitTerms(), held))
    assert trigger(found, "momentum").triggered
    assert "sold 26 of 53 shares" in found.note


def test_sessions_left_are_no_distance_that_is_compared_with_prices() -> None:
    found = told(hold_period={"sessions": 10}, seen={"sessions_held": 9})
    assert trigger(found, "hold_period").distance == 1
    assert found.triggers[-1].rule == "hold_period"
    assert found.nearest == pytest.approx(0.025), "momentum's"


def test_what_cannot_be_evaluated_has_no_distance_and_says_why() -> None:
    found = trigger(told(months=(0.01,)), "momentum")
    assert (found.distance, found.triggered) == (None, False)
    assert "complete months" in found.detail


def test_a_price_of_nothing_is_no_division_by_nothing() -> None:
    seen = {"peak": 125.0, "close": 0.0}
    assert trigger(told(trailing_stop={"pct": 28}, seen=seen), "trailing_stop").distance == 0.0


def test_a_position_that_cannot_be_checked_keeps_its_stop_order() -> None:
    held, failure = SellablePart(position()), Failure(code="no_data", message="nobody knows it")
    found = exits_of(held, [stop_order("95")], failure)
    assert (found.failure, found.nearest) == (failure, pytest.approx(0.05))
    assert [each.rule for each in found.triggers] == ["stop_order"]


def test_the_position_nearest_to_a_trigger_comes_first_and_the_unknown_last() -> None:
    made = told()
    rows = [
        made.model_copy(update={"ticker": name, "nearest": nearest})
        for name, nearest in (("A", None), ("B", 0.3), ("C", 0.0), ("D", 0.3))
    ]
    assert [each.ticker for each in by_distance(rows)] == ["C", "B", "D", "A"]
