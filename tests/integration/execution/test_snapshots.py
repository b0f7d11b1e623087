"""Snapshots of every session the clock passed, and a clock that only goes on."""

import asyncio
from datetime import date
from decimal import Decimal

import pytest

from libs.market.source import CorporateAction
from libs.postgres.pool import Pool, PostgresError, Record
from libs.runtime.errors import ClockBack
from services.execution.errors import NoPrice
from tests.integration.execution.conftest import FRIDAY, MONDAY, THURSDAY, TUESDAY
from tests.integration.execution.test_execution import assert_sound

D = Decimal
RACES = 20


async def snapshots(pool: Pool, account: str) -> dict[date, Record]:
    rows = await pool.fetch("select * from snapshots where account=$1 order by session", account)
    return {row["session"]: row for row in rows}


async def test_the_opening_has_a_snapshot_of_the_starting_cash(desk, pool):
    await desk.open()
    (row,) = (await snapshots(pool, desk.account)).values()
    assert (row["session"], row["cash"], row["equity"]) == (FRIDAY, 10_000, 10_000)
    assert (row["positions"], row["unrealised"], row["exposure_gross"]) == (0, 0, 0)


async def test_a_snapshot_shows_the_account_at_the_close_and_its_parts_sum_up(desk, pool):
    desk.prices.events = [CorporateAction("AAA", TUESDAY, D(1), D("0.25"))]
    desk.prices.closes |= {("AAA", MONDAY): D(11), ("AAA", TUESDAY): D(12)}
    desk.prices.opens["AAA", THURSDAY] = D(13)
    await desk.open()
    await desk.buy("AAA", 100)  # filled on Monday at 10, fee 1
    await desk.open(MONDAY)
    await desk.open(TUESDAY)  # a dividend of 25
    await desk.sell("AAA", 40, TUESDAY)  # filled on Thursday at 13, fee 0.52
    await desk.open(THURSDAY)
    taken = await snapshots(pool, desk.account)
    assert list(taken) == [FRIDAY, MONDAY, TUESDAY, THURSDAY]
    assert [taken[day]["equity"] for day in taken] == [
        10_000,
        D(8_999) + 1_100,
        D(9_024) + 1_200,
        D("9543.48") + 600,
    ]
    last = taken[THURSDAY]
    assert (last["realised"], last["unrealised"]) == (120, 0)
    assert (last["dividends"], last["fees"]) == (25, D("1.52"))
    assert last["exposure_gross"] == last["exposure_net"] == last["positions"] == 600
    for row in taken.values():
        parts = row["realised"] + row["unrealised"] + row["dividends"] - row["fees"]
        assert row["equity"] == 10_000 + parts


async def test_every_session_that_the_clock_jumps_over_has_its_snapshot(desk, pool):
    await desk.open()
    await desk.buy("AAA", 100)
    desk.prices.closes["AAA", TUESDAY] = D(7)
    last = date(2012, 9, 28)
    await desk.open(last)
    taken = await snapshots(pool, desk.account)
    assert list(taken) == list(desk.prices.calendar.sessions(FRIDAY, last))
    assert taken[TUESDAY]["equity"] == taken[MONDAY]["equity"] - 300
    # A fill at Monday's open is no part of what was known at Friday's close.
    assert taken[FRIDAY]["positions"] == 0


async def test_opening_again_and_opening_at_once_write_each_session_once(desk, pool):
    for _ in range(RACES):
        racing = desk.another()
        await racing.open()
        await racing.buy("AAA", 100)
        await asyncio.gather(*(racing.open(THURSDAY) for _ in range(4)))
        assert list(await snapshots(pool, racing.account)) == [FRIDAY, MONDAY, TUESDAY, THURSDAY]


async def test_a_session_without_an_exchange_rate_has_a_snapshot_that_says_so(desk, pool):
    desk.prices.euros, desk.prices.eurusd = {"AAA"}, {FRIDAY: D("1.25")}
    await desk.open()
    await desk.execute(desk.command({"AAA": 100}, price=D("12.5")))
    desk.prices.eurusd = {TUESDAY: D("1.25")}
    await desk.open(TUESDAY)
    taken = await snapshots(pool, desk.account)
    monday = taken[MONDAY]
    assert (monday["unpriced"], monday["cash"]) == (["AAA"], D("8748.75"))
    assert monday["equity"] is monday["positions"] is monday["unrealised"] is None
    assert taken[TUESDAY]["equity"] == D("9998.75")


