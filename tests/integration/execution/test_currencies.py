"""Other currencies: exchanged at a rate that was known, in books that balance in each of them."""

import random
import re
import shutil
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from contracts.account import OrderStatus
from contracts.types import Money
from libs.broker.paper import PaperBroker
from libs.market.rates import ReplayRates
from libs.market.replay.market import ReplayFills, ReplayMarket, ReplayStore
from libs.market.source import CorporateAction
from libs.postgres.pool import Pool, PostgresError
from services.execution.errors import CurrencyChanged, NoExchangeRate
from services.execution.handler import Trading
from services.execution.reads import ExecutionReads
from tests.integration.execution.conftest import (
    FRIDAY,
    MONDAY,
    THURSDAY,
    TUESDAY,
    WIDE,
    Desk,
    Prices,
)
from tests.integration.execution.test_execution import assert_sound, books_of

D = Decimal
FIXTURE = Path(__file__).parents[2] / "data" / "fixture_market"
SESSIONS = (FRIDAY, MONDAY, TUESDAY, THURSDAY, date(2012, 7, 6), date(2012, 7, 9))


@pytest.fixture
def abroad(desk: Desk) -> Desk:
    """EEE trades in euros, a euro is worth 1.25 dollars."""
    desk.prices.euros = {"EEE"}
    desk.prices.eurusd[FRIDAY] = D("1.25")
    return desk


def in_euros(desk: Desk) -> Desk:
    trading = replace(desk.trading, currency_of=lambda _: "EUR")
    return replace(desk, trading=trading, currency="EUR")


async def assert_balanced_in_each_currency(pool: Pool, account: str) -> None:
    left = await pool.fetch(
        "select entry_id, currency from postings where account = $1 group by entry_id, currency"
        " having sum(amount) <> 0 or coalesce(sum(foreign_amount), 0) <> 0",
        account,
    )
    assert left == []
    await assert_sound(pool, account)


async def lines_of(pool: Pool, account: str, kind: str) -> list[tuple[object, ...]]:
    rows = await pool.fetch(
        "select p.book, p.currency, p.foreign_amount, p.amount from postings p join entries e"
        " using (entry_id) where e.account = $1 and e.kind = $2 order by e.entry_id, p.line",
        account,
        kind,
    )
    return [tuple(row) for row in rows]


async def test_a_foreign_buy_is_exchanged_at_the_rate_known_at_its_open(abroad, pool):
    abroad.prices.eurusd[MONDAY] = D("1.50")  # told at Monday's close: too late for the open
    await abroad.open()
    result = await abroad.execute(abroad.command({"EEE": 100}, price=D("12.50")))
    (order,), (fill,) = result.orders, result.fills
    assert order.status is OrderStatus.FILLED
    assert (fill.price.amount, fill.fee.amount) == (D("12.5"), D("1.25"))
    assert fill.foreign is not None
    assert fill.foreign.price == Money(amount=D(10), currency="EUR")
    assert (fill.foreign.rate.rate, fill.foreign.rate.on) == (D("1.25"), FRIDAY)
    assert order.foreign is not None
    assert order.foreign.rate.on == FRIDAY
    assert await lines_of(pool, abroad.account, "fill") == [
        ("position", "EUR", D("1000.00"), D("1250.00")),
        ("fees", "EUR", D("1.00"), D("1.25")),
        ("exchange", "EUR", D("-1001.00"), D("-1251.25")),
        ("exchange", None, None, D("1251.25")),
        ("cash", None, None, D("-1251.25")),
    ]
    memo = await pool.fetchval(
        "select memo from entries where account=$1 and kind='fill'", abroad.account
    )
    assert memo == "buy 100 EEE at 10.00 EUR, EURUSD 1.25 of 2012-06-29"
    await assert_balanced_in_each_currency(pool, abroad.account)


async def test_a_foreign_position_is_marked_at_the_rate_of_each_close(abroad, pool):
    await abroad.open()
    await abroad.execute(abroad.command({"EEE": 100}, price=D("12.50")))
    abroad.prices.eurusd[MONDAY] = D("1.30")
    monday = await abroad.open(MONDAY)
    (position,) = monday.positions
    assert (position.price.amount, position.average_cost.amount) == (D(13), D("12.5"))
    assert position.foreign is not None
    assert position.foreign.price == Money(amount=D(10), currency="EUR")
    assert position.foreign.rate.on == MONDAY
    assert monday.equity.amount == monday.cash.amount + 1300
    assert [str(rate) for rate in monday.rates] == ["EURUSD 1.3 of 2012-07-02"]


