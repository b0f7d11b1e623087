"""Exits on a real ledger: one a session, a stop on the rest, never more than is held."""

import asyncio
import json
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from contracts.account import OrderStatus, OrderType, Side
from contracts.execution import ExecutionResult
from contracts.halt import HaltTrading
from contracts.types import Money
from libs.market.source import CorporateAction
from libs.postgres.pool import Pool
from libs.runtime.errors import ClockBack
from services.execution import store
from services.execution.halt import halt_trading
from tests.integration.execution.conftest import FRIDAY, MONDAY, THURSDAY, TUESDAY, Desk
from tests.integration.execution.test_execution import assert_sound

D = Decimal
LATER = date(2012, 7, 6)
RACES = 20


async def holding(desk: Desk, shares: int = 100) -> Desk:
    """The desk with a position that was bought on Monday, standing at Monday's close."""
    await desk.open()
    await desk.buy("AAPL", shares)
    await desk.open(MONDAY)
    return desk


async def orders(pool: Pool, desk: Desk) -> list[tuple[Any, ...]]:
    """Sales in the order of their placing: type, status, shares, session of the fill, price."""
    rows = await pool.fetch(
        "select o.type, o.status, o.quantity, f.session, f.price from orders o"
        " left join fills f using (order_id) where o.account = $1 and o.side = 'sell'"
        " order by o.placed_at, o.type",
        desk.account,
    )
    return [tuple(row) for row in rows]


async def held(pool: Pool, desk: Desk) -> Decimal:
    found = await pool.fetchval(
        "select quantity from balances where account = $1 and ticker = 'AAPL'", desk.account
    )
    return found or D(0)


# --- a sale, then its stop --------------------------------------------------------------------


async def test_an_exit_sells_its_part_and_a_stop_waits_on_the_rest(desk: Desk, pool: Pool) -> None:
    result = await (await holding(desk)).exit("AAPL", 75, "9.00", MONDAY)

    assert [(o.type, o.status, o.quantity) for o in result.orders] == [
        (OrderType.MARKET, OrderStatus.FILLED, 75),
        (OrderType.STOP, OrderStatus.WORKING, 25),
    ]
    assert result.orders[1].stop_price == Money(amount=D("9.00"))
    books = await desk.open(TUESDAY)
    (rest,) = books.positions
    assert (rest.quantity, rest.sector) == (25, "of AAPL")
    (stop,) = books.open_orders
    assert (stop.type, stop.side, stop.quantity) == (OrderType.STOP, Side.SELL, 25)
    assert stop.hold.amount == 0
    await assert_sound(pool, desk.account)


async def test_without_a_named_stop_or_a_rest_there_is_none(desk: Desk, pool: Pool) -> None:
    await (await holding(desk)).exit("AAPL", 75, None, MONDAY)
    await desk.open(TUESDAY)
    await desk.exit("AAPL", 25, "9.00", TUESDAY)
    await desk.open(THURSDAY)

    assert [kind for kind, *_ in await orders(pool, desk)] == ["market", "market"]
    assert await held(pool, desk) == 0


@pytest.mark.parametrize(
    ("opened", "low", "price"),
    [
        ("10", "9.01", None),
        ("10", "9.00", "9.00"),
        ("10", "5.00", "9.00"),
        ("8.50", "8.00", "8.50"),  # a gap through the stop fills at the open
        ("9.00", "8.00", "9.00"),
    ],
)
async def test_a_stop_fills_at_its_price_and_after_a_gap_at_the_open(
    opened: str, low: str, price: str | None, desk: Desk, pool: Pool
) -> None:
    await (await holding(desk)).exit("AAPL", 75, "9.00", MONDAY)
    await desk.open(TUESDAY)
    desk.prices.opens["AAPL", THURSDAY] = D(opened)
    desk.prices.lows["AAPL", THURSDAY] = D(low)
    await desk.open(THURSDAY)

    stop = (await orders(pool, desk))[1]
    if price is None:
        assert stop == ("stop", "waiting", 25, None, None)
    else:
        assert stop == ("stop", "filled", 25, THURSDAY, D(price))
    assert await held(pool, desk) == (25 if price is None else 0)
    await assert_sound(pool, desk.account)


