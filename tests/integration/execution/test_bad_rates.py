"""Rates that are missing or cannot be read: nothing is booked twice, and nothing is lost."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime

import pytest

from contracts.account import OrderStatus
from contracts.types import ExchangeRate
from libs.files.finding import FileFinding
from libs.market.errors import BadReplayData
from libs.market.source import CorporateAction
from libs.postgres.pool import Pool
from services.execution.reads import RATES, ExecutionReads
from tests.integration.execution.conftest import (
    FRIDAY,
    MONDAY,
    THURSDAY,
    TUESDAY,
    D,
    Desk,
    Prices,
)

NEXT_FRIDAY, NEXT_MONDAY = date(2012, 7, 6), date(2012, 7, 9)
FAULT = FileFinding("fx.csv", "the rate is no number", "correct it")


@dataclass
class Folder(Prices):
    """Prices of files, of which that of the rates may be `bad`; `old_at` no rate is known."""

    bad: bool = False
    old_at: datetime | None = None

    @property
    def faults(self) -> Mapping[str, FileFinding]:
        return {RATES: FAULT} if self.bad else {}

    @property
    def no_listings(self) -> FileFinding | None:
        return None

    def caveat(self, ticker: str) -> str:
        return ""

    async def into(self, currency: str, at: datetime) -> Mapping[str, ExchangeRate]:
        if self.bad:
            raise BadReplayData(FAULT)
        if at == self.old_at:
            return {}
        return await super().into(currency, at)


@pytest.fixture
def folder() -> Folder:
    """EEE trades in euros, a euro is worth 1.25 dollars."""
    return Folder(euros={"EEE"}, eurusd={FRIDAY: D("1.25")})


@pytest.fixture
def abroad(desk: Desk, folder: Folder) -> Desk:
    reads = ExecutionReads(folder, folder, folder)  # type: ignore[arg-type]
    return Desk(replace(desk.trading, reads=reads), folder, desk.orchestrator)


async def holding(desk: Desk, as_of: date) -> None:
    """Buy 100 EEE at Monday's open, and bring the account to as_of."""
    await desk.open()
    await desk.execute(desk.command({"EEE": 100}, price=D("12.50")))
    await desk.open(as_of)


async def booked(pool: Pool, account: str) -> list[tuple[str, date]]:
    rows = await pool.fetch(
        "select kind, session from entries where account = $1 and kind in ('split', 'dividend')"
        " order by entry_id",
        account,
    )
    return [tuple(row) for row in rows]


async def clock_of(pool: Pool, account: str) -> date:
    clock: date = await pool.fetchval("select clock from accounts where account = $1", account)
    return clock


@pytest.mark.parametrize("how", ["cannot be read", "too old", "too old at a close alone"])
@pytest.mark.parametrize("events_on", [TUESDAY, THURSDAY])
async def test_a_split_and_a_dividend_are_booked_once(abroad, folder, pool, how, events_on):
    folder.events = [CorporateAction("EEE", events_on, D(2), D(1))]
    await holding(abroad, TUESDAY)
    rates = dict(folder.eurusd)
    folder.closes["EEE", NEXT_FRIDAY] = None
    folder.bad = how == "cannot be read"
    if how == "too old":
        folder.eurusd.clear()
    if how == "too old at a close alone":
        folder.old_at = folder.calendar.close(THURSDAY)
    await abroad.open(NEXT_FRIDAY)
    folder.bad, folder.old_at = False, None
    folder.eurusd.update(rates)
    books = await abroad.open(NEXT_MONDAY)
    assert (books.positions[0].quantity, books.cash.amount) == (200, D("8998.75"))
    # What cannot be valued or exchanged when it happens is booked at the next session that can.
    on = TUESDAY if events_on == TUESDAY else NEXT_MONDAY
    assert await booked(pool, abroad.account) == [("split", on), ("dividend", on)]
    await abroad.open(date(2012, 7, 10))
    assert len(await booked(pool, abroad.account)) == 2