async def test_a_foreign_sale_books_what_price_and_rate_did(abroad, pool):
    await abroad.open()
    await abroad.execute(abroad.command({"EEE": 100}, price=D("12.50")))
    abroad.prices.eurusd[MONDAY] = D("1.30")
    await abroad.open(MONDAY)
    (fill,) = (await abroad.sell("EEE", 40, MONDAY)).fills
    assert fill.price.amount == 13
    assert (await books_of(pool, abroad.account))["realised"] == -20
    await assert_balanced_in_each_currency(pool, abroad.account)


async def test_foreign_dividends_and_splits_post_cash_of_the_account(abroad, pool):
    abroad.prices.events = [
        CorporateAction("EEE", TUESDAY, D("1.5"), D(0)),
        CorporateAction("EEE", THURSDAY, D(1), D("0.20")),
    ]
    abroad.prices.opens["EEE", TUESDAY] = D(8)
    await abroad.open()
    await abroad.execute(abroad.command({"EEE": 101}, price=D("12.50")))
    before = (await abroad.open(MONDAY)).cash.amount
    abroad.prices.default = D(7)
    (position,) = (await abroad.open(THURSDAY)).positions
    assert position.quantity == D("151.5")
    books = await books_of(pool, abroad.account)
    assert books["cash"] == before + D("37.88")  # 30.30 euros
    assert books["dividends"] == D("-37.88")
    await assert_balanced_in_each_currency(pool, abroad.account)


async def test_cash_covers_a_foreign_buy_to_the_cent(abroad, pool):
    abroad.prices.eurusd[FRIDAY] = D("1.2345678901")
    abroad.prices.opens["EEE", MONDAY] = D("33.33")
    await abroad.open()
    result = await abroad.execute(
        abroad.command({"AAA": 390, "BBB": 400, "EEE": 170}, EEE=D("12.345679"))
    )
    assert result.orders[2].quantity < 170
    assert 0 <= result.cash_after.amount < D("33.33") * D("1.2345678901")
    await assert_balanced_in_each_currency(pool, abroad.account)


async def test_an_account_in_euros_begins_with_the_dollars_at_the_days_rate(abroad, pool):
    desk = in_euros(abroad)
    books = await desk.open()
    assert books.cash == Money(amount=D(8_000), currency="EUR")
    (fill,) = (await desk.execute(desk.command({"AAA": 100}, price=D(8)))).fills
    assert fill.price == Money(amount=D(8), currency="EUR")
    assert fill.foreign is not None
    assert str(fill.foreign.rate) == "USDEUR 0.8 of 2012-06-29"
    await assert_balanced_in_each_currency(pool, desk.account)


async def test_an_account_in_euros_is_not_opened_without_a_rate(desk, pool):
    with pytest.raises(NoExchangeRate, match="starting cash in USD"):
        await in_euros(desk).open()
    assert await pool.fetchval("select count(*) from accounts where account=$1", desk.account) == 0


@pytest.mark.parametrize("seed", range(6))
async def test_the_ledger_balances_in_each_currency_after_random_days(abroad, pool, seed):
    """Orders in two currencies, repeats, splits, dividends and a rate that moves."""
    rng = random.Random(seed)
    prices: Prices = abroad.prices
    prices.euros = {"EEE", "FFF"}
    for session in SESSIONS:
        prices.eurusd[session] = D(rng.randrange(50, 200)) / 100 + D("0.0001234567")
        for ticker in ("AAA", "EEE", "FFF"):
            prices.opens[ticker, session] = D(rng.randrange(500, 2_000)) / 100
            if rng.random() < 0.3:
                ratio = rng.choice([D(1), D(2), D("1.5"), D("0.1")])
                paid = rng.choice([D(0), D("0.33")])
                prices.events.append(CorporateAction(ticker, session, ratio, paid))
    for session in SESSIONS:
        await abroad.open(session)
        legs = {t: rng.randrange(-300, 300) or 1 for t in ("AAA", "EEE", "FFF")}
        euros = 10 * prices.eurusd[session]
        command = abroad.command(legs, session, EEE=euros, FFF=euros)
        assert await abroad.execute(command) == await abroad.execute(command)
        await assert_balanced_in_each_currency(pool, abroad.account)