async def test_a_stop_counts_from_the_sales_own_session_on(desk: Desk, pool: Pool) -> None:
    desk.prices.lows["AAPL", MONDAY] = D("1.00")  # before there was a stop
    desk.prices.lows["AAPL", TUESDAY] = D("8.00")
    await (await holding(desk)).exit("AAPL", 75, "9.00", MONDAY)
    assert (await orders(pool, desk))[1][1] == "waiting"
    await desk.open(TUESDAY)

    assert (await orders(pool, desk))[1] == ("stop", "filled", 25, TUESDAY, D("9.00"))


async def test_a_clock_that_jumps_finds_the_session_that_reached_the_stop(
    desk: Desk, pool: Pool
) -> None:
    await (await holding(desk)).exit("AAPL", 75, "9.00", MONDAY)
    desk.prices.lows["AAPL", THURSDAY] = D("8.90")
    desk.prices.lows["AAPL", LATER] = D("2.00")
    await desk.open(LATER)

    assert (await orders(pool, desk))[1] == ("stop", "filled", 25, THURSDAY, D("9.00"))


async def test_each_closes_snapshot_keeps_the_stops_that_were_open_then(
    desk: Desk, pool: Pool
) -> None:
    desk.prices.events = [CorporateAction("AAPL", THURSDAY, D(2), D(0))]
    desk.prices.lows["AAPL", LATER] = D("4.00")
    await (await holding(desk)).exit("AAPL", 75, "9.00", MONDAY)
    await desk.open(LATER)  # the stop is open at two closes on the way

    rows = await pool.fetch(
        "select session, stops::text from snapshots where account = $1 order by session",
        desk.account,
    )
    open_at = {session: json.loads(stops) for session, stops in rows}
    stop = {"ticker": "AAPL", "currency": "USD", "as_of": "2012-07-02"}
    assert open_at == {
        FRIDAY: [],
        MONDAY: [],
        TUESDAY: [{**stop, "quantity": "25", "stop_price": "9.00"}],
        THURSDAY: [{**stop, "quantity": "50", "stop_price": "4.50"}],
        LATER: [],
    }


async def test_a_stops_fill_pays_slippage_and_fee_and_realises_the_gain(
    desk: Desk, pool: Pool
) -> None:
    await (await holding(desk)).exit("AAPL", 75, "9.00", MONDAY)
    desk.prices.lows["AAPL", TUESDAY] = D("9.00")
    await desk.open(TUESDAY)

    lines = await pool.fetch(
        "select p.book, p.amount from postings p join entries e using (entry_id)"
        " where e.account = $1 and e.memo like 'sell 25 %'",
        desk.account,
    )
    assert {row["book"]: row["amount"] for row in lines} == {
        "position": D("-250.00"),
        "fees": D("0.23"),
        "realised": D("25.00"),  # a loss: 25 shares at 9 that had cost 10
        "cash": D("224.77"),
    }


async def test_an_order_that_waits_for_its_open_places_its_stop_when_it_is_filled(
    desk: Desk, pool: Pool
) -> None:
    await holding(desk)
    desk.prices.last = MONDAY  # nobody knows Tuesday's open yet
    result = await desk.exit("AAPL", 75, "9.00", MONDAY)
    assert [order.status for order in result.orders] == [OrderStatus.WORKING]

    desk.prices.last = date(2012, 12, 31)
    desk.prices.lows["AAPL", THURSDAY] = D("8.00")
    await desk.open(LATER)

    assert await orders(pool, desk) == [
        ("market", "filled", 75, TUESDAY, D("10.000000")),
        ("stop", "filled", 25, THURSDAY, D("9.000000")),
    ]
    await assert_sound(pool, desk.account)


async def test_a_sale_that_finds_no_open_places_no_stop(desk: Desk, pool: Pool) -> None:
    await holding(desk)
    desk.prices.opens["AAPL", TUESDAY] = None
    await desk.exit("AAPL", 75, "9.00", MONDAY)
    await desk.open(TUESDAY)

    assert await orders(pool, desk) == [("market", "cancelled", 75, None, None)]


