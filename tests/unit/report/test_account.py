"""What is said of an account's positions and orders."""

from datetime import date
from decimal import Decimal
from uuid import UUID

from contracts.account import OpenOrder, Portfolio, Position, Side
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


def test_a_gain_is_what_it_would_bring_over_its_cost() -> None:
    assert account.gain(HELD) == Decimal(500)


def test_only_a_position_at_an_older_price_is_named() -> None:
    (line,) = account.unpriced(books(HELD, HELD.model_copy(update={"priced_on": DAY})))

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

    assert account.waiting(order) == "buy 3 AAPL, 600.00 reserved, decided Fri 2012-06-29"
    assert account.waiting(stop) == "sell 3 AAPL at a stop of 95.00 USD, decided Fri 2012-06-29"