ENTRY = (
    "insert into entries (account, key, kind, session) values ($1, $2, 'fill', $3)"
    " returning entry_id"
)
POSTING = (
    "insert into postings (entry_id, line, account, book, amount, currency, foreign_amount)"
    " values ($1, $2, $3, $4, $5, $6, $7)"
)
Posted = tuple[str, str, str | None, str | None]


async def post(pool: Pool, account: str, *lines: Posted) -> None:
    """One entry of book, amount, currency and foreign amount a line, committed."""
    async with pool.acquire() as db, db.transaction():
        entry = await db.fetchval(ENTRY, account, "test", FRIDAY)
        for number, (book, amount, currency, foreign) in enumerate(lines):
            told = None if foreign is None else D(foreign)
            await db.execute(POSTING, entry, number, account, book, D(amount), currency, told)


GIVEN: Posted = ("exchange", "-1.25", "EUR", "-1.00")
TAKEN: Posted = ("exchange", "1.25", None, None)
PAID: Posted = ("cash", "-1.25", None, None)
BAD_ENTRIES: dict[str, tuple[Posted, ...]] = {
    "unbalanced in euros": (("fees", "1.25", "EUR", "0.99"), GIVEN, TAKEN, PAID),
    "unbalanced in dollars": (("fees", "1.24", "EUR", "1.00"), GIVEN, TAKEN, PAID),
    "across currencies": (("fees", "1.25", "EUR", "1.00"), PAID),
    "in the account's own as if foreign": (
        ("fees", "1.25", "USD", "1.00"),
        ("exchange", "-1.25", "USD", "-1.00"),
        TAKEN,
        PAID,
    ),
}


@pytest.mark.parametrize("case", BAD_ENTRIES)
async def test_the_database_refuses_an_entry_that_does_not_balance(desk, pool, case):
    await desk.open()
    with pytest.raises(PostgresError, match="not balanced"):
        await post(pool, desk.account, *BAD_ENTRIES[case])
    await post(pool, desk.account, ("fees", "1.25", "EUR", "1.00"), GIVEN, TAKEN, PAID)
    await assert_balanced_in_each_currency(pool, desk.account)


async def test_the_database_refuses_foreign_cash_and_half_of_a_foreign_amount(desk, pool):
    await desk.open()
    with pytest.raises(PostgresError, match="cash_is_own"):
        await post(pool, desk.account, ("cash", "-1.25", "EUR", "-1.00"))
    with pytest.raises(PostgresError, match="postings_foreign"):
        await post(pool, desk.account, ("fees", "1.25", "EUR", None))


async def test_a_share_that_changes_its_currency_is_not_mixed_in_the_books(abroad, pool):
    await abroad.open()
    await abroad.execute(abroad.command({"EEE": 100}, price=D("12.50")))
    await abroad.open(MONDAY)
    abroad.prices.euros = set()
    (order,) = (await abroad.sell("EEE", 50, MONDAY)).orders
    assert order.status is OrderStatus.REJECTED
    assert "held in EUR and trades in USD now" in order.reason
    abroad.prices.events = [CorporateAction("EEE", TUESDAY, D(2), D(0))]
    with pytest.raises(CurrencyChanged, match="EEE in another currency than USD"):
        await abroad.open(TUESDAY)


async def test_a_foreign_sale_waits_for_an_open_that_is_not_there_yet(abroad):
    await abroad.open()
    await abroad.execute(abroad.command({"EEE": 100}, price=D("12.50")))
    abroad.prices.last = MONDAY
    await abroad.open(MONDAY)
    (order,) = (await abroad.sell("EEE", 50, MONDAY)).orders
    assert order.status is OrderStatus.WORKING
    abroad.prices.last = TUESDAY
    (position,) = (await abroad.open(TUESDAY)).positions
    assert position.quantity == 50


# --- the made-up market, which has a share in euros and a file of rates -------------------------


def desk_on(folder: Path, pool: Pool, orchestrator: Pool) -> Desk:
    store = ReplayStore(folder)
    reads = ExecutionReads(ReplayMarket(store), ReplayFills(store), ReplayRates(store))
    broker = PaperBroker(fee_bps=D(10), slippage_bps=D(0))
    trading = Trading(pool, reads, broker, starting_cash=D(100_000), limits_of=lambda _: WIDE)
    return Desk(trading, Prices(), orchestrator)


