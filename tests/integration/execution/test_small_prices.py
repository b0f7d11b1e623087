"""Shares at small fractions of a cent: what is sold brings what it is worth, and no more."""

from dataclasses import replace
from decimal import Decimal

import pytest

from contracts.account import OrderStatus
from contracts.capital import HeldLine
from libs.broker.paper import PaperBroker
from libs.postgres.pool import Pool
from tests.integration.execution.conftest import FRIDAY, MONDAY, TUESDAY, Desk
from tests.integration.execution.test_capital import opened
from tests.integration.execution.test_execution import assert_sound

D = Decimal
PENNY = D("0.000493")


@pytest.fixture
def cheap(desk: Desk) -> Desk:
    """AAPL at 0.000493, and the costs of a desk that nobody has changed."""
    for session in (FRIDAY, MONDAY, TUESDAY):
        desk.prices.closes["AAPL", session] = desk.prices.opens["AAPL", session] = PENNY
    return replace(desk, trading=replace(desk.trading, broker=PaperBroker(D(5), D(5))))


async def test_a_million_shares_brought_in_and_sold_make_no_money(cheap: Desk, pool: Pool):
    line = HeldLine(line=2, ticker="AAPL", quantity=D(10**6), cost=D("0.0005"), opened_on=FRIDAY)
    account = await opened(cheap, line, cash="10")
    assert account.equity.amount == D(10) + D(493)

    (fill,) = (await cheap.exit("AAPL", 10**6)).fills
    assert fill.price.amount == D("0.000492")  # 0.0004927535 after slippage, rounded down
    books = await cheap.open(MONDAY)
    assert books.cash.amount == books.equity.amount == D(10) + D(492) - D("0.25")
    await assert_sound(pool, cheap.account)


async def test_a_buy_costs_its_price_and_not_a_cent_a_share(cheap: Desk, pool: Pool):
    await cheap.open()
    (fill,) = (await cheap.execute(cheap.command({"AAPL": 10**6}, price=PENNY))).fills
    assert fill.price.amount == D("0.000494")  # 0.0004932465 after slippage, rounded up
    assert fill.value == D(494)
    await assert_sound(pool, cheap.account)


async def test_where_a_tick_is_too_much_of_the_price_nothing_is_bought(cheap: Desk):
    for session in (FRIDAY, MONDAY):
        cheap.prices.closes["AAPL", session] = D("0.00005")
    await cheap.open()
    (order,) = (await cheap.execute(cheap.command({"AAPL": 10**6}, price=D("0.00005")))).orders
    assert order.status is OrderStatus.REJECTED
    assert "tick_size" in order.reason


async def test_an_open_that_fell_so_low_meanwhile_refuses_the_buy(cheap: Desk):
    cheap.prices.opens["AAPL", MONDAY] = D("0.00005")
    await cheap.open()
    (order,) = (await cheap.execute(cheap.command({"AAPL": 10**6}, price=PENNY))).orders
    assert order.status is OrderStatus.REJECTED
    assert "one tick, 0.000001, is more than 1% of it" in order.reason


async def test_a_gap_at_the_open_costs_more_and_changes_no_shares(desk: Desk, pool: Pool):
    """A broker fills the number of shares that was ordered; only the cash cuts them."""
    desk.prices.opens["AAPL", MONDAY] = D(12)
    await desk.open()
    (fill,) = (await desk.buy("AAPL", 100)).fills
    assert (fill.quantity, fill.value) == (100, D(1_200))

    desk.prices.opens["MSFT", TUESDAY] = D(30)
    await desk.open(MONDAY)
    (fill,) = (await desk.execute(desk.command({"MSFT": 400}, MONDAY))).fills
    assert (fill.price.amount, fill.quantity) == (30, 293)  # all of the 8,798.80 that was left
    await assert_sound(pool, desk.account)
