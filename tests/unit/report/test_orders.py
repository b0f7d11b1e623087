"""What is said of orders, in one currency and in two."""

from datetime import date
from decimal import Decimal
from uuid import UUID

from contracts.account import Fill, OrderStatus, OrderType, Side
from contracts.execution import ExecutionResult, Order
from contracts.types import ExchangeRate, Foreign, Money
from libs.report.orders import in_short, proposal, rows

DAY = date(2024, 3, 15)
EUROS = Foreign(
    price=Money(amount=Decimal("33.33"), currency="EUR"),
    rate=ExchangeRate(currency="EUR", into="USD", rate=Decimal("1.1234"), on=DAY),
)


def _result(reason: str = "", foreign: Foreign | None = None) -> ExecutionResult:
    what = {"order_id": UUID(int=1), "asset": "GOLF.DE", "side": Side.BUY, "quantity": Decimal(3)}
    return ExecutionResult(
        cycle_id=UUID(int=2),
        op_id=UUID(int=3),
        as_of=DAY,
        account="main",
        orders=(Order(**what, status=OrderStatus.FILLED, reason=reason, foreign=foreign),),
        fills=(
            Fill(
                **what,
                price=Money(amount=Decimal("37.442922")),
                fee=Money(amount=Decimal("0.06")),
                session=date(2024, 3, 18),
                foreign=foreign,
            ),
        ),
        cash_before=Money(amount=Decimal(1_000)),
        cash_after=Money(amount=Decimal("887.61")),
    )


def test_a_fill_abroad_says_its_price_there_and_the_rate_with_its_day() -> None:
    (row,) = rows(_result("cut", EUROS))

    assert row.name == "buy GOLF.DE"
    assert row.notes == ["cut", "33.33 EUR at EURUSD 1.1234 of Fri 2024-03-15"]


def test_a_stop_in_pence_names_them_below_a_heading_in_dollars() -> None:
    stop = Money(amount=Decimal("552.690000"), currency="GBX")
    order = (
        _result()
        .orders[0]
        .model_copy(
            update={"side": Side.SELL, "asset": "EEE.L", "type": OrderType.STOP, "stop_price": stop}
        )
    )
    (row,) = rows(_result().model_copy(update={"orders": (order,), "fills": ()}))

    assert row.name == "sell EEE.L, stop at 552.69 GBX"


def test_at_home_there_is_nothing_to_say() -> None:
    (row,) = rows(_result())

    assert row.notes == []


def test_an_order_that_waits_says_what_books_its_fill() -> None:
    order = _result("cut").orders[0].model_copy(update={"status": OrderStatus.WORKING})
    (row,) = rows(_result().model_copy(update={"orders": (order,), "fills": ()}))

    assert row.notes == [
        "cut",
        "waits for the next open; its fill is booked with the account's next cycle",
    ]


def test_the_value_of_a_fill_is_what_the_ledger_posted_to_the_cent() -> None:
    (abroad,), (at_home,) = _result(foreign=EUROS).fills, _result().fills

    assert abroad.value == Decimal("112.33")  # 99.99 euros at 1.1234
    assert at_home.value == Decimal("112.33")  # 112.328766, rounded up: it was bought
    assert "for 112.33 USD" in in_short(_result(foreign=EUROS))


def test_what_is_wanted_and_what_was_vetoed_are_one_sentence() -> None:
    assert proposal(["buy 39 AAPL", "buy 888 MSFT"], ["FB"]) == (
        "buy 39 AAPL, buy 888 MSFT; vetoed FB"
    )
    assert proposal([], ["FB", "GOOG"]) == "vetoed FB, GOOG"
    assert proposal([], []) == ""