async def test_a_failed_opening_leaves_no_snapshot_behind(desk, pool):
    await desk.open()
    await desk.buy("AAA", 100)
    desk.prices.ends = TUESDAY
    with pytest.raises(NoPrice):
        await desk.open(TUESDAY)
    assert list(await snapshots(pool, desk.account)) == [FRIDAY]


async def test_the_daily_loss_is_measured_from_the_snapshot_on_record(desk):
    desk.prices.closes["AAA", MONDAY] = D(11)
    await desk.open()
    await desk.buy("AAA", 100)
    await desk.open(MONDAY)
    desk.prices.closes["AAA", MONDAY] = D(99)  # a correction that came too late
    before = (await desk.open(TUESDAY)).before
    assert before is not None
    assert (before.session, before.equity.amount) == (MONDAY, D(8_999) + 1_100)


async def test_an_account_from_before_snapshots_gets_all_of_them_at_its_next_opening(
    desk, pool, owner
):
    await desk.open()
    await desk.buy("AAA", 100)
    await desk.open(TUESDAY)
    async with owner.acquire() as db, db.transaction():
        await db.execute("alter table snapshots disable trigger snapshots_append_only")
        await db.execute("delete from snapshots where account = $1", desk.account)
        await db.execute("alter table snapshots enable trigger snapshots_append_only")
    await desk.open(THURSDAY)
    assert list(await snapshots(pool, desk.account)) == [FRIDAY, MONDAY, TUESDAY, THURSDAY]


async def test_snapshots_are_never_changed_or_made_up(desk, pool):
    await desk.open()
    for statement in ("update snapshots set cash = 1", "delete from snapshots"):
        with pytest.raises(PostgresError, match="permission denied"):
            await pool.execute(statement)
    insert = (
        "insert into snapshots (account, session, cash, positions, equity, realised, unrealised,"
        " dividends, fees, paid_in, exposure_gross, exposure_net)"
        " values ($1, $2, 1, 2, $3, 0, 0, 0, 0, 3, 2, 2)"
    )
    with pytest.raises(PostgresError, match="snapshots_check"):
        await pool.execute(insert, desk.account, MONDAY, D(4))
    await pool.execute(insert, desk.account, MONDAY, D(3))
    with pytest.raises(PostgresError, match="snapshots_pkey"):
        await pool.execute(insert, desk.account, MONDAY, D(3))


# --- the clock ------------------------------------------------------------------------------------


async def test_the_same_session_and_a_later_one_are_taken_an_earlier_one_is_not(desk):
    await desk.open(MONDAY)
    assert (await desk.open(MONDAY)).as_of == MONDAY
    assert (await desk.open(TUESDAY)).as_of == TUESDAY
    with pytest.raises(ClockBack, match="another account"):
        await desk.open(MONDAY)
    with pytest.raises(ClockBack):
        await desk.buy("AAA", 1, MONDAY)
    assert (await desk.another().open(MONDAY)).as_of == MONDAY


async def test_openings_of_two_sessions_at_once_never_turn_the_clock_back(desk, pool):
    """Whichever comes second waits for the lock, and then sees what the first has done."""
    desk.prices.events = [CorporateAction("AAA", TUESDAY, D(2), D("0.25"))]
    desk.prices.opens["AAA", TUESDAY] = D(5)
    for _ in range(RACES):
        racing = desk.another()
        await racing.open()
        await racing.buy("AAA", 100)
        done = await asyncio.gather(
            *(racing.open(day) for day in (THURSDAY, MONDAY, TUESDAY)), return_exceptions=True
        )
        assert {type(each) for each in done[1:]} <= {ClockBack, type(done[0])}
        clock = await pool.fetchval("select clock from accounts where account=$1", racing.account)
        assert clock == THURSDAY
        kinds = await pool.fetch(
            "select kind, count(*) from entries where account=$1 group by kind", racing.account
        )
        assert dict(kinds) == {"open": 1, "fill": 1, "split": 1, "dividend": 1}
        assert list(await snapshots(pool, racing.account)) == [FRIDAY, MONDAY, TUESDAY, THURSDAY]
    await assert_sound(pool, racing.account)