# --- what happens to the position happens to its stop -----------------------------------------


async def test_a_split_changes_the_stops_shares_and_price(desk: Desk, pool: Pool) -> None:
    await (await holding(desk)).exit("AAPL", 75, "9.00", MONDAY)
    desk.prices.events.append(CorporateAction("AAPL", THURSDAY, D(2), D(0)))
    desk.prices.closes |= {("AAPL", day): D(5) for day in (THURSDAY, LATER)}
    books = await desk.open(THURSDAY)

    (stop,) = books.open_orders
    assert (stop.quantity, stop.stop_price) == (50, Money(amount=D("4.50")))
    desk.prices.lows["AAPL", LATER] = D("4.00")
    await desk.open(LATER)
    assert (await orders(pool, desk))[1] == ("stop", "filled", 50, LATER, D("4.50"))
    assert await held(pool, desk) == 0


async def test_a_split_at_the_very_open_of_the_sale_counts_once(desk: Desk, pool: Pool) -> None:
    await holding(desk)
    desk.prices.events.append(CorporateAction("AAPL", TUESDAY, D(2), D(0)))
    desk.prices.closes |= {("AAPL", day): D(5) for day in (TUESDAY, THURSDAY)}
    desk.prices.opens["AAPL", TUESDAY] = D(5)
    await desk.exit("AAPL", 75, "9.00", MONDAY)
    books = await desk.open(THURSDAY)

    (stop,) = books.open_orders
    assert (stop.quantity, stop.stop_price) == (50, Money(amount=D("4.50")))
    assert await held(pool, desk) == 50


async def test_a_stop_sells_the_part_of_a_share_that_a_reverse_split_left(
    desk: Desk, pool: Pool
) -> None:
    await (await holding(desk)).exit("AAPL", 97, "9.00", MONDAY)
    desk.prices.events.append(CorporateAction("AAPL", THURSDAY, D(repr(1 / 7)), D(0)))
    desk.prices.closes |= {("AAPL", day): D(70) for day in (THURSDAY, LATER)}
    desk.prices.opens["AAPL", THURSDAY] = D(70)
    books = await desk.open(THURSDAY)

    (stop,) = books.open_orders
    (position,) = books.positions
    assert stop.quantity == position.quantity == D("0.428571")
    desk.prices.lows["AAPL", LATER] = D(60)
    await desk.open(LATER)
    assert (await orders(pool, desk))[1][:3] == ("stop", "filled", D("0.428571"))
    assert await held(pool, desk) == 0


async def test_a_sale_of_the_rest_cancels_the_stop(desk: Desk, pool: Pool) -> None:
    await (await holding(desk)).exit("AAPL", 75, "9.00", MONDAY)
    await desk.open(TUESDAY)
    await desk.sell("AAPL", 25, TUESDAY)

    assert [row[:3] for row in await orders(pool, desk)] == [
        ("market", "filled", 75),
        ("stop", "cancelled", 25),
        ("market", "filled", 25),
    ]
    reason = await pool.fetchval(
        "select reason from orders where account = $1 and type = 'stop'", desk.account
    )
    assert reason == "the position is closed"


async def test_a_sale_of_part_of_the_rest_makes_the_stop_smaller(desk: Desk, pool: Pool) -> None:
    await (await holding(desk)).exit("AAPL", 75, "9.00", MONDAY)
    await desk.open(TUESDAY)
    await desk.sell("AAPL", 10, TUESDAY)
    books = await desk.open(THURSDAY)

    assert [(each.quantity, each.type) for each in books.open_orders] == [(15, OrderType.STOP)]
    desk.prices.lows["AAPL", LATER] = D("8.00")
    await desk.open(LATER)
    assert await held(pool, desk) == 0
    await assert_sound(pool, desk.account)


