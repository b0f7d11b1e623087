"""What must hold of the tables whatever was asked: the books, the clock, one cycle a key."""

import asyncio
import random
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest

from libs.market.calendar import exchange_calendar
from tests.integration.desk.caller import Caller, account_of, wish
from tests.integration.desk.conftest import Desk

pytestmark = pytest.mark.usefixtures("unharmed")

TICKERS = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
CYCLES = 8
AT_ONCE = 20
MARKET_ORDERS = "select count(*) from orders where account = $1 and type = 'market'"


async def books_balance(desk: Desk, account: str) -> None:
    """Every entry sums to zero, and what is held is what was filled."""
    async with desk.postgres() as db:
        unbalanced = await db.fetch(
            "select entry_id from postings where account = $1 group by entry_id "
            "having sum(amount) <> 0",
            account,
        )
        held = await db.fetch(
            "select ticker, sum(quantity) as shares from postings "
            "where account = $1 and book = 'position' group by ticker having sum(quantity) <> 0",
            account,
        )
        filled = await db.fetch(
            "select o.ticker, sum(case o.side when 'buy' then f.quantity else -f.quantity end) "
            "as shares from fills f join orders o using (order_id) where o.account = $1 "
            "group by o.ticker",
            account,
        )
        cash = await db.fetchval(
            "select sum(amount) from postings where account = $1 and book = 'cash'", account
        )
        traded = await db.fetchval(
            "select coalesce(sum(round(f.price * f.quantity, 2) * "
            "case o.side when 'buy' then -1 else 1 end - f.fee), 0) "
            "from fills f join orders o using (order_id) where o.account = $1",
            account,
        )
        dividends = await db.fetchval(
            "select coalesce(-sum(amount), 0) from postings "
            "where account = $1 and book = 'dividends'",
            account,
        )
    assert unbalanced == []
    assert dict(held) == {ticker: shares for ticker, shares in filled if shares}
    assert cash == Decimal(100_000) + traded + dividends
    assert cash >= 0


async def test_the_books_balance_after_many_cycles_on_one_account(desk: Desk, user: Caller) -> None:
    chance = random.Random(2012)
    pipelines = wish()["pipelines"]
    sessions = exchange_calendar().sessions(date(2012, 6, 1), date(2013, 2, 28))
    for session in sorted(chance.sample(list(sessions), CYCLES)):
        universe = sorted(chance.sample(TICKERS, chance.randint(1, len(TICKERS))))
        body = wish(as_of=session.isoformat(), universe=universe, pipelines=pipelines)
        assert (await user.run(body))["status"] == "completed"

    account = pipelines[0]["account"]
    async with desk.postgres() as db:
        orders = await db.fetchval(
            "select count(*) from orders where account = $1 and type = 'market'", account
        )
    assert orders > 2
    await books_balance(desk, account)


async def test_cycles_at_once_on_one_account_never_spend_more_than_it_has(
    desk: Desk, user: Caller
) -> None:
    pipelines = wish()["pipelines"]
    views = await asyncio.gather(*(user.run(wish(pipelines=pipelines)) for _ in range(5)))

    assert {view["status"] for view in views} == {"completed"}
    await books_balance(desk, pipelines[0]["account"])


def told_times(value: object) -> Iterator[datetime | date]:
    """Every date and time that stands alone as a text, and every `newest`."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from told_times(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from told_times(inner)
    elif isinstance(value, str) and len(value) in {10, 20, 25}:
        try:
            yield date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        except ValueError:
            return


def is_known(told: datetime | date, as_of: date) -> bool:
    if isinstance(told, datetime):
        return told <= exchange_calendar().close(as_of)
    return told <= as_of


@pytest.mark.parametrize("as_of", ["2012-06-29", "2008-10-10", "2013-02-15"])
async def test_nothing_that_a_cycle_reads_or_decides_is_newer_than_its_session(
    as_of: str, desk: Desk, user: Caller
) -> None:
    cycle_id = (await user.run(wish(as_of=as_of)))["cycle_id"]

    day = date.fromisoformat(as_of)
    async with desk.postgres() as db:
        rows = await db.fetch(
            "select j.entry, o.step from journal j join operations o using (op_id) "
            "where o.cycle_id = $1 and o.step <> 'memorize'",
            UUID(cycle_id),
        )
    replies: list[tuple[str, Any]] = [
        (row["step"], orjson.loads(row["entry"])["reply"]) for row in rows
    ]
    newest = [r["newest"] for _, r in replies if isinstance(r, dict) and r.get("newest")]
    assert len(newest) > 10
    assert all(list(told_times(each)) for each in newest)
    late = [
        (step, str(told))
        for step, reply in replies
        for told in told_times(reply)
        if not is_known(told, day)
    ]
    assert late == []


async def test_a_request_that_is_published_many_times_at_once_is_one_cycle(
    desk: Desk, user: Caller
) -> None:
    body = wish()
    async with desk.calling("user") as other:
        askers = [user, other] * (AT_ONCE // 2)
        answers = await asyncio.gather(*(asker.ask(body) for asker in askers))

    assert {answer["outcome"] for answer in answers} == {"accepted"}
    (cycle_id,) = {answer["cycle_id"] for answer in answers}
    await user.ended(cycle_id)
    async with desk.postgres() as db:
        key, account = body["idempotency_key"], account_of(body)
        cycles = await db.fetchval("select count(*) from cycles where idempotency_key = $1", key)
        orders = await db.fetchval(
            "select count(*) from orders where account = $1 and type = 'market'", account
        )
        executed = await db.fetchval("select count(*) from executions where account = $1", account)
    assert (cycles, orders, executed) == (1, 2, 1)
    events = user.events.of(cycle_id)
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