@pytest.mark.parametrize("how", ["cannot be read", "too old"])
async def test_without_rates_the_account_is_incomplete_and_its_home_shares_are_sold(
    abroad, folder, pool, how
):
    await holding(abroad, MONDAY)
    await abroad.buy("AAA", 100, as_of=MONDAY)
    await abroad.open(TUESDAY)
    without_rates(folder, how)
    books = await abroad.open(THURSDAY)
    assert "EEE has no value: no EURUSD rate of the last 7 days is known" in books.incomplete
    assert ("fx.csv" in books.incomplete) is (how == "cannot be read")
    held = {position.ticker: position.priced_on for position in books.positions}
    assert held == {"AAA": None, "EEE": TUESDAY}
    sold = (await abroad.sell("AAA", 100, THURSDAY)).orders
    assert [order.status for order in sold] == [OrderStatus.FILLED]
    (bought,) = (await abroad.buy("BBB", 10, as_of=THURSDAY)).orders
    assert bought.status is OrderStatus.REJECTED
    assert "daily_loss" in bought.reason
    equity = await pool.fetchval(
        "select equity from snapshots where account = $1 and session = $2",
        abroad.account,
        THURSDAY,
    )
    assert equity is None


def without_rates(folder: Folder, how: str) -> None:
    if how == "too old":
        folder.eurusd.clear()
    else:
        folder.bad = True


@pytest.mark.parametrize("how", ["cannot be read", "too old"])
async def test_a_foreign_sale_waits_for_an_open_with_a_rate(abroad, folder, pool, how):
    folder.last = MONDAY
    await holding(abroad, MONDAY)
    rates = dict(folder.eurusd)
    (order,) = (await abroad.sell("EEE", 50, MONDAY)).orders
    assert order.status is OrderStatus.WORKING
    folder.last = NEXT_MONDAY
    without_rates(folder, how)
    books = await abroad.open(THURSDAY)
    assert await clock_of(pool, abroad.account) == THURSDAY
    assert [one.order_id for one in books.open_orders] == [order.order_id]
    folder.bad = False
    folder.eurusd.update(rates)
    books = await abroad.open(NEXT_FRIDAY)
    assert (books.positions[0].quantity, books.open_orders, books.incomplete) == (50, (), "")
    session = await pool.fetchval("select session from fills where order_id = $1", order.order_id)
    assert session == NEXT_FRIDAY


@pytest.mark.parametrize("how", ["cannot be read", "too old"])
@pytest.mark.parametrize("split_on", [TUESDAY, THURSDAY, NEXT_FRIDAY])
async def test_a_sale_that_waits_over_a_split_sells_the_new_shares(
    abroad, folder, pool, how, split_on
):
    folder.last = MONDAY
    folder.events = [CorporateAction("EEE", split_on, D(4), D(0))]
    await holding(abroad, MONDAY)
    rates = dict(folder.eurusd)
    (order,) = (await abroad.sell("EEE", 50, MONDAY)).orders
    folder.last = NEXT_MONDAY
    without_rates(folder, how)
    await abroad.open(THURSDAY)
    folder.bad = False
    folder.eurusd.update(rates)
    books = await abroad.open(NEXT_FRIDAY)
    sold = await pool.fetchval("select quantity from fills where order_id = $1", order.order_id)
    assert (books.positions[0].quantity, sold, books.open_orders) == (200, 200, ())


@pytest.mark.parametrize("how", ["cannot be read", "too old"])
async def test_a_foreign_buy_without_a_rate_at_its_open_is_cancelled(abroad, folder, pool, how):
    folder.last = FRIDAY
    await abroad.open()
    command = abroad.command({"EEE": 100}, price=D("12.50"))
    assert (await abroad.execute(command)).orders[0].status is OrderStatus.WORKING
    folder.last = NEXT_MONDAY
    without_rates(folder, how)
    monday = await abroad.open(MONDAY)
    assert monday.open_orders == monday.positions == ()
    row = await pool.fetchrow("select status, reason from orders where account=$1", abroad.account)
    assert row["status"] == "cancelled"
    assert "no EURUSD rate of the last 7 days is known" in row["reason"]


@pytest.mark.parametrize("how", ["cannot be read", "too old"])
async def test_a_stop_reached_while_no_rate_was_known_sells_once_there_is_one(
    abroad, folder, pool, how
):
    await holding(abroad, MONDAY)
    await abroad.exit("EEE", 40, stop="9", as_of=MONDAY)
    await abroad.open(TUESDAY)
    folder.lows["EEE", THURSDAY] = D(8)
    rates = dict(folder.eurusd)
    without_rates(folder, how)
    held = (await abroad.open(THURSDAY)).positions[0].quantity
    assert held == 60
    folder.bad = False
    folder.eurusd.update(rates)
    folder.opens["EEE", NEXT_FRIDAY], folder.lows["EEE", NEXT_FRIDAY] = D(20), D(20)
    assert (await abroad.open(NEXT_FRIDAY)).positions == ()
    sold = await pool.fetchrow(
        "select o.reason, f.price, f.session from orders o join fills f using (order_id)"
        " where o.account = $1 and o.type = 'stop'",
        abroad.account,
    )
    # At the open that it could be sold at, not at a price of a session that was over.
    assert (sold["price"], sold["session"]) == (D(25), NEXT_FRIDAY)
    assert f"the stop at 9.00 EUR was reached on {THURSDAY}" in sold["reason"]


