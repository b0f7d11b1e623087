"""The shipped wiring of execution on the bundled real prices."""

import asyncio
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pydantic import SecretStr

from contracts.account import OrderStatus
from contracts.subjects.commands import EXECUTE_DECISIONS, OPEN_BOOKS
from libs.market.calendar import exchange_calendar
from libs.postgres.pool import EXECUTION_ROLE, ORCHESTRATOR_ROLE
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers
from services.execution.app import NoDatabase, routes, service, trading_of
from services.execution.venue.desk import VenueDesk
from tests.integration.execution.conftest import WIDE, Desk, Prices
from tests.integration.execution.test_execution import assert_sound

D = Decimal


@pytest.fixture
async def shipped(servers: Servers, tmp_path):
    settings = Settings(
        data_dir=tmp_path, postgres={"dsn": SecretStr(servers.postgres_dsn(EXECUTION_ROLE))}
    )
    async with trading_of(settings) as trading:
        yield replace(trading, limits_of=lambda _: WIDE)


async def test_every_route_has_its_row_in_the_subject_table(shipped):
    async def latest() -> date:
        return date(2012, 6, 29)

    def now() -> datetime:
        return datetime.now(UTC)

    heard = routes(shipped, latest, VenueDesk(shipped.pool, shipped.reads, now, is_live=False))
    assert [route.hears for route in heard.commands] == [OPEN_BOOKS, EXECUTE_DECISIONS]


async def test_a_buy_fills_at_the_real_open_of_the_next_session(shipped, orchestrator):
    desk = Desk(shipped, Prices(), orchestrator)
    friday = date(2012, 6, 29)
    await desk.open(friday)
    result = await desk.execute(desk.command({"AAPL": 8}, friday, price=D("584.00")))
    (fill,) = result.fills
    assert fill.session == date(2012, 7, 2)
    # AAPL opened at 584.73 that day; 5 basis points worse, rounded up to the cent.
    assert fill.price.amount == D("585.03")
    assert fill.fee.amount == D("2.35")


async def test_a_position_lives_through_a_real_split_and_dividends(shipped, orchestrator):
    desk = Desk(shipped, Prices(), orchestrator)
    bought, after = date(2005, 2, 25), date(2005, 3, 1)
    await desk.open(bought)
    command = desk.command({"AAPL": 20}, bought, price=D("88.99"))
    (order,) = (await desk.execute(command)).orders
    assert order.status is OrderStatus.FILLED
    assert order.quantity == 40  # AAPL split 2 for 1 at the open it was filled at
    (position,) = (await desk.open(after)).positions
    assert position.quantity == 40
    (msft,) = (await desk.execute(desk.command({"MSFT": 50}, after, price=D("25.28")))).orders
    assert msft.status is OrderStatus.FILLED
    later = await desk.open(date(2005, 6, 1))
    async with shipped.pool.acquire() as db:
        paid = await db.fetchval(
            "select -sum(amount) from postings where account=$1 and book='dividends'", desk.account
        )
    assert paid == D("4.00")  # 0.08 a share on 50 MSFT, ex 2005-05-16
    assert {p.ticker: p.quantity for p in later.positions} == {"AAPL": 40, "MSFT": 50}


async def test_apples_split_doubles_the_shares_halves_their_cost_and_makes_no_gain(
    shipped, orchestrator, pool
):
    desk = Desk(shipped, Prices(), orchestrator)
    decided, held, split = date(2005, 2, 24), date(2005, 2, 25), date(2005, 2, 28)
    await desk.open(decided)
    await desk.execute(desk.command({"AAPL": 20}, decided, price=D("88.93")))
    before = await desk.open(held)
    after = await desk.open(split)

    (old,), (new,) = before.positions, after.positions
    assert (old.quantity, new.quantity) == (20, 40)
    assert new.average_cost.amount * 2 == old.average_cost.amount
    assert (old.price.amount, new.price.amount) == (D("88.99"), D("44.86"))
    # 44.86 a new share is 89.72 an old one: that is the day's move, and all that changed.
    assert after.cash == before.cash
    assert after.equity.amount - before.equity.amount == 40 * D("44.86") - 20 * D("88.99")
    rows = await pool.fetch(
        "select session, realised, unrealised, positions from snapshots where account=$1"
        " order by session",
        desk.account,
    )
    assert [row["session"] for row in rows] == [decided, held, split]
    assert {row["realised"] for row in rows} == {0}
    cost = 40 * new.average_cost.amount
    assert rows[2]["unrealised"] == 40 * D("44.86") - cost
    assert rows[1]["unrealised"] == 20 * D("88.99") - cost


@pytest.mark.parametrize("session", ["2005-02-28", "2005-05-16"])
async def test_an_execution_killed_while_it_posts_leaves_nothing_and_the_next_posts_once(
    shipped, orchestrator, pool, servers, session
):
    """AAPL splits on 2005-02-28, MSFT pays a dividend on 2005-05-16."""
    desk = Desk(shipped, Prices(), orchestrator)
    decided = date(2005, 2, 24)
    await desk.open(decided)
    await desk.execute(desk.command({"AAPL": 20}, decided, price=D("88.93")))
    await desk.execute(desk.command({"MSFT": 50}, decided, price=D("25.37")))
    day = date.fromisoformat(session)
    await desk.open(exchange_calendar().previous_session(day))

    dsns = map(servers.postgres_dsn, (EXECUTION_ROLE, ORCHESTRATOR_ROLE))
    arguments = [*dsns, desk.account, session]
    killed = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.integration.execution.killed",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert killed.stdout is not None
        async with asyncio.timeout(60):
            while (await killed.stdout.readline()).strip() != b"posted":
                pass
    finally:
        killed.kill()
        await killed.wait()
    posted = "select count(*) from entries where account=$1 and session=$2"
    assert await pool.fetchval(posted, desk.account, day) == 0

    # The killed one's lock goes with its connection.
    await asyncio.gather(*(desk.open(day) for _ in range(3)))
    assert await pool.fetchval(posted, desk.account, day) == 1
    taken = "select count(*) from snapshots where account=$1 and session=$2"
    assert await pool.fetchval(taken, desk.account, day) == 1
    await assert_sound(pool, desk.account)


async def test_where_the_bundled_data_end_an_order_stays_working(shipped, orchestrator):
    desk = Desk(shipped, Prices(), orchestrator)
    last = date(2013, 3, 1)
    await desk.open(last)
    (order,) = (await desk.execute(desk.command({"IBM": 5}, last, price=D("202.91")))).orders
    assert order.status is OrderStatus.WORKING


async def test_without_an_address_of_postgres_the_service_says_what_to_set(tmp_path):
    with pytest.raises(NoDatabase, match="DESKBUS_POSTGRES_DSN"):
        async with service(Settings(data_dir=tmp_path)):
            pass