@pytest.fixture
def fixture_desk(pool: Pool, orchestrator: Pool) -> Desk:
    return desk_on(FIXTURE, pool, orchestrator)


async def test_rates_that_cannot_be_read_cost_what_trades_in_other_currencies(
    pool, orchestrator, tmp_path
):
    folder = tmp_path / "prices"
    shutil.copytree(FIXTURE, folder)
    good = (folder / "fx.csv").read_text()
    (folder / "fx.csv").write_text(good + "2024-03-15,EURUSD,0,2024-03-15\n")
    as_of, after = date(2024, 3, 15), date(2024, 3, 18)

    # Shares in the account's own currency are bought and sold as ever; a foreign one is not.
    bad = desk_on(folder, pool, orchestrator)
    assert (await bad.open(as_of)).rates == ()
    close = (await bad.trading.reads.closes(["FOXT"], as_of, "USD"))["FOXT", as_of]
    assert close is not None
    command = bad.command({"FOXT": 50, "GOLF.DE": 20}, as_of, price=close.price)
    result = await bad.execute(command)
    by_ticker = {order.asset: order for order in result.orders}
    assert by_ticker["FOXT"].status is OrderStatus.FILLED
    assert by_ticker["GOLF.DE"].status is OrderStatus.REJECTED
    assert "exchange_rate: buy" in by_ticker["GOLF.DE"].reason
    assert not (await bad.open(after)).incomplete
    assert (await bad.sell("FOXT", 50, after)).fills

    # What is held in another currency has its last known value, and the account buys nothing.
    whole = desk_on(FIXTURE, pool, orchestrator)
    await whole.open(as_of)
    close = (await whole.trading.reads.closes(["GOLF.DE"], as_of, "USD"))["GOLF.DE", as_of]
    assert close is not None
    command = whole.command({"GOLF.DE": 20}, as_of, price=close.amount)
    assert (await whole.execute(command)).fills
    (folder / "fx.csv").write_text("nothing\n")
    held = replace(desk_on(folder, pool, orchestrator), account=whole.account)
    books = await held.open(after)
    assert re.search(r"GOLF.DE has no value: no EURUSD rate.*fx.csv, line", books.incomplete)
    assert books.positions[0].priced_on == after  # what was paid there
    assert not (await whole.open(date(2024, 3, 19))).incomplete
    await assert_balanced_in_each_currency(pool, whole.account)


async def test_the_fixtures_german_share_trades_through_eurusd(fixture_desk, pool):
    as_of, after = date(2024, 3, 15), date(2024, 3, 18)
    books = await fixture_desk.open(as_of)
    (rate,) = books.rates
    assert str(rate) == "EURUSD 1.1234 of 2024-03-15"
    close = (await fixture_desk.trading.reads.closes(["GOLF.DE"], as_of, "USD"))["GOLF.DE", as_of]
    assert close is not None
    assert close.amount is not None
    command = fixture_desk.command({"GOLF.DE": 20}, as_of, price=close.amount)
    (fill,) = (await fixture_desk.execute(command)).fills
    assert fill.session == after
    assert fill.foreign is not None
    # Monday's open comes before Monday's rate is told.
    assert (fill.foreign.price.currency, fill.foreign.rate.on) == ("EUR", as_of)
    assert fill.price.amount == fill.foreign.price.amount * D("1.1234")
    (position,) = (await fixture_desk.open(after)).positions
    assert position.foreign is not None
    assert position.foreign.rate.on == after
    await assert_balanced_in_each_currency(pool, fixture_desk.account)


async def test_the_fixtures_dividend_posts_cash(fixture_desk, pool):
    as_of, before, ex = date(2024, 3, 12), date(2024, 3, 13), date(2024, 3, 14)
    await fixture_desk.open(as_of)
    close = (await fixture_desk.trading.reads.closes(["FOXT"], as_of, "USD"))["FOXT", as_of]
    assert close is not None
    await fixture_desk.execute(fixture_desk.command({"FOXT": 50}, as_of, price=close.price))
    cash = (await fixture_desk.open(before)).cash.amount
    assert (await fixture_desk.open(ex)).cash.amount == cash + D("22.50")
    assert (await books_of(pool, fixture_desk.account))["dividends"] == D("-22.50")
    assert (await fixture_desk.open(ex)).cash.amount == cash + D("22.50")