@pytest.mark.parametrize("how", ["cannot be read", "too old"])
async def test_a_stop_is_not_reached_by_what_came_before_it(abroad, folder, how):
    folder.last = MONDAY
    await holding(abroad, MONDAY)
    await abroad.exit("EEE", 40, stop="9", as_of=MONDAY)
    folder.last = NEXT_MONDAY
    rates = dict(folder.eurusd)
    without_rates(folder, how)
    folder.lows["EEE", TUESDAY] = D(8)
    await abroad.open(TUESDAY)
    folder.bad = False
    folder.eurusd.update(rates)
    (held,) = (await abroad.open(NEXT_FRIDAY)).positions
    assert held.quantity == 60


async def test_what_is_left_of_a_stop_that_sold_at_the_open_waits_for_the_next_session(
    abroad, folder, pool
):
    thin = replace(abroad.trading.broker, volume_pct_max=D(10))
    thin_desk = Desk(replace(abroad.trading, broker=thin), folder, abroad.orchestrator)
    await holding(thin_desk, MONDAY)
    await thin_desk.exit("EEE", 40, stop="9", as_of=MONDAY)
    folder.bad = True
    folder.lows["EEE", THURSDAY] = folder.lows["EEE", NEXT_FRIDAY] = D(8)
    folder.volumes["EEE", NEXT_FRIDAY] = 100
    await thin_desk.open(THURSDAY)
    folder.bad = False
    (held,) = (await thin_desk.open(NEXT_FRIDAY)).positions
    assert held.quantity == 50


async def test_an_account_with_nothing_foreign_moves_on_without_rates(abroad, folder):
    await abroad.open()
    await abroad.buy("AAA", 100)
    folder.bad = True
    assert (await abroad.open(MONDAY)).positions[0].quantity == 100


async def test_a_buy_without_a_rate_at_its_open_is_not_filled_at_a_later_one(abroad, folder):
    folder.last = FRIDAY
    await abroad.open()
    bought = await abroad.execute(abroad.command({"EEE": 100}, price=D("12.50")))
    assert bought.orders[0].status is OrderStatus.WORKING
    folder.last = NEXT_MONDAY
    folder.eurusd.clear()
    folder.eurusd[TUESDAY] = D("1.25")
    books = await abroad.open(THURSDAY)
    assert (books.positions, books.cash.amount) == ((), 10_000)


async def test_a_split_at_whose_open_a_sale_fills_is_booked_once_though_its_close_has_no_rate(
    abroad, folder, pool
):
    await holding(abroad, TUESDAY)
    folder.last = TUESDAY
    await abroad.sell("EEE", 50, TUESDAY)
    folder.last = NEXT_MONDAY
    folder.events = [CorporateAction("EEE", THURSDAY, D(4), D(0))]
    folder.old_at = folder.calendar.close(THURSDAY)
    books = await abroad.open(NEXT_FRIDAY)
    assert await booked(pool, abroad.account) == [("split", THURSDAY)]
    assert books.positions[0].quantity == 200


async def test_a_sale_that_waited_for_a_rate_ends_where_its_share_opens_no_more(
    abroad, folder, pool
):
    folder.last = MONDAY
    await holding(abroad, MONDAY)
    await abroad.sell("EEE", 50, MONDAY)
    folder.last = NEXT_MONDAY
    rates = dict(folder.eurusd)
    without_rates(folder, "too old")
    await abroad.open(THURSDAY)
    folder.eurusd.update(rates)
    folder.last = THURSDAY
    for day in (NEXT_FRIDAY, NEXT_MONDAY):
        folder.closes["EEE", day] = None
        await abroad.open(day)
    sold = await pool.fetchval(
        "select status from orders where account = $1 and side = 'sell'", abroad.account
    )
    assert sold == "cancelled"