async def test_a_later_exit_places_its_own_stop_in_the_place_of_the_older_one(
    desk: Desk, pool: Pool
) -> None:
    await (await holding(desk)).exit("AAPL", 50, "9.00", MONDAY)
    await desk.open(TUESDAY)
    await desk.exit("AAPL", 25, "9.50", TUESDAY)
    books = await desk.open(THURSDAY)

    (stop,) = books.open_orders
    assert (stop.quantity, stop.stop_price) == (25, Money(amount=D("9.50")))
    stops = [row for row in await orders(pool, desk) if row[0] == "stop"]
    assert sorted(row[1] for row in stops) == ["cancelled", "waiting"]


async def test_a_later_exit_lowers_no_stop(desk: Desk, pool: Pool) -> None:
    await (await holding(desk)).exit("AAPL", 50, "9.00", MONDAY)
    await desk.open(TUESDAY)
    await desk.exit("AAPL", 25, "8.00", TUESDAY)
    books = await desk.open(THURSDAY)

    (stop,) = books.open_orders
    assert (stop.quantity, stop.stop_price) == (25, Money(amount=D("9.00")))
    assert [row[1] for row in await orders(pool, desk) if row[0] == "stop"] == ["waiting"]


async def test_a_halt_lets_exits_and_their_stops_pass(desk: Desk, pool: Pool) -> None:
    await holding(desk)
    await halt_trading("cli", HaltTrading(account=desk.account, reason="a test"), pool=pool)
    await desk.exit("AAPL", 75, "9.00", MONDAY)
    desk.prices.lows["AAPL", TUESDAY] = D("8.00")
    await desk.open(TUESDAY)

    assert [row[1] for row in await orders(pool, desk)] == ["filled", "filled"]
    assert await held(pool, desk) == 0


async def test_a_stop_in_another_currency_fills_at_the_rate_of_its_day(
    desk: Desk, pool: Pool
) -> None:
    desk.prices.euros.add("AAPL")
    desk.prices.eurusd = {day: D("1.25") for day in (date(2012, 6, 28), FRIDAY, MONDAY, TUESDAY)}
    await desk.open()
    await desk.execute(desk.command({"AAPL": 100}, price=D("12.5")))
    await desk.open(MONDAY)
    await desk.exit("AAPL", 75, "9.00", MONDAY)
    desk.prices.lows["AAPL", TUESDAY] = D("8.00")
    await desk.open(TUESDAY)

    fill = await pool.fetchrow(
        "select f.foreign_price, f.currency, f.price from fills f join orders o using (order_id)"
        " where o.account = $1 and o.type = 'stop'",
        desk.account,
    )
    assert tuple(fill) == (D("9.00"), "EUR", D("11.25"))
    await assert_sound(pool, desk.account)


# --- once -------------------------------------------------------------------------------------


def rejected(result: ExecutionResult) -> str:
    (order,) = result.orders
    assert order.status is OrderStatus.REJECTED
    return order.reason


async def test_a_position_is_exited_once_a_session(desk: Desk, pool: Pool) -> None:
    await (await holding(desk)).exit("AAPL", 50, None, MONDAY)
    again = await desk.exit("AAPL", 25, None, MONDAY)

    assert "one_exit_a_session" in rejected(again)
    assert await held(pool, desk) == 50
    await desk.open(TUESDAY)
    await desk.exit("AAPL", 25, None, TUESDAY)
    assert await held(pool, desk) == 25


async def test_the_database_itself_refuses_a_second_exit_and_a_second_stop(
    desk: Desk, pool: Pool
) -> None:
    await (await holding(desk)).exit("AAPL", 50, "9.00", MONDAY)
    other = "jsonb_build_object('order_id', $2::text, 'status', $4::text)"
    copy = (
        f"insert into orders select (jsonb_populate_record(o, {other})).* from orders o"
        " where account = $1 and type = $3 and exit"
    )
    for kind, status, index in (
        ("market", "working", "orders_one_exit"),
        ("stop", "waiting", "orders_one_stop"),
    ):
        with pytest.raises(asyncpg.UniqueViolationError, match=index):
            await pool.execute(copy, desk.account, str(uuid4()), kind, status)


