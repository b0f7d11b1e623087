"""What exits acted on, as the ledger knows it at each session; and what cools off after a sale."""

import json
from datetime import date
from decimal import Decimal

import asyncpg
import pytest

from contracts.account import ActedExit, CoolingOff, ExitAct, OrderStatus
from contracts.exit_signal import HoldingsQuery
from libs.market.source import CorporateAction
from libs.postgres.pool import Pool
from services.execution.handler import show_holdings
from tests.integration.execution.conftest import FRIDAY, MONDAY, THURSDAY, TUESDAY, Desk

D = Decimal
LATER = date(2012, 7, 6)
HALF = ExitAct(rules=("momentum",), month="2012-06", held=D(100), asked=D(50))


def acted(as_of: date = MONDAY, sold: int = 50, on: date | None = TUESDAY) -> ActedExit:
    act = HALF.model_dump()
    return ActedExit(ticker="AAPL", as_of=as_of, sold=D(sold), sold_on=on, **act)


async def halved(desk: Desk) -> Desk:
    """The desk after half of what it bought on Monday was sold on Tuesday, at Tuesday's close."""
    await desk.open()
    await desk.buy("AAPL", 100)
    await desk.open(MONDAY)
    await desk.exit("AAPL", 50, "9.00", MONDAY, HALF)
    await desk.open(TUESDAY)
    return desk


async def holdings(desk: Desk, as_of: date | None = None) -> tuple[ActedExit, ...]:
    query = HoldingsQuery(account=desk.account, as_of=as_of)
    return (await show_holdings(query, trading=desk.trading)).exits


async def test_the_books_know_what_acted_and_what_it_sold(desk: Desk) -> None:
    books = await (await halved(desk)).open(TUESDAY)
    assert books.exits == (acted(),)


async def test_an_earlier_session_does_not_know_a_later_exit_nor_its_fill(desk: Desk) -> None:
    await halved(desk)
    await desk.open(THURSDAY)

    assert await holdings(desk, FRIDAY) == ()
    assert await holdings(desk, MONDAY) == (acted(sold=0, on=None),)
    assert await holdings(desk, TUESDAY) == (acted(),)
    assert await holdings(desk) == (acted(),)


async def test_the_account_as_it_is_now_knows_a_fill_of_the_next_open(desk: Desk) -> None:
    await desk.open()
    await desk.buy("AAPL", 100)
    await desk.open(MONDAY)
    await desk.exit("AAPL", 50, None, MONDAY, HALF)

    assert await holdings(desk) == (acted(),)
    assert await holdings(desk, MONDAY) == (acted(sold=0, on=None),)


async def test_a_fill_that_the_books_come_to_is_known_as_they_are_opened(desk: Desk) -> None:
    desk.prices.last = MONDAY  # Tuesday's open is not there yet
    await desk.open()
    await desk.buy("AAPL", 100)
    await desk.open(MONDAY)
    result = await desk.exit("AAPL", 50, None, MONDAY, HALF)
    assert [order.status for order in result.orders] == [OrderStatus.WORKING]

    desk.prices.last = LATER
    books = await desk.open(TUESDAY)
    assert books.exits == (acted(),)
    assert [(sold.ticker, sold.sold_on) for sold in books.cooling_off] == [("AAPL", TUESDAY)]


async def test_an_exit_that_did_not_open_has_asked_and_sold_nothing(desk: Desk) -> None:
    await desk.open()
    await desk.buy("AAPL", 100)
    await desk.open(MONDAY)
    desk.prices.opens["AAPL", TUESDAY] = None
    await desk.exit("AAPL", 50, None, MONDAY, HALF)
    books = await desk.open(TUESDAY)

    assert books.exits == (acted(sold=0, on=None),)


async def test_a_split_restates_what_was_asked_and_sold(desk: Desk) -> None:
    desk.prices.events = [CorporateAction("AAPL", THURSDAY, D(2), D(0))]
    await halved(desk)
    books = await desk.open(THURSDAY)

    (found,) = books.exits
    assert (found.held, found.asked, found.sold) == (200, 100, 100)
    assert await holdings(desk, TUESDAY) == (acted(),)


async def test_a_split_at_the_open_of_the_sale_restates_what_was_asked_before_it(
    desk: Desk,
) -> None:
    desk.prices.events = [CorporateAction("AAPL", TUESDAY, D(2), D(0))]
    books = await (await halved(desk)).open(TUESDAY)

    (found,) = books.exits
    assert (found.held, found.asked, found.sold) == (200, 100, 100)


async def test_a_position_that_was_opened_again_is_another_one(desk: Desk) -> None:
    await halved(desk)
    await desk.sell("AAPL", 50, TUESDAY)
    await desk.open(THURSDAY)
    keen = desk.without_cooling_off()
    await keen.buy("AAPL", 10, THURSDAY)
    books = await keen.open(LATER)

    assert [each.quantity for each in books.positions] == [10]
    assert (books.exits, books.cooling_off) == ((), ())


async def test_what_was_sold_cools_off_and_execution_buys_none_of_it(desk: Desk) -> None:
    await halved(desk)
    await desk.sell("AAPL", 50, TUESDAY)
    books = await desk.open(THURSDAY)
    assert books.positions == ()
    assert books.cooling_off == (CoolingOff(ticker="AAPL", sold_on=THURSDAY, sessions_ago=0),)

    result = await desk.buy("AAPL", 10, THURSDAY)

    (order,) = result.orders
    assert order.status is OrderStatus.REJECTED
    assert "cooling_off" in order.reason
    assert "sold on 2012-07-05, 0 sessions ago" in order.reason


async def test_after_ten_sessions_it_may_be_bought_again(desk: Desk) -> None:
    await halved(desk)
    await desk.sell("AAPL", 50, TUESDAY)
    calendar = desk.prices.calendar
    *_, ninth, tenth = calendar.sessions(LATER, date(2012, 7, 19))
    books = await desk.open(ninth)
    assert [each.sessions_ago for each in books.cooling_off] == [9]
    books = await desk.open(tenth)
    assert books.cooling_off == ()

    result = await desk.buy("AAPL", 10, tenth)
    assert [order.status for order in result.orders] == [OrderStatus.FILLED]


async def test_the_table_takes_what_acted_of_exits_alone(pool: Pool, desk: Desk) -> None:
    await halved(desk)
    half_told = (
        "insert into orders select (jsonb_populate_record(o, $2::text::jsonb)).* from orders o"
    )
    changes = (
        {"exit": False, "stop_price": None, "as_of": "2012-07-30"},
        {"exit_month": None, "as_of": "2012-07-30"},
        {"exit_month": "2012-13", "as_of": "2012-07-30"},
    )
    for change in changes:
        new = {"order_id": "00000000-0000-0000-0000-000000000009", "status": "rejected", **change}
        with pytest.raises(asyncpg.CheckViolationError):
            await pool.execute(
                f"{half_told} where account = $1 and exit_rules is not null",
                desk.account,
                json.dumps(new),
            )
