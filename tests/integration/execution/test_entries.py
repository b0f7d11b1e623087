"""Buys with a plan on a real ledger: the stop comes with the fill, one a ticker, never lowered."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from contracts.account import OrderStatus, OrderType, Side
from contracts.types import Money
from libs.market.source import CorporateAction
from libs.postgres.pool import Pool
from tests.integration.execution.conftest import FRIDAY, MONDAY, THURSDAY, TUESDAY, Desk
from tests.integration.execution.test_execution import assert_sound

D = Decimal
STOP = Money(amount=D("9.90"))


async def orders(pool: Pool, desk: Desk) -> list[tuple[Any, ...]]:
    """In the order of placing: side, type, status, shares, session and price of the fill."""
    rows = await pool.fetch(
        "select o.side, o.type, o.status, o.quantity::int, f.session, f.price from orders o"
        " left join fills f using (order_id) where o.account = $1 order by o.placed_at, o.type",
        desk.account,
    )
    return [tuple(row) for row in rows]


async def test_a_buy_is_filled_with_its_stop_and_its_plan_is_on_record(
    desk: Desk, pool: Pool
) -> None:
    await desk.open()
    result = await desk.enter("AAPL", 100)

    bought, stop = result.orders
    assert (bought.side, bought.status, bought.stop_price) == (Side.BUY, OrderStatus.FILLED, STOP)
    assert (stop.side, stop.type, stop.quantity) == (Side.SELL, OrderType.STOP, 100)
    assert stop.stop_price == STOP

    books = await desk.open(MONDAY)
    (position,) = books.positions
    assert position.plan is not None
    plan = position.plan
    assert (plan.stop_price, plan.since, plan.thesis) == (STOP, MONDAY, "because")
    assert (plan.review_by, plan.horizon_sessions) == (date(2012, 9, 25), 60)
    # 0.10 down to the stop and 0.10 for fees and a small gap, on 100 shares of 10.
    assert (plan.risk, plan.risk_pct) == (Money(amount=D("20.00")), D("0.2"))
    assert [order.stop_price for order in books.open_orders] == [STOP]
    await assert_sound(pool, desk.account)


@pytest.mark.parametrize(
    ("opened", "low", "price"),
    [
        ("10.00", "9.91", None),
        ("10.00", "9.90", "9.90"),
        ("10.00", "8.00", "9.90"),
        ("9.00", "8.50", "9.00"),  # a gap through the stop fills at the open
    ],
)
async def test_the_stop_sells_at_its_price_and_after_a_gap_at_the_open(
    desk: Desk, pool: Pool, opened: str, low: str, price: str | None
) -> None:
    await desk.open()
    await desk.enter("AAPL", 100)
    desk.prices.opens["AAPL", TUESDAY] = D(opened)
    desk.prices.lows["AAPL", TUESDAY] = D(low)
    books = await desk.open(TUESDAY)

    stop = (await orders(pool, desk))[1]
    if price is None:
        assert stop == ("sell", "stop", "waiting", 100, None, None)
    else:
        assert stop == ("sell", "stop", "filled", 100, TUESDAY, D(price))
        assert books.positions == ()
    await assert_sound(pool, desk.account)


async def test_the_stop_counts_from_the_session_of_the_fill_on(desk: Desk, pool: Pool) -> None:
    desk.prices.lows["AAPL", MONDAY] = D("9.50")
    await desk.open()
    await desk.enter("AAPL", 100)
    await desk.open(MONDAY)
    assert (await orders(pool, desk))[1] == ("sell", "stop", "filled", 100, MONDAY, D("9.90"))


@pytest.mark.parametrize(("opened", "is_filled"), [("9.91", True), ("9.90", False), ("8", False)])
async def test_what_opens_where_the_buy_was_wrong_is_not_bought(
    desk: Desk, pool: Pool, opened: str, *, is_filled: bool
) -> None:
    desk.prices.opens["AAPL", MONDAY] = D(opened)
    await desk.open()
    result = await desk.enter("AAPL", 100)
    assert (len(result.fills) == 1) is is_filled
    if not is_filled:
        (order,) = result.orders
        assert order.status is OrderStatus.REJECTED
        assert "not above its stop at 9.90 USD: what would prove it wrong was there" in order.reason


async def test_a_buy_that_waits_for_its_open_places_its_stop_when_it_is_filled(
    desk: Desk, pool: Pool
) -> None:
    desk.prices.last = FRIDAY
    await desk.open()
    assert [order.status for order in (await desk.enter("AAPL", 100)).orders] == [
        OrderStatus.WORKING
    ]
    desk.prices.last = date(2012, 12, 31)
    books = await desk.open(MONDAY)
    assert [order.stop_price for order in books.open_orders] == [STOP]
    assert books.positions[0].plan is not None


async def test_a_split_at_the_open_of_the_buy_counts_for_its_stop(desk: Desk, pool: Pool) -> None:
    desk.prices.events.append(CorporateAction("AAPL", MONDAY, D(2), D(0)))
    desk.prices.opens["AAPL", MONDAY] = desk.prices.closes["AAPL", MONDAY] = D(5)
    await desk.open()
    await desk.enter("AAPL", 100)
    (stop,) = (await desk.open(MONDAY)).open_orders
    assert (stop.quantity, stop.stop_price) == (200, Money(amount=D("4.95")))


@pytest.mark.parametrize(("named", "stands"), [("9.00", "9.90"), ("9.95", "9.95")])
async def test_of_the_stops_of_an_entry_and_an_exit_the_higher_stands(
    desk: Desk, pool: Pool, named: str, stands: str
) -> None:
    await desk.open()
    await desk.enter("AAPL", 100)
    await desk.open(MONDAY)
    await desk.exit("AAPL", 50, named, MONDAY)
    books = await desk.open(TUESDAY)
    (stop,) = books.open_orders
    assert (stop.quantity, stop.stop_price) == (50, Money(amount=D(stands)))
    assert books.positions[0].plan is not None


async def test_a_sale_of_all_ends_stop_and_plan_and_the_next_buy_has_its_own(
    desk: Desk, pool: Pool
) -> None:
    desk = desk.without_cooling_off()
    await desk.open()
    await desk.enter("AAPL", 100)
    await desk.open(MONDAY)
    await desk.sell("AAPL", 100, MONDAY)
    assert (await desk.open(TUESDAY)).open_orders == ()
    await desk.buy("AAPL", 10, TUESDAY)
    books = await desk.open(THURSDAY)
    assert books.positions[0].plan is None
    assert books.open_orders == ()
    await assert_sound(pool, desk.account)
