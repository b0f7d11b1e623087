"""A limit of fills by the session's volume: parts are filled, and nothing is left unprotected."""

from dataclasses import replace
from decimal import Decimal

import pytest

from contracts.account import OrderStatus
from libs.broker.paper import PaperBroker
from libs.postgres.pool import Pool
from tests.integration.execution.conftest import FRIDAY, MONDAY, THURSDAY, TUESDAY, Desk, Prices
from tests.integration.execution.test_execution import assert_sound
from tests.integration.execution.test_exits import LATER, held, holding, orders

D = Decimal


@pytest.fixture
def limited(desk: Desk) -> Desk:
    """A fill takes at most a tenth of the session's volume."""
    broker = PaperBroker(fee_bps=D(10), slippage_bps=D(0), volume_pct_max=D(10))
    return replace(desk, trading=replace(desk.trading, broker=broker))


async def test_a_buy_is_filled_in_part_and_the_rest_is_cancelled(
    limited: Desk, pool: Pool, postgres: Pool
):
    limited.prices.volumes["AAPL", MONDAY] = 302
    await limited.open()
    result = await limited.buy("AAPL", 100)

    (order,), (fill,) = result.orders, result.fills
    assert (order.status, order.quantity, fill.quantity) == (OrderStatus.FILLED, 30, 30)
    assert "cut from 100 to 30 shares: 10% of the session's volume of 302" in order.reason
    told = await postgres.fetchval(
        "select data->>'reason' from state_events where type = 'order_filled'"
        " and data->>'order_id' = $1",
        str(order.order_id),
    )
    assert told == order.reason
    assert await held(pool, limited) == 30
    books = await limited.open(MONDAY)
    assert books.open_orders == ()
    assert books.cash.amount == D(10_000) - 300 - D("0.30")
    await assert_sound(pool, limited.account)


async def test_on_a_session_without_volume_a_buy_is_rejected_with_the_reason(limited: Desk):
    limited.prices.volumes["AAPL", MONDAY] = 0
    await limited.open()
    (order,) = (await limited.buy("AAPL", 100)).orders
    assert order.status is OrderStatus.REJECTED
    assert "10% of the session's volume of 0 is no share" in order.reason


async def test_an_exit_filled_in_part_has_its_stop_on_all_that_is_left(limited: Desk, pool: Pool):
    await holding(limited)
    limited.prices.volumes["AAPL", TUESDAY] = 200
    await limited.exit("AAPL", 75, "9.00", MONDAY)
    assert await orders(pool, limited) == [
        ("market", "filled", 20, TUESDAY, D(10)),
        ("stop", "waiting", 80, None, None),
    ]


async def test_a_stop_sells_over_sessions_and_what_is_left_is_never_without_one(
    limited: Desk, pool: Pool
):
    await holding(limited)
    await limited.exit("AAPL", 40, "9.00", MONDAY)
    prices = limited.prices
    volumes = {TUESDAY: 200.0, THURSDAY: 0.0, LATER: 1_000.0}
    for session, volume in volumes.items():
        prices.volumes["AAPL", session] = volume
        prices.lows["AAPL", session] = D("8.50")
    for session in (TUESDAY, THURSDAY):
        books = await limited.open(session)
        (stop,) = books.open_orders
        (position,) = books.positions
        assert stop.quantity == position.quantity
    await limited.open(LATER)
    placed = await orders(pool, limited)
    assert [row[:4] for row in placed if row[0] == "stop"] == [
        ("stop", "filled", 20, TUESDAY),
        ("stop", "filled", 40, LATER),
    ]
    assert await held(pool, limited) == 0
    await assert_sound(pool, limited.account)


async def test_a_stop_is_not_cut_to_the_volume_of_a_part_of_the_market(
    limited: Desk, pool: Pool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Prices, "session_notes", lambda *_: ["of one exchange"], raising=False)
    monkeypatch.setattr(Prices, "whole_volume", lambda _: False, raising=False)
    await holding(limited)
    await limited.exit("AAPL", 40, "9.00", MONDAY)
    limited.prices.volumes["AAPL", TUESDAY] = 200.0
    limited.prices.lows["AAPL", TUESDAY] = D("8.50")
    await limited.open(TUESDAY)
    stops = [row for row in await orders(pool, limited) if row[0] == "stop"]
    assert [row[1:4] for row in stops] == [("filled", 60, TUESDAY)]


async def test_a_clock_that_jumps_sells_the_same_of_a_stop(limited: Desk, pool: Pool):
    await holding(limited)
    await limited.exit("AAPL", 40, "9.00", MONDAY)
    for session in (TUESDAY, THURSDAY, LATER):
        limited.prices.volumes["AAPL", session] = 200.0
        limited.prices.lows["AAPL", session] = D("8.50")
    await limited.open(LATER)
    stops = [row for row in await orders(pool, limited) if row[0] == "stop"]
    assert sorted(row[1:4] for row in stops if row[3]) == [
        ("filled", 20, session) for session in (TUESDAY, THURSDAY, LATER)
    ]
    assert await held(pool, limited) == 0
    await assert_sound(pool, limited.account)


async def test_by_default_fills_ignore_volume(desk: Desk):
    desk.prices.volumes["AAPL", MONDAY] = 0
    await desk.open(FRIDAY)
    (fill,) = (await desk.buy("AAPL", 100)).fills
    assert fill.quantity == 100
