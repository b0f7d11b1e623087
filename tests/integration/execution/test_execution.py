"""Execution on a real ledger: once, within the cash, on the right day, and balanced."""

import asyncio
import random
from datetime import date
from decimal import Decimal
from uuid import uuid4

import pytest

from contracts.account import OrderStatus, Portfolio, PortfolioQuery, Side
from contracts.types import Money
from libs.market.errors import NotASession
from libs.market.source import CorporateAction
from libs.postgres.pool import CONSOLE_ROLE, ORCHESTRATOR_ROLE, Pool, PostgresError, open_pool
from libs.runtime.errors import ClockBack, NotOnRecord
from libs.servers.embedded import Servers
from services.execution import store
from services.execution.approvals import ProposalChanged
from services.execution.errors import BooksNotOpen, NoPrice
from services.execution.handler import show_portfolio
from tests.integration.execution.conftest import FRIDAY, MONDAY, THURSDAY, TUESDAY

D = Decimal
RACES = 100


async def books_of(pool: Pool, account: str) -> dict[str, Decimal]:
    rows = await pool.fetch(
        "select book, sum(amount) as amount from postings where account = $1 group by book", account
    )
    return {row["book"]: row["amount"] for row in rows}


async def assert_sound(pool: Pool, account: str) -> None:
    """Balanced, no debt, and every kept sum equal to what was posted and filled."""
    assert sum((await books_of(pool, account)).values()) == 0
    kept = await pool.fetch(
        "select book, ticker, amount, quantity from balances where account = $1", account
    )
    summed = await pool.fetch(
        "select book, coalesce(ticker, '') as ticker, sum(amount) as amount,"
        " sum(quantity) as quantity from postings where account = $1 group by 1, 2",
        account,
    )
    assert {tuple(row) for row in kept} == {tuple(row) for row in summed}
    assert all(row["amount"] >= 0 for row in kept if row["book"] == "cash")
    unbalanced = await pool.fetchval(
        "select count(*) from (select entry_id from postings where account = $1"
        " group by entry_id having sum(amount) <> 0) x",
        account,
    )
    assert unbalanced == 0


async def test_an_account_opens_with_its_starting_cash_and_is_marked_at_the_close(desk, pool):
    books = await desk.open()
    assert books.cash == Money(amount=D(10_000))
    assert books.equity == books.cash
    assert books.positions == books.open_orders == ()
    assert await books_of(pool, desk.account) == {"cash": D(10_000), "capital": D(-10_000)}


async def test_a_buy_fills_at_the_next_open_with_its_fee(desk, pool):
    desk.prices.opens["AAA", MONDAY] = D("10.50")
    await desk.open()
    result = await desk.buy("AAA", 100)
    (order,), (fill,) = result.orders, result.fills
    assert order.status is OrderStatus.FILLED
    assert (fill.price.amount, fill.quantity, fill.session) == (D("10.5"), D(100), MONDAY)
    assert fill.fee.amount == D("1.05")
    assert result.cash_before.amount - result.cash_after.amount == D("1051.05")
    assert await books_of(pool, desk.account) == {
        "cash": D("8948.95"),
        "capital": D(-10_000),
        "position": D("1050.00"),
        "fees": D("1.05"),
    }
    await assert_sound(pool, desk.account)


async def test_the_same_command_gets_the_same_answer_and_places_nothing_again(desk, pool):
    await desk.open()
    command = desk.command({"AAA": 100, "BBB": 50})
    first, *others = [await desk.execute(command) for _ in range(3)]
    assert others == [first, first]
    assert await pool.fetchval("select count(*) from orders where account=$1", desk.account) == 2


async def test_one_command_delivered_at_the_same_time_many_times_is_executed_once(desk, pool):
    await desk.open()
    command = desk.command({"AAA": 100})
    results = await asyncio.gather(*(desk.execute(command) for _ in range(6)))
    assert all(result == results[0] for result in results)
    assert (
        await pool.fetchval(
            "select count(*) from fills f join orders using (order_id) where account=$1",
            desk.account,
        )
        == 1
    )


async def test_the_same_operation_with_other_decisions_is_not_the_one_on_record(desk):
    await desk.open()
    cycle = uuid4()
    await desk.execute(desk.command({"AAA": 100}, cycle=cycle))
    with pytest.raises(NotOnRecord, match="is not the one that was sent"):
        await desk.execute(desk.command({"AAA": 50}, cycle=cycle))


