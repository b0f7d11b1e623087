"""The kill switch and the limits, in execution's own transaction on a real ledger."""

import asyncio
import os
from dataclasses import replace
from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest

from contracts.account import OrderStatus
from contracts.execution import ExecutionResult
from contracts.halt import HaltAnswer, HaltTrading, ResumeTrading
from libs.postgres.pool import EXECUTION_ROLE, Pool, PostgresError, open_pool
from libs.runtime.nearest import UnknownAccount
from services.execution.halt import halt_trading, resume_trading
from tests.integration.execution.conftest import FRIDAY, MONDAY, TUESDAY, WIDE, Desk
from tests.integration.execution.test_execution import assert_sound, books_of

D = Decimal
RACES = int(os.environ.get("RACES", "100"))
"""`make soak` runs 1,000."""


async def halted(pool: Pool, account: str | None, reason: str = "") -> HaltAnswer:
    return await halt_trading("cli", HaltTrading(account=account, reason=reason), pool=pool)


async def resumed(pool: Pool, account: str | None) -> HaltAnswer:
    return await resume_trading("user", ResumeTrading(account=account), pool=pool)


def limited(desk: Desk, **limits: Decimal) -> Desk:
    its = WIDE.model_copy(update=limits)
    return replace(desk, trading=replace(desk.trading, limits_of=lambda _: its))


async def test_a_halted_account_buys_nothing_sells_and_buys_again_once_resumed(desk, pool):
    await desk.open()
    await desk.buy("AAA", 100)
    await desk.open(MONDAY)
    await halted(pool, desk.account, "flash crash")
    result = await desk.execute(desk.command({"BBB": 50, "AAA": -40}, MONDAY))
    sale, buy = result.orders
    assert (sale.side.value, sale.status) == ("sell", OrderStatus.FILLED)
    assert buy.status is OrderStatus.REJECTED
    assert buy.reason.startswith("halted: cli halted buys of account")
    assert "flash crash" in buy.reason
    await resumed(pool, desk.account)
    (later,) = (await desk.buy("BBB", 50, MONDAY)).orders
    assert later.status is OrderStatus.FILLED
    await assert_sound(pool, desk.account)


async def test_a_refused_buy_is_an_event_with_the_reason(desk, pool, postgres):
    await desk.open()
    await halted(pool, desk.account)
    (order,) = (await desk.buy("AAA", 50)).orders
    rows = await postgres.fetch(
        "select type, data ->> 'reason' as reason from state_events where op_id = $1",
        order.order_id,
    )
    assert [row["type"] for row in rows] == ["order_rejected"]
    assert rows[0]["reason"].startswith("halted: ")


async def test_the_books_say_that_the_account_is_halted_so_risk_can_explain_it(desk, pool):
    await desk.open()
    await halted(pool, desk.account, "lunch")
    halt = (await desk.open()).halt
    assert halt is not None
    assert (halt.account, halt.by, halt.reason) == (desk.account, "cli", "lunch")
    await resumed(pool, desk.account)
    assert (await desk.open()).halt is None


async def test_a_halt_of_one_account_leaves_the_others_alone(desk, pool):
    other = desk.another()
    await desk.open()
    await other.open()
    await halted(pool, desk.account)
    assert (await desk.buy("AAA", 50)).fills == ()
    assert len((await other.buy("AAA", 50)).fills) == 1


async def test_a_halt_of_all_covers_accounts_opened_later_and_ends_by_itself_only(desk, pool):
    await desk.open()
    await halted(pool, desk.account)
    try:
        await halted(pool, None, "everything")
        later = desk.another()
        await later.open()
        assert (await later.buy("AAA", 50)).fills == ()
    finally:
        answer = await resumed(pool, None)
    assert [halt.account for halt in answer.halts if halt.account == desk.account]
    assert None not in {halt.account for halt in answer.halts}
    assert len((await later.buy("BBB", 50)).fills) == 1
    assert (await desk.buy("AAA", 50)).fills == ()
    await resumed(pool, desk.account)


async def test_asking_again_changes_nothing_and_keeps_the_first_reason(desk, pool):
    await desk.open()
    first = await halted(pool, desk.account, "first")
    again = await halted(pool, desk.account, "second")
    assert (first.changed, again.changed) == (True, False)
    assert again.halts == first.halts
    assert (await resumed(pool, desk.account)).changed
    assert not (await resumed(pool, desk.account)).changed


async def test_a_mistyped_account_is_refused_and_the_known_ones_are_named(desk, pool):
    await desk.open()
    with pytest.raises(UnknownAccount, match="there is: ") as refused:
        await halted(pool, "nobody")
    assert refused.value.code == "unknown_account"
    named = refused.value.message.partition("there is: ")[2].partition(" ")[0].strip(",;)")
    assert await pool.fetchval("select true from accounts where account = $1", named)


