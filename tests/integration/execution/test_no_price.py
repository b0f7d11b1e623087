"""A share that has no price any more is held at its last known one, and holds up nothing else."""

from datetime import date
from decimal import Decimal
from uuid import uuid4

import structlog

from contracts.account import OrderStatus, Portfolio, PortfolioQuery, Position
from contracts.event_data import UnpricedEvent
from contracts.exit_signal import HoldingsQuery
from libs.market.source import CorporateAction
from libs.postgres.pool import CONSOLE_ROLE, open_pool
from services.execution import handler
from services.execution.handler import show_holdings, show_portfolio
from tests.integration.execution.conftest import FRIDAY, MONDAY, THURSDAY, TUESDAY, D, Desk
from tests.integration.execution.test_execution import assert_sound
from tests.integration.execution.test_guard import limited
from tests.integration.execution.test_snapshots import snapshots

LATER = date(2012, 9, 28)


async def halted(desk: Desk) -> Desk:
    """Holds 100 AAA, bought at Monday's open at 10, which closed at 12 that day and has no price
    since; everything else is at 10."""
    desk.prices.closes["AAA", MONDAY] = D(12)
    await desk.open()
    await desk.buy("AAA", 100)
    assert held(await desk.open(MONDAY)).priced_on is None
    desk.prices.gone = {"AAA"}
    return desk


def held(books: Portfolio) -> Position:
    (position,) = books.positions
    return position


async def shown(desk: Desk, as_of: date) -> Portfolio:
    query = PortfolioQuery(cycle_id=uuid4(), pipeline="rules", account=desk.account, as_of=as_of)
    return await show_portfolio(query, trading=desk.trading)


async def test_it_counts_at_its_last_close_and_says_of_which_day_that_is(desk, pool, monkeypatch):
    log = structlog.testing.CapturingLogger()
    monkeypatch.setattr(handler, "log", log)
    await halted(desk)
    books = await desk.open(THURSDAY)
    assert (held(books).price.amount, held(books).priced_on) == (12, MONDAY)
    assert books.equity.amount == D(8_999) + 1_200
    told = [call.kwargs for call in log.calls if call.args == ("execution.no_price",)]
    assert [(each["ticker"], each["priced_on"]) for each in told] == [("AAA", "2012-07-02")]
    taken = await snapshots(pool, desk.account)
    assert [taken[day]["equity"] for day in (MONDAY, TUESDAY, THURSDAY)] == [D(10_199)] * 3
    assert taken[THURSDAY]["unpriced"] == []


async def test_each_session_without_a_price_is_told_once_as_an_event(desk, servers):
    await halted(desk)
    for day in (TUESDAY, TUESDAY, LATER):
        await desk.open(day)
    async with open_pool(servers.postgres_dsn(CONSOLE_ROLE)) as console:
        rows = await console.fetch(
            "select session_id, data::text from state_events where type = 'position_unpriced'"
            " and data ->> 'account' = $1 order by id",
            desk.account,
        )
    assert [row["session_id"] for row in rows] == [f"{desk.account}/{d}" for d in (TUESDAY, LATER)]
    told = [UnpricedEvent.model_validate_json(row["data"]) for row in rows]
    assert {(each.ticker, each.price.amount, each.priced_on) for each in told} == {
        ("AAA", 12, MONDAY)
    }


async def test_each_later_session_and_each_way_to_ask_knows_it_still(desk):
    await halted(desk)
    for day in (TUESDAY, LATER):
        assert held(await desk.open(day)).priced_on == MONDAY
    assert held(await shown(desk, LATER)) == held(await desk.open(LATER))
    for as_of in (None, LATER, TUESDAY):
        query = HoldingsQuery(account=desk.account, as_of=as_of)
        (position,) = (await show_holdings(query, trading=desk.trading)).positions
        assert (position.price.amount, position.priced_on) == (12, MONDAY)


async def test_one_that_comes_back_is_valued_by_its_own_closes_again(desk, pool):
    await halted(desk)
    await desk.open(TUESDAY)
    desk.prices.gone = set()
    desk.prices.closes["AAA", THURSDAY] = D(4)
    books = await desk.open(THURSDAY)
    assert (held(books).price.amount, held(books).priced_on) == (4, None)
    # What it lost meanwhile is the loss of the session it came back at.
    assert books.before is not None
    assert books.before.equity is not None
    assert books.before.equity.amount - books.equity.amount == 800
    (order,) = (await desk.sell("AAA", 100, THURSDAY)).orders
    assert order.status is OrderStatus.FILLED


async def test_a_later_close_is_never_looked_at(desk):
    await halted(desk)
    await desk.open(TUESDAY)
    desk.prices.gone = set()
    desk.prices.closes["AAA", THURSDAY] = D(99)
    await desk.open(THURSDAY)
    desk.prices.gone = {"AAA"}
    tuesday = held(await shown(desk, TUESDAY))
    assert (tuesday.price.amount, tuesday.priced_on) == (12, MONDAY)
    thursday = held(await shown(desk, THURSDAY))
    assert (thursday.price.amount, thursday.priced_on) == (99, THURSDAY)