async def test_two_checks_that_race_for_one_position_place_one_exit(desk: Desk, pool: Pool) -> None:
    await holding(desk, 300)
    commands = [desk.exit_command("AAPL", 150, "9.00", MONDAY) for _ in range(RACES)]
    results = await asyncio.gather(*(desk.execute(each) for each in commands * 2))

    filled = [r for r in results if r.orders[0].status is OrderStatus.FILLED]
    assert len({each.op_id for each in filled}) == 1
    placed = [row for row in await orders(pool, desk) if row[1] != "rejected"]
    assert [row[:3] for row in placed] == [("market", "filled", 150), ("stop", "waiting", 150)]
    assert await held(pool, desk) == 150
    await assert_sound(pool, desk.account)


async def test_a_stop_and_a_check_that_race_sell_no_more_than_is_held(
    desk: Desk, pool: Pool
) -> None:
    for _ in range(RACES):
        each = desk.another()
        each.prices.lows["AAPL", THURSDAY] = D("8.00")
        await (await holding(each)).exit("AAPL", 50, "9.00", MONDAY)
        await each.open(TUESDAY)
        check, moved = await asyncio.gather(
            each.exit("AAPL", 25, "8.50", TUESDAY), each.open(THURSDAY), return_exceptions=True
        )
        assert not isinstance(moved, BaseException)

        found = [row[:3] for row in await orders(pool, each) if row[1] == "filled"]
        if isinstance(check, ClockBack):
            # The stop was first: it sold the rest, and the check is of a day gone by.
            assert found == [("market", "filled", 50), ("stop", "filled", 50)]
        else:
            assert not isinstance(check, BaseException)
            # The check was first: its stop, on what it left, stands in the older one's place.
            assert sorted(found) == [
                ("market", "filled", 25),
                ("market", "filled", 50),
                ("stop", "filled", 25),
            ]
        assert await held(pool, each) == 0
        await assert_sound(pool, each.account)


async def test_a_check_and_a_buy_that_race_are_both_done_once(desk: Desk, pool: Pool) -> None:
    for _ in range(RACES):
        each = desk.another()
        await holding(each)
        sale = each.exit_command("AAPL", 50, "9.00", MONDAY)
        buy = each.command({"MSFT": 100, "AAPL": 100}, MONDAY)
        results = await asyncio.gather(*(each.execute(c) for c in (sale, buy, sale, buy)))

        assert results[0] == results[2]
        assert results[1] == results[3]
        bought = {order.asset: order.status for order in results[1].orders}
        assert bought == {"AAPL": OrderStatus.REJECTED, "MSFT": OrderStatus.FILLED}
        assert [row[:3] for row in await orders(pool, each)] == [
            ("market", "filled", 50),
            ("stop", "waiting", 50),
        ]
        await assert_sound(pool, each.account)


@pytest.mark.parametrize("place", ["insert_order", "insert_entry", "insert_execution"])
async def test_a_crash_between_decision_and_order_leaves_none_and_the_next_try_places_one(
    place: str, desk: Desk, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await holding(desk)
    command = desk.exit_command("AAPL", 75, "9.00", MONDAY)
    reached = asyncio.Event()

    class Halting:
        """A connection that stops for good after one statement."""

        def __init__(self, db: Any) -> None:
            self._db = db

        def __getattr__(self, name: str) -> Any:
            return getattr(self._db, name)

        async def execute(self, query: str, *values: object) -> Any:
            done = await self._db.execute(query, *values)
            if query == getattr(store.sql, place):
                reached.set()
                await asyncio.Event().wait()
            return done

    write, keep = store.write, store.keep_execution
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", lambda db, changes: write(Halting(db), changes))
        patch.setattr(store, "keep_execution", lambda db, *told: keep(Halting(db), *told))
        dying = asyncio.create_task(desk.execute(command))
        await reached.wait()
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
    assert await orders(pool, desk) == []

    first, again = await desk.execute(command), await desk.execute(command)
    assert first == again
    assert [row[:3] for row in await orders(pool, desk)] == [
        ("market", "filled", 75),
        ("stop", "waiting", 25),
    ]
    await assert_sound(pool, desk.account)