async def test_every_change_is_on_record_and_told_as_an_event(desk, pool, postgres):
    await desk.open()
    await halted(pool, desk.account, "why")
    await resumed(pool, desk.account)
    rows = await postgres.fetch(
        "select type, owner, data ->> 'by' as by from state_events"
        " where data ->> 'account' = $1 and type like 'trading_%' order by id",
        desk.account,
    )
    assert [tuple(row) for row in rows] == [
        ("trading_halted", "execution", "cli"),
        ("trading_resumed", "execution", "user"),
    ]
    for statement in ("delete from halt_changes", "update halt_changes set halted = false"):
        with pytest.raises(PostgresError, match="permission denied"):
            await pool.execute(statement)


async def test_a_halt_survives_a_restart_of_execution(desk, pool, servers):
    await desk.open()
    await halted(pool, desk.account)
    async with open_pool(servers.postgres_dsn(EXECUTION_ROLE)) as fresh:
        again = replace(desk, trading=replace(desk.trading, pool=fresh))
        assert (await again.buy("AAA", 50)).orders[0].status is OrderStatus.REJECTED


async def test_a_working_buy_that_comes_due_while_halted_is_cancelled_and_frees_its_hold(
    desk, pool
):
    desk.prices.last = FRIDAY
    await desk.open()
    assert (await desk.buy("AAA", 100)).orders[0].status is OrderStatus.WORKING
    await halted(pool, desk.account)
    desk.prices.last = MONDAY
    monday = await desk.open(MONDAY)
    assert monday.positions == monday.open_orders == ()
    row = await pool.fetchrow("select status, reason from orders where account=$1", desk.account)
    assert row["status"] == "cancelled"
    assert row["reason"].startswith("halted: ")
    await assert_sound(pool, desk.account)


async def test_a_working_sale_that_comes_due_while_halted_is_filled(desk, pool):
    await desk.open()
    await desk.buy("AAA", 100)
    await desk.open(MONDAY)
    desk.prices.last = MONDAY
    await desk.sell("AAA", 100, MONDAY)
    await halted(pool, desk.account)
    desk.prices.last = TUESDAY
    assert (await desk.open(TUESDAY)).positions == ()


async def test_the_database_itself_refuses_a_buy_while_halted(desk, pool):
    await desk.open()
    command = desk.command({"AAA": 10})
    await halted(pool, desk.account)
    insert = (
        "insert into orders (order_id, account, cycle_id, started_on, op_id, pipeline, ticker,"
        " sector, side, type, quantity, hold, status, as_of)"
        " values ($1, $2, $3, current_date, $1, 'rules', 'AAA', '', $4, 'market', 1, 0, $5, $6)"
    )

    async def place(number: int, side: str, status: str) -> None:
        await pool.execute(
            insert, UUID(int=number), desk.account, command.cycle_id, side, status, FRIDAY
        )

    for number, status in enumerate(("working", "filled")):
        with pytest.raises(PostgresError, match="is halted"):
            await place(number, "buy", status)
    await place(3, "buy", "rejected")
    await place(4, "sell", "working")


async def test_a_halt_waits_for_the_buy_under_way_and_none_commits_after_its_answer(desk, pool):
    await desk.open()
    answered = asyncio.Event()

    async def halt() -> None:
        await halted(pool, desk.account)
        answered.set()

    async with pool.acquire() as db, db.transaction():
        await db.execute("select hold_halts()")
        task = asyncio.create_task(halt())
        waiting = (
            "select count(*) from pg_locks where relation = 'halt_lock'::regclass and not granted"
        )
        async with asyncio.timeout(10):
            while not await db.fetchval(waiting):
                pass  # every look is a turn of the loop
        assert not answered.is_set()
    await task
    assert (await desk.buy("AAA", 10)).fills == ()


async def test_buys_that_race_with_a_halt_are_all_placed_before_it_or_not_at_all(desk, pool):
    await desk.open()
    commands = [desk.command({f"T{n}": 50}) for n in range(8)]

    async def halt() -> int:
        await halted(pool, desk.account)
        count: int = await pool.fetchval(
            "select count(*) from fills f join orders using (order_id) where account=$1",
            desk.account,
        )
        return count

    *results, at_halt = await asyncio.gather(*map(desk.execute, commands), halt())
    assert sum(len(result.fills) for result in results) == at_halt
    await assert_sound(pool, desk.account)


async def lose(desk: Desk, price: str) -> None:
    """Hold 400 of AAA, bought at 10 on Monday's open; Monday closes at 10, Tuesday at `price`."""
    await desk.open()
    await desk.buy("AAA", 400)
    await desk.open(MONDAY)
    desk.prices.closes["AAA", TUESDAY] = D(price)