async def test_decisions_that_do_not_have_the_validated_hash_are_refused(desk, pool):
    await desk.open()
    command = desk.command({"AAA": 100})
    decision = command.decision_validation.decisions[0]
    larger = command.decision_validation.model_copy(
        update={"decisions": (decision.model_copy(update={"quantity": D(400)}),)}
    )
    with pytest.raises(ProposalChanged):
        await desk.execute(command.model_copy(update={"decision_validation": larger}))
    assert await pool.fetchval("select count(*) from orders where account=$1", desk.account) == 0


async def test_two_executions_that_race_for_the_same_cash_never_overdraw_it(desk, pool):
    for _ in range(RACES):
        racing = desk.another()
        await racing.open()
        # Each wants 40% on its own; the third in line finds the cash spent.
        commands = [racing.command({f"T{n}A": 400, f"T{n}B": 400}) for n in range(2)]
        results = await asyncio.gather(*(racing.execute(command) for command in commands))
        cash = (await books_of(pool, racing.account))["cash"]
        spent = sum(f.price.amount * f.quantity + f.fee.amount for r in results for f in r.fills)
        assert cash == D(10_000) - spent >= 0
        assert min(r.cash_after.amount for r in results) == cash
        placed = await pool.fetch("select order_id from orders where account=$1", racing.account)
        assert len(placed) == len({o.order_id for r in results for o in r.orders}) == 4
    await assert_sound(pool, racing.account)


async def test_a_repeat_that_races_with_other_commands_still_places_each_order_once(desk, pool):
    await desk.open()
    commands = [desk.command({f"T{n}": 50}) for n in range(4)]
    results = await asyncio.gather(*(desk.execute(c) for c in commands * 3))
    assert results[:4] == results[4:8] == results[8:]
    assert await pool.fetchval("select count(*) from orders where account=$1", desk.account) == 4
    await assert_sound(pool, desk.account)


