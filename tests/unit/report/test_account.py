"""What is said of an account's positions and orders."""

from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest

from contracts.account import HeldPlan, OpenOrder, Portfolio, Position, Side
from contracts.account_query import HeldAtClose
from contracts.types import Money
from libs.report import account

DAY = date(2012, 6, 29)
HELD = Position(
    ticker="AAPL",
    quantity=Decimal(10),
    average_cost=Money(amount=Decimal(150)),
    price=Money(amount=Decimal(200)),
)


def books(*positions: Position) -> Portfolio:
    return Portfolio(
        cycle_id=UUID(int=1),
        op_id=UUID(int=2),
        as_of=DAY,
        account="main",
        cash=Money(amount=Decimal(1)),
        equity=Money(amount=Decimal(2_001)),
        positions=positions,
    )


def test_only_a_position_at_an_older_price_is_named() -> None:
    held = HeldAtClose(ticker="AAPL", quantity=Decimal(10), cost=Decimal(1_500))
    (line,) = account.unpriced((held, held.model_copy(update={"priced_on": DAY})))

    assert line.startswith(
        "AAPL has no price now: it is valued at its last price, of Fri 2012-06-29"
    )


def test_a_waiting_order_says_what_it_holds_back_and_a_stop_its_price() -> None:
    order = OpenOrder(
        order_id=UUID(int=3),
        asset="AAPL",
        side=Side.BUY,
        quantity=Decimal(3),
        hold=Money(amount=Decimal(600)),
        as_of=DAY,
    )
    stop = order.model_copy(
        update={
            "side": Side.SELL,
            "hold": Money(amount=Decimal(0)),
            "stop_price": Money(amount=Decimal(95)),
        }
    )

    assert account.waiting(order) == "buy 3 AAPL, 600.00 USD reserved, decided Fri 2012-06-29"
    assert account.waiting(stop) == "sell 3 AAPL at a stop of 95.00 USD, decided Fri 2012-06-29"


def entered(**fields: object) -> Position:
    plan = HeldPlan(
        horizon_sessions=60,
        risk=Money(amount=Decimal(500)),
        risk_pct=Decimal("0.5"),
        review_by=date(2012, 9, 25),
        thesis="For: close 150.00 USD, 20% above 200-day average.",
        since=date(2012, 6, 25),
        cycle_id=UUID(int=4),
    )
    return HELD.model_copy(update={"plan": plan.model_copy(update=fields)})


def stop_at(price: str) -> OpenOrder:
    return OpenOrder(
        order_id=UUID(int=5),
        asset="AAPL",
        side=Side.SELL,
        quantity=Decimal(10),
        hold=Money(amount=Decimal(0)),
        stop_price=Money(amount=Decimal(price)),
        as_of=DAY,
    )


def test_a_position_says_its_thesis_the_stop_that_stands_now_and_when_it_is_reviewed() -> None:
    held = books(entered()).model_copy(update={"open_orders": (stop_at("140.00"),)})

    (line,) = account.plans(held)
    assert line == (
        "AAPL: bought on Mon 2012-06-25 (For: close 150.00 USD, 20% above 200-day average); "
        "stop 140.00 USD; review by 2012-09-25"
    )


def test_a_plan_names_the_event_that_may_prove_it_wrong_also_where_no_stop_stands() -> None:
    (line,) = account.plans(books(entered(review_event="next report of 2012-07-24")))

    assert "; wrong if its next report of 2012-07-24 speaks against it; review by" in line


@pytest.mark.parametrize(("review_by", "is_due"), [("2012-06-29", True), ("2012-07-02", False)])
def test_what_is_due_for_review_says_so(review_by: str, *, is_due: bool) -> None:
    (line,) = account.plans(books(entered(review_by=date.fromisoformat(review_by))))

    assert (f"review due since {review_by}" in line) is is_due
    assert (f"review by {review_by}" in line) is not is_due


def test_what_was_bought_without_a_plan_has_none_to_tell() -> None:
    assert account.plans(books(HELD)) == []
