"""Rates that are missing or cannot be read: nothing is booked twice, and nothing is lost."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime

import pytest

from contracts.account import OrderStatus
from contracts.types import ExchangeRate
from libs.files.finding import Finding
from libs.market.errors import BadReplayData
from libs.market.source import CorporateAction
from libs.postgres.pool import Pool
from services.execution.errors import NoExchangeRate
from services.execution.reads import RATES, Reads
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
FAULT = Finding("fx.csv", "the rate is no number", "correct it")


@dataclass
class Folder(Prices):
    """Prices of files, of which that of the rates may be `bad`; `old_at` no rate is known."""

    bad: bool = False
    old_at: datetime | None = None

    @property
    def faults(self) -> Mapping[str, Finding]:
        return {RATES: FAULT} if self.bad else {}

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
    reads = Reads(folder, folder, folder)  # type: ignore[arg-type]
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
    try:
        await abroad.open(NEXT_FRIDAY)
    except NoExchangeRate:
        assert await clock_of(pool, abroad.account) == TUESDAY
    folder.bad, folder.old_at = False, None
    folder.eurusd.update(rates)
    books = await abroad.open(NEXT_MONDAY)
    assert (books.positions[0].quantity, books.cash.amount) == (200, D("8998.75"))
    assert await booked(pool, abroad.account) == [("split", events_on), ("dividend", events_on)]
    await abroad.open(date(2012, 7, 10))
    assert len(await booked(pool, abroad.account)) == 2


async def test_a_sale_waits_until_the_rates_can_be_read_again(abroad, folder, pool):
    folder.last = MONDAY
    await holding(abroad, MONDAY)
    (order,) = (await abroad.sell("EEE", 50, MONDAY)).orders
    assert order.status is OrderStatus.WORKING
    folder.last, folder.bad = NEXT_MONDAY, True
    folder.closes["EEE", THURSDAY] = None
    with pytest.raises(NoExchangeRate, match=r"EEE in EUR.*fx\.csv"):
        await abroad.open(THURSDAY)
    assert await clock_of(pool, abroad.account) == MONDAY
    folder.bad = False
    assert (await abroad.open(THURSDAY)).positions[0].quantity == 50


async def test_a_buy_waits_until_the_rates_can_be_read_again(abroad, folder, pool):
    folder.last = FRIDAY
    await abroad.open()
    command = abroad.command({"EEE": 100}, price=D("12.50"))
    assert (await abroad.execute(command)).orders[0].status is OrderStatus.WORKING
    folder.last, folder.bad = NEXT_MONDAY, True
    with pytest.raises(NoExchangeRate, match=r"EEE in EUR.*fx\.csv"):
        await abroad.open(MONDAY)
    folder.bad = False
    assert (await abroad.open(MONDAY)).positions[0].quantity == 100


async def test_a_stop_reached_while_the_rates_could_not_be_read_sells(abroad, folder, pool):
    await holding(abroad, MONDAY)
    await abroad.exit("EEE", 40, stop="9", as_of=MONDAY)
    folder.lows["EEE", THURSDAY] = D(8)
    folder.closes["EEE", NEXT_FRIDAY] = None
    folder.bad = True
    with pytest.raises(NoExchangeRate):
        await abroad.open(NEXT_FRIDAY)
    folder.bad = False
    assert (await abroad.open(NEXT_FRIDAY)).positions == ()


async def test_an_account_with_nothing_foreign_moves_on_without_rates(abroad, folder):
    await abroad.open()
    await abroad.buy("AAA", 100)
    folder.bad = True
    assert (await abroad.open(MONDAY)).positions[0].quantity == 100