@pytest.mark.parametrize("statement", ["insert_order", "insert_entry", "insert_fill", "answer"])
async def test_a_crash_at_any_point_leaves_nothing_and_the_repeat_does_all(
    desk, pool, monkeypatch, statement
):
    """The task is cancelled while its transaction stands right after the statement."""
    await desk.open()
    reached = asyncio.Event()
    real_write, real_keep = store.write, store.keep_execution

    class Halting:
        def __init__(self, db):
            self._db = db

        def __getattr__(self, name):
            return getattr(self._db, name)

        async def execute(self, query, *values):
            done = await self._db.execute(query, *values)
            if query == getattr(store.sql, statement):
                reached.set()
                await asyncio.Event().wait()
            return done

    async def halting_write(db, changes):
        await real_write(db if statement == "answer" else Halting(db), changes)

    async def halting_keep(db, sha256, result):
        await real_keep(db, sha256, result)
        reached.set()
        await asyncio.Event().wait()

    command = desk.command({"AAA": 100})
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", halting_write)
        patch.setattr(store, "keep_execution", halting_keep)
        task = asyncio.create_task(desk.execute(command))
        await asyncio.wait_for(reached.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await pool.fetchval("select count(*) from orders where account=$1", desk.account) == 0
    assert set(await books_of(pool, desk.account)) == {"cash", "capital"}
    result = await desk.execute(command)
    assert len(result.fills) == 1
    await assert_sound(pool, desk.account)


async def test_a_gap_up_at_the_open_cuts_the_buy_to_the_cash_and_says_so(desk, pool):
    await desk.open()
    desk.prices.opens["BBB", MONDAY] = D(12)
    result = await desk.execute(desk.command({"AAA": 400, "BBB": 390, "CCC": 190}))
    assert [f.quantity for f in result.fills] == [400, 390, 131]
    assert "cut from 190 to 131 shares: the cash" in result.orders[2].reason
    assert 0 <= result.cash_after.amount < D("10.01")
    await assert_sound(pool, desk.account)


async def test_a_buy_that_the_rules_no_longer_allow_is_rejected_with_the_reason(desk, pool):
    desk.prices.closes["AAA", FRIDAY] = D("10.51")
    await desk.open()
    (order,) = (await desk.buy("AAA", 100)).orders
    assert order.status is OrderStatus.REJECTED
    assert "price_drift" in order.reason
    assert set(await books_of(pool, desk.account)) == {"cash", "capital"}


async def test_the_rules_at_execution_cut_to_the_limits_of_the_account_as_it_is(desk):
    await desk.open()
    (order,) = (await desk.buy("AAA", 900)).orders
    assert order.quantity == 400
    assert "cut from 900 to 400" in order.reason


async def test_a_second_cycle_of_the_day_sees_the_first_ones_order_and_not_its_fill(desk):
    desk.prices.opens["AAA", MONDAY] = D("10.50")
    await desk.open()
    await desk.buy("AAA", 100)
    again = await desk.open()
    assert again.cash.amount == 10_000
    assert again.positions == ()
    assert [(o.asset, o.hold.amount) for o in again.open_orders] == [("AAA", D(1010))]
    (order,) = (await desk.buy("AAA", 100)).orders
    assert order.status is OrderStatus.REJECTED
    assert "no_doubling_down" in order.reason


async def test_the_next_session_knows_the_fill_and_marks_it_at_its_close(desk):
    desk.prices.opens["AAA", MONDAY] = D("10.50")
    desk.prices.closes["AAA", MONDAY] = D(11)
    await desk.open()
    await desk.buy("AAA", 100)
    monday = await desk.open(MONDAY)
    (position,) = monday.positions
    assert (position.quantity, position.average_cost.amount) == (100, D("10.5"))
    assert position.price.amount == 11
    assert position.sector == "of AAA"
    assert monday.equity.amount == D("8948.95") + 1100
    assert monday.open_orders == ()


async def test_a_sale_is_paid_less_its_fee_and_books_the_gain(desk, pool):
    await desk.open()
    await desk.buy("AAA", 100)
    desk.prices.closes["AAA", MONDAY] = D(12)
    desk.prices.opens["AAA", TUESDAY] = D(12)
    await desk.open(MONDAY)
    result = await desk.sell("AAA", 40, MONDAY)
    (fill,) = result.fills
    assert (fill.side, fill.quantity, fill.session) == (Side.SELL, D(40), TUESDAY)
    books = await books_of(pool, desk.account)
    assert books["realised"] == -80
    assert books["position"] == 600
    await assert_sound(pool, desk.account)


async def test_more_than_is_held_is_never_sold(desk, pool):
    await desk.open()
    await desk.buy("AAA", 100)
    await desk.open(MONDAY)
    (order,) = (await desk.sell("AAA", 500, MONDAY)).orders
    assert order.quantity == 100
    (second,) = (await desk.sell("AAA", 1, MONDAY)).orders
    assert second.status is OrderStatus.REJECTED
    await assert_sound(pool, desk.account)


async def test_an_earlier_session_is_refused_and_the_message_names_the_way_out(desk):
    await desk.open(MONDAY)
    with pytest.raises(ClockBack, match="another account") as refused:
        await desk.open(FRIDAY)
    assert refused.value.code == "clock_back"
    with pytest.raises(ClockBack):
        await desk.buy("AAA", 1, FRIDAY)
    assert (await desk.open(MONDAY)).cash.amount == 10_000


async def test_the_database_too_refuses_a_clock_that_goes_back(desk, pool):
    await desk.open(MONDAY)
    with pytest.raises(PostgresError, match="never goes back"):
        await pool.execute(
            "update accounts set clock = $2 where account = $1", desk.account, FRIDAY
        )


async def test_a_day_without_a_session_is_refused(desk):
    with pytest.raises(NotASession):
        await desk.open(date(2012, 7, 4))


async def test_executing_before_the_books_are_open_is_refused(desk):
    with pytest.raises(BooksNotOpen):
        await desk.buy("AAA", 1)
    await desk.open(FRIDAY)
    with pytest.raises(BooksNotOpen):
        await desk.buy("AAA", 1, MONDAY)


async def test_where_the_data_end_the_order_works_holds_cash_and_is_filled_later(
    desk, pool, servers
):
    desk.prices.last = FRIDAY
    await desk.open()
    result = await desk.buy("AAA", 100)
    (order,) = result.orders
    assert order.status is OrderStatus.WORKING
    assert result.fills == ()
    (waiting,) = (await desk.open()).open_orders
    assert waiting.hold.amount == D(1010)
    desk.prices.last = MONDAY
    desk.prices.opens["AAA", MONDAY] = D("9.90")
    monday = await desk.open(MONDAY)
    assert [p.ticker for p in monday.positions] == ["AAA"]
    assert monday.cash.amount == D(10_000) - D("990.99")
    row = await pool.fetchrow("select status, reason from orders where account=$1", desk.account)
    assert tuple(row) == ("filled", "")
    async with open_pool(servers.postgres_dsn(CONSOLE_ROLE)) as console:
        events = await console.fetch(
            "select seq, type from state_events where op_id = $1 order by seq", order.order_id
        )
    assert [tuple(row) for row in events] == [(0, "order_placed"), (1, "order_filled")]
    await assert_sound(pool, desk.account)


async def test_an_order_whose_session_passed_without_an_open_is_cancelled(desk, pool):
    desk.prices.last = FRIDAY
    await desk.open()
    await desk.buy("AAA", 100)
    tuesday = await desk.open(TUESDAY)
    assert tuesday.open_orders == ()
    assert tuesday.cash.amount == 10_000
    row = await pool.fetchrow("select status, reason from orders where account=$1", desk.account)
    assert row["status"] == "cancelled"
    assert str(MONDAY) in row["reason"]


async def test_what_working_orders_hold_is_not_spent_by_another(desk, pool):
    desk.prices.last = FRIDAY
    await desk.open()
    orders = [(await desk.buy(f"T{n}", 400)).orders[0] for n in range(4)]
    held = [o.quantity for o in orders if o.status is OrderStatus.WORKING]
    assert held[:2] == [400, 400]
    assert sum(held) * D("10.10") <= 10_000
    desk.prices.last = MONDAY
    desk.prices.default = D("10.05")
    await desk.open(MONDAY)
    await assert_sound(pool, desk.account)


async def test_a_fill_does_not_spend_what_a_working_order_holds(desk, pool):
    desk.prices.opens["AAA", MONDAY] = None
    desk.prices.opens["BBB", MONDAY] = D(14)
    await desk.open()
    result = await desk.execute(desk.command({"AAA": 400, "BBB": 390, "CCC": 190}))
    waiting, *filled = result.orders
    assert waiting.status is OrderStatus.WORKING
    assert result.cash_after.amount >= D(4040)
    assert [o.quantity for o in filled] == [390, 49]
    await assert_sound(pool, desk.account)


async def test_a_dividend_is_paid_on_the_shares_held_before_the_ex_date(desk, pool):
    desk.prices.events = [
        CorporateAction("AAA", MONDAY, D(1), D("0.25")),
        CorporateAction("AAA", TUESDAY, D(1), D("0.50")),
    ]
    await desk.open()
    await desk.buy("AAA", 100)  # filled on Monday: too late for Monday's dividend
    await desk.open(MONDAY)
    await desk.sell("AAA", 100, MONDAY)  # sold on Tuesday: Tuesday's is still due
    await desk.open(TUESDAY)
    await desk.open(THURSDAY)
    assert (await books_of(pool, desk.account))["dividends"] == D("-50.00")
    await assert_sound(pool, desk.account)


async def test_a_split_changes_shares_and_leaves_cost_and_balance_alone(desk, pool):
    await desk.open()
    await desk.buy("AAA", 101)
    desk.prices.events = [CorporateAction("AAA", TUESDAY, D("1.5"), D(0))]
    desk.prices.opens["AAA", TUESDAY] = D(7)
    await desk.open(MONDAY)
    (position,) = (await desk.open(TUESDAY)).positions
    assert position.quantity == D("151.5")
    books = await books_of(pool, desk.account)
    assert books["cash"] == D(10_000) - D("1011.01")
    await assert_sound(pool, desk.account)


async def test_a_buy_is_of_whole_lots_and_what_is_held_says_its_lot(desk, pool):
    desk.prices.lots = {"AAA": 100, "BBB": 100}
    await desk.open()
    result = await desk.execute(desk.command({"AAA": 137, "BBB": 90}))
    orders = {order.asset: order for order in result.orders}
    assert (orders["AAA"].status, orders["AAA"].quantity) == (OrderStatus.FILLED, 100)
    assert orders["BBB"].status is OrderStatus.REJECTED
    assert "below one lot (100 shares = 1,000.00 USD)" in orders["BBB"].reason
    (position,) = (await desk.open(MONDAY)).positions
    assert (position.quantity, position.lot) == (100, 100)
    await assert_sound(pool, desk.account)


async def test_orders_over_a_split_trade_the_new_shares_and_the_split_is_posted_once(desk, pool):
    desk.prices.events = [CorporateAction("AAA", TUESDAY, D(2), D(0))]
    desk.prices.opens["AAA", TUESDAY] = D(5)
    await desk.open()
    await desk.buy("AAA", 100)
    await desk.open(MONDAY)
    (order,) = (await desk.sell("AAA", 50, MONDAY)).orders
    assert order.quantity == 100
    assert "split" in order.reason
    (position,) = (await desk.open(TUESDAY)).positions
    assert position.quantity == 100
    assert position.average_cost.amount == 5
    await assert_sound(pool, desk.account)


async def test_a_session_that_the_whole_source_has_no_prices_of_is_a_typed_failure(desk, pool):
    await desk.open()
    await desk.buy("AAA", 100)
    desk.prices.ends = MONDAY
    with pytest.raises(NoPrice, match=f"no prices of {MONDAY} at all"):
        await desk.open(MONDAY)
    clock = await pool.fetchval("select clock from accounts where account = $1", desk.account)
    assert clock == FRIDAY


async def test_the_portfolio_of_an_earlier_day_can_still_be_shown(desk):
    await desk.open()
    await desk.buy("AAA", 100)
    await desk.open(TUESDAY)

    async def shown(as_of):
        query = PortfolioQuery(
            cycle_id=uuid4(), pipeline="rules", account=desk.account, as_of=as_of
        )
        return await show_portfolio(query, trading=desk.trading)

    friday, tuesday = await shown(FRIDAY), await shown(TUESDAY)
    assert friday.cash.amount == 10_000
    assert [o.asset for o in friday.open_orders] == ["AAA"]
    assert [p.ticker for p in tuesday.positions] == ["AAA"]


async def test_execution_tells_of_each_order_once(desk, servers):
    await desk.open()
    command = desk.command({"AAA": 100, "NIL": -5})
    result = await desk.execute(command)
    await desk.execute(command)
    async with open_pool(servers.postgres_dsn(CONSOLE_ROLE)) as console:
        rows = await console.fetch(
            "select type, seq, owner, session_id, data->>'status' as status, op_id, started_on"
            " from state_events where cycle_id = $1 order by op_id, seq",
            command.cycle_id,
        )
    told = {(row["op_id"], row["seq"]): row for row in rows}
    filled, rejected = (
        next(o.order_id for o in result.orders if o.asset == asset) for asset in ("AAA", "NIL")
    )
    assert set(told) == {(filled, 0), (filled, 1), (rejected, 1)}
    assert told[filled, 0]["type"] == "order_placed"
    assert told[filled, 1]["type"] == "order_filled"
    assert told[rejected, 1]["type"] == "order_rejected"
    assert told[rejected, 1]["status"] == "rejected"
    assert {row["session_id"] for row in rows} == {f"{desk.account}/{FRIDAY}"}
    assert {row["started_on"] for row in rows} == {command.now.date()}


SESSIONS = (FRIDAY, MONDAY, TUESDAY, THURSDAY, date(2012, 7, 6), date(2012, 7, 9))


@pytest.mark.parametrize("seed", range(12))
async def test_the_ledger_balances_after_random_days(desk, pool, seed):
    """Orders, repeats, gaps, missing opens, splits and dividends in random order."""
    rng = random.Random(seed)
    tickers = ("AAA", "BBB", "CCC")
    for session in SESSIONS:
        for ticker in tickers:
            missing = rng.random() < 0.15
            desk.prices.opens[ticker, session] = (
                None if missing else D(rng.randrange(500, 2_000)) / 100
            )
            if not missing and rng.random() < 0.2:
                ratio = rng.choice([D(1), D(2), D("1.5"), D("0.1")])
                desk.prices.events.append(
                    CorporateAction(ticker, session, ratio, rng.choice([D(0), D("0.33")]))
                )
    for session in SESSIONS:
        desk.prices.last = SESSIONS[-1]
        shown = await desk.open(session)
        await assert_holdings_are_fills_and_splits(pool, desk.account, shown.as_of, shown)
        desk.prices.last = rng.choice([session, SESSIONS[-1]])
        commands = [
            desk.command({t: rng.randrange(-300, 300) or 1 for t in tickers}, session)
            for _ in range(2)
        ]
        await asyncio.gather(*(desk.execute(c) for c in [*commands, commands[0]]))
        await assert_sound(pool, desk.account)


async def assert_holdings_are_fills_and_splits(
    pool: Pool, account: str, as_of: date, shown: Portfolio
) -> None:
    """What the portfolio shows is the sum of fills and splits up to as_of, nothing else."""
    rows = await pool.fetch(
        "select ticker, sum(q) as q from ("
        " select o.ticker, case o.side when 'buy' then f.quantity else -f.quantity end as q"
        "  from fills f join orders o using (order_id) where o.account=$1 and f.session <= $2"
        " union all"
        " select p.ticker, p.quantity from postings p join entries e using (entry_id)"
        "  where e.account=$1 and e.kind='split' and p.book='position' and e.session <= $2"
        ") x group by ticker",
        account,
        as_of,
    )
    assert {p.ticker: p.quantity for p in shown.positions} == {
        row["ticker"]: row["q"] for row in rows if row["q"] != 0
    }


ENTRY = (
    "insert into entries (account, key, kind, session) values ($1, $2, 'fill', $3)"
    " returning entry_id"
)
POSTING = "insert into postings (entry_id, line, account, book, amount) values ($1, $2, $3, $4, $5)"


async def post(pool: Pool, account: str, **amounts: Decimal) -> None:
    """One entry, committed."""
    async with pool.acquire() as db, db.transaction():
        entry = await db.fetchval(ENTRY, account, "test", FRIDAY)
        for line, (book, amount) in enumerate(amounts.items()):
            await db.execute(POSTING, entry, line, account, book, amount)


async def test_the_database_refuses_an_unbalanced_entry(desk, pool):
    await desk.open()
    with pytest.raises(PostgresError, match="not balanced"):
        await post(pool, desk.account, cash=D("-5.00"), fees=D("4.99"))
    await assert_sound(pool, desk.account)


async def test_the_database_refuses_an_empty_entry_and_lines_added_later(desk, pool):
    await desk.open()
    with pytest.raises(PostgresError, match="not balanced"):
        await pool.fetchval(ENTRY, desk.account, "empty", FRIDAY)
    entry = await pool.fetchval("select entry_id from entries where account=$1", desk.account)
    with pytest.raises(PostgresError, match="not balanced"):
        await pool.execute(POSTING, entry, 3, desk.account, "cash", D(1))


async def test_the_database_refuses_cash_below_zero(desk, pool):
    await desk.open()
    with pytest.raises(PostgresError, match="cash_not_negative"):
        await post(pool, desk.account, cash=D(-10_001), fees=D(10_001))


async def test_history_cannot_be_changed_even_by_execution(desk, pool):
    await desk.open()
    await desk.buy("AAA", 10)
    for statement in (
        "update postings set amount = 0",
        "delete from postings",
        "delete from entries",
        "update fills set price = 1",
        "delete from orders",
        "update executions set result = '{}'",
        "update balances set amount = 0",
        "truncate postings",
        "update accounts set limits = '{}'",
    ):
        with pytest.raises(PostgresError, match="permission denied"):
            await pool.execute(statement)
    with pytest.raises(PostgresError, match="stays so"):
        await pool.execute("update orders set status='working' where account=$1", desk.account)


async def test_the_owner_too_cannot_rewrite_postings(desk, servers: Servers):
    await desk.open()
    async with open_pool(servers.postgres_dsn("deskbus_owner")) as owner:
        with pytest.raises(PostgresError, match="append-only"):
            await owner.execute("delete from postings")


async def test_execution_cannot_touch_the_orchestrators_tables(pool):
    for statement in (
        "select * from cycles",
        "insert into operations (op_id) values (gen_random_uuid())",
        "update operations set status = 'completed'",
        "select * from journal",
        "update state_events set data = '{}'",
        "delete from state_events",
    ):
        with pytest.raises(PostgresError, match="permission denied"):
            await pool.execute(statement)


async def test_console_reads_the_ledger_and_writes_nothing(desk, servers: Servers):
    await desk.open()
    async with open_pool(servers.postgres_dsn(CONSOLE_ROLE)) as console:
        assert await console.fetchval(
            "select amount from balances where account=$1 and book='cash'", desk.account
        ) == D(10_000)
        for table in ("accounts", "orders", "entries", "postings", "fills", "executions"):
            with pytest.raises(PostgresError, match="permission denied"):
                await console.execute(f"insert into {table} default values")
            with pytest.raises(PostgresError, match="permission denied"):
                await console.execute(f"delete from {table}")


async def test_the_orchestrator_has_no_part_in_the_ledger(servers: Servers):
    async with open_pool(servers.postgres_dsn(ORCHESTRATOR_ROLE)) as orchestrator:
        for statement in ("select * from accounts", "insert into orders default values"):
            with pytest.raises(PostgresError, match="permission denied"):
                await orchestrator.execute(statement)