@pytest.mark.parametrize(("price", "bought"), [("8.7555", True), ("8.75", False)])
async def test_a_loss_beyond_the_daily_limit_stops_buys_and_lets_sales_pass(
    desk, pool, price, bought
):
    # Monday's close: 10,000 less the fee of 4. Five percent of that are 499.80, 1.2495 a share.
    await lose(desk, price)
    tuesday = await desk.open(TUESDAY)
    assert tuesday.before is not None
    assert (tuesday.before.session, tuesday.before.equity.amount) == (MONDAY, D(9_996))
    result = await desk.execute(desk.command({"BBB": 10, "AAA": -400}, TUESDAY))
    sale, buy = result.orders
    assert sale.status is OrderStatus.FILLED
    assert (buy.status is OrderStatus.FILLED) is bought
    if not bought:
        assert "daily_loss" in buy.reason
        assert "since 2012-07-02" in buy.reason
    await assert_sound(pool, desk.account)


async def test_the_loss_is_of_one_session_also_after_days_without_a_cycle(desk):
    await lose(desk, "5")
    desk.prices.default = D(5)
    thursday = date(2012, 7, 5)
    books = await desk.open(thursday)  # Tuesday closed at 5 too: nothing was lost on Thursday
    assert books.before is not None
    assert books.before.equity == books.equity
    command = desk.command({"BBB": 10}, thursday, price=D(5))
    assert len((await desk.execute(command)).fills) == 1


async def test_where_nobody_can_value_yesterday_buys_stop_and_the_books_open(desk):
    desk.prices.euros, desk.prices.eurusd = {"AAA"}, {FRIDAY: D("1.25")}
    await desk.open()
    await desk.execute(desk.command({"AAA": 100}, price=D("12.5")))
    desk.prices.eurusd = {TUESDAY: D("1.25")}
    tuesday = await desk.open(TUESDAY)
    assert tuesday.before is not None
    assert tuesday.before.equity is None
    (order,) = (await desk.buy("BBB", 10, TUESDAY)).orders
    assert order.status is OrderStatus.REJECTED
    assert "what was held on 2012-07-02 could not be valued" in order.reason


async def test_an_account_opened_today_has_no_session_before(desk):
    assert (await desk.open()).before is None


@pytest.mark.parametrize(
    ("limit", "rule"),
    [
        ("order_pct_max", "order_size"),
        ("position_pct_max", "position_size"),
        ("gross_exposure_pct_max", "gross_exposure"),
    ],
)
async def test_each_size_limit_cuts_in_executions_own_transaction(desk, limit, rule):
    tight = limited(desk, **{limit: D(10)})
    await tight.open()
    kept, cut = [(await tight.execute(tight.command({t: n}))).orders[0] for t, n in SIZES[rule]]
    assert (kept.quantity, kept.reason) == (100 if rule != "gross_exposure" else 60, "")
    assert cut.quantity == (100 if rule != "gross_exposure" else 39)
    assert rule in cut.reason


SIZES = {
    "order_size": [("AAA", 100), ("BBB", 101)],
    "position_size": [("AAA", 100), ("BBB", 101)],
    "gross_exposure": [("AAA", 60), ("BBB", 60)],  # the first holds 1% more until it is known
}


async def test_limits_come_from_the_settings_of_today_and_what_they_were_is_kept(desk, pool):
    await desk.open()
    tight = limited(desk, position_pct_max=D(5))
    assert (await tight.buy("AAA", 100)).orders[0].quantity == 50
    assert (await tight.open()).limits.position_pct_max == 5
    rows = await pool.fetch("select limits from limit_changes where account=$1", desk.account)
    assert len(rows) == 1


async def test_two_executions_racing_on_one_account_never_overdraw_it(desk, pool):
    """Two, each wanting 80% of the cash, time and again; each command comes twice at once."""
    for _ in range(RACES):
        racing = desk.another()
        await racing.open()
        commands = [racing.command({f"T{n}A": 400, f"T{n}B": 400}) for n in range(2)]
        results: list[ExecutionResult] = await asyncio.gather(
            *(racing.execute(command) for command in (*commands, *commands))
        )
        assert results[:2] == results[2:]
        cash = (await books_of(pool, racing.account))["cash"]
        fills = [fill for result in results[:2] for fill in result.fills]
        spent = sum(f.price.amount * f.quantity + f.fee.amount for f in fills)
        assert cash == D(10_000) - spent >= 0
        placed = await pool.fetch("select order_id from orders where account=$1", racing.account)
        asked = {order.order_id for result in results for order in result.orders}
        assert {row["order_id"] for row in placed} == asked
        assert len(placed) == len(asked) == 4


async def test_an_account_is_halted_however_many_others_there_are(desk, pool):
    await pool.execute(
        "insert into accounts (account, currency, clock, starting_cash, limits, opened_on)"
        " select 'crowd' || n, 'USD', $1, 1, '{}', $1 from generate_series(1, 300) n",
        FRIDAY,
    )
    await desk.open()
    assert (await halted(pool, desk.account)).changed
    with pytest.raises(UnknownAccount, match=r"there is: .* more\)") as refused:
        await halted(pool, "nobody")
    assert len(refused.value.message) < 1_000