async def test_one_without_a_close_since_it_was_bought_counts_at_what_was_paid(desk, pool):
    desk.prices.opens["AAA", MONDAY] = D(11)
    await desk.open()
    await desk.buy("AAA", 100)
    desk.prices.gone = {"AAA"}
    books = await desk.open(MONDAY)
    assert (held(books).price.amount, held(books).priced_on) == (11, MONDAY)
    books = await desk.open(THURSDAY)
    assert (held(books).price.amount, held(books).priced_on) == (11, MONDAY)
    assert (await snapshots(pool, desk.account))[THURSDAY]["unrealised"] == 0


async def test_nothing_of_it_is_sold_and_its_stop_order_waits(desk, pool):
    desk.prices.closes["AAA", MONDAY] = D(12)
    await desk.open()
    await desk.buy("AAA", 100)
    await desk.open(MONDAY)
    await desk.exit("AAA", 40, stop="9", as_of=MONDAY)
    desk.prices.gone = {"AAA"}
    books = await desk.open(THURSDAY)
    assert [each.quantity for each in books.open_orders] == [60]
    (order,) = (await desk.sell("AAA", 10, THURSDAY)).orders
    assert order.status is OrderStatus.REJECTED
    assert f"no price since {held(books).priced_on}" in order.reason
    assert held(await desk.open(LATER)).quantity == 60

    desk.prices.gone = set()
    desk.prices.default = D(8)
    assert (await desk.open(date(2012, 10, 1))).positions == ()
    await assert_sound(pool, desk.account)


async def test_other_shares_are_bought_and_limits_count_it_at_its_last_value(desk):
    tight = limited(desk, gross_exposure_pct_max=D(20))
    await halted(tight)
    books = await tight.open(THURSDAY)
    assert books.equity.amount == 10_199
    (order,) = (await tight.buy("BBB", 100, THURSDAY)).orders
    # A fifth of 10,199 is 2,039.80, and 1,200 of it are taken.
    assert (order.status, order.quantity) == (OrderStatus.FILLED, 83)
    again = tight.command({"AAA": 10}, THURSDAY)
    (refused,) = (await tight.execute(again)).orders
    assert refused.status is OrderStatus.REJECTED


async def test_abroad_it_counts_at_the_rate_of_its_last_close(desk):
    desk.prices.euros, desk.prices.eurusd = {"AAA"}, {FRIDAY: D("1.25")}
    await desk.open()
    await desk.execute(desk.command({"AAA": 100}, price=D("12.5")))
    await desk.open(MONDAY)
    desk.prices.gone = {"AAA"}
    desk.prices.eurusd = {TUESDAY: D("1.5")}
    position = held(await desk.open(THURSDAY))
    assert (position.price.amount, position.priced_on) == (D("12.5"), MONDAY)
    assert position.foreign is not None
    assert (position.foreign.rate.rate, position.foreign.rate.on) == (D("1.25"), FRIDAY)


async def test_an_account_from_before_closes_were_kept_counts_it_at_what_was_paid(
    desk, pool, owner
):
    await halted(desk)
    async with owner.acquire() as db, db.transaction():
        await db.execute("alter table snapshots disable trigger snapshots_append_only")
        await db.execute("update snapshots set closes = '[]' where account = $1", desk.account)
        await db.execute("alter table snapshots enable trigger snapshots_append_only")
    position = held(await desk.open(TUESDAY))
    assert (position.price.amount, position.priced_on) == (10, MONDAY)


async def test_a_split_at_its_return_is_worked_through_as_ever(desk, pool):
    await halted(desk)
    await desk.open(TUESDAY)
    desk.prices.gone = set()
    desk.prices.events = [CorporateAction("AAA", THURSDAY, Decimal("0.1"), D(0))]
    desk.prices.closes["AAA", THURSDAY] = D(50)
    books = await desk.open(THURSDAY)
    assert (held(books).quantity, held(books).price.amount) == (10, 50)
    await assert_sound(pool, desk.account)


async def test_what_happened_to_it_meanwhile_is_made_up_for_when_it_is_back(desk, pool):
    await halted(desk)
    await desk.open(THURSDAY)
    desk.prices.gone = set()
    friday = date(2012, 7, 6)
    desk.prices.events = [
        CorporateAction("AAA", TUESDAY, D(2), D("0.50")),
        CorporateAction("AAA", THURSDAY, D(1), D("0.25")),
        CorporateAction("AAA", friday, D(2), D(0)),
    ]
    desk.prices.closes["AAA", friday] = D(3)
    books = await desk.open(friday)
    assert (held(books).quantity, held(books).price.amount) == (400, 3)
    # Two hundred shares were paid 0.75 each; all of it came to the account at once.
    assert books.cash.amount == D(8_999) + 150
    assert held(await desk.open(date(2012, 7, 9))).quantity == 400
    await assert_sound(pool, desk.account)


async def test_what_is_known_to_happen_to_it_meanwhile_counts_once(desk, pool):
    await halted(desk)
    desk.prices.events = [CorporateAction("AAA", TUESDAY, D(2), D("0.50"))]
    assert held(await desk.open(TUESDAY)).quantity == 100
    assert held(await desk.open(THURSDAY)).quantity == 100
    desk.prices.gone = set()
    for day in (date(2012, 7, 6), date(2012, 7, 9)):
        books = await desk.open(day)
        assert (held(books).quantity, books.cash.amount) == (200, D(9_099))
    await assert_sound(pool, desk.account)
