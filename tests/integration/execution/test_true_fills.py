"""Postgres refuses sending, never booking: each check that would refuse a true fill lets it pass on
a bound account, and still refuses it on any other."""

from decimal import Decimal

import asyncpg
import pytest

from contracts.halt import HaltTrading
from contracts.venue import LookVerdict, ReconcileAccount
from libs.postgres.pool import Pool
from services.execution.halt import halt_trading
from services.execution.venue.binding import reconcile_account
from tests.integration.execution.at_broker import FRIDAY, MONDAY, BoundDesk, at
from tests.integration.execution.conftest import Desk

D = Decimal


async def cash_of(desk: BoundDesk) -> Decimal:
    cash: Decimal = await desk.pool.fetchval(
        "select amount from balances where account = $1 and book = 'cash'", desk.account
    )
    return cash


async def shares_of(desk: BoundDesk, ticker: str) -> Decimal:
    shares: Decimal = await desk.pool.fetchval(
        "select quantity from balances where account = $1 and book = 'position' and ticker = $2",
        desk.account,
        ticker,
    )
    return shares


async def bought(desk: BoundDesk, quantity: int) -> None:
    """Shares of AAA, filled at Monday's open."""
    await desk.open(FRIDAY)
    await desk.order("AAA", quantity)
    await desk.rounds()
    desk.host.move(at("2026-11-30 14:31"))
    await desk.rounds()


async def test_a_fill_that_takes_cash_below_zero_is_booked_shown_and_stops_buys(
    bound: BoundDesk,
) -> None:
    await bound.open(FRIDAY)
    await bound.order("AAA", 100)
    await bound.rounds()
    bound.host.transfer(D(-99_900))
    bound.host.move(at("2026-11-30 14:31"))
    await bound.rounds()
    assert await cash_of(bound) == D(-900)
    look = await bound.look()
    assert look.verdict is LookVerdict.DIFFERS
    assert any("below zero" in it.desk for it in look.differences)
    bound.host.move(at("2026-11-30 22:00"))
    portfolio = await bound.open(MONDAY)  # its snapshot has cash below zero
    assert portfolio.cash.amount == D(-900)
    assert portfolio.halt is not None
    (order,) = (await bound.order("BBB", 1)).orders
    assert order.status.value == "rejected"


async def test_more_sold_than_held_is_booked_and_shown(bound: BoundDesk) -> None:
    await bought(bound, 10)
    bound.host.move(at("2026-11-30 22:00"))
    await bound.open(MONDAY)
    await bound.order("AAA", -10)
    await bound.rounds()
    order = next(o for o in bound.host.orders.values() if o["side"] == "sell")
    bound.host.now = at("2026-12-01 14:30")
    bound.host.fill(order)
    bound.host._trade(order, D(5), D(10))  # the broker sells five too many
    await bound.rounds()
    assert await shares_of(bound, "AAA") == D(-5)
    look = await bound.look()
    assert any("sold short" in it.desk for it in look.differences)


async def test_a_buy_that_fills_under_a_halt_is_booked(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 10)).orders
    await bound.rounds()
    bound.host.stuck_cancels = True
    request = HaltTrading(account=bound.account, reason="a test")
    await halt_trading("cli", request, pool=bound.pool)
    await bound.rounds()
    (sent,) = bound.host.orders.values()
    assert sent["status"] == "pending_cancel"
    bound.host.now = at("2026-11-30 14:30")
    bound.host.fill(sent)
    await bound.rounds()
    assert await shares_of(bound, "AAA") == D(10)
    status = await bound.pool.fetchval(
        "select status from orders where order_id = $1", order.order_id
    )
    assert status == "filled"


async def test_no_buy_is_sent_past_a_halt_or_a_difference_whatever_the_code_believes(
    bound: BoundDesk,
) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 10)).orders
    sent = "update venue_orders set state = 'sent', tries = tries + 1 where order_id = $1"
    bound.host.manual_order("ZZZ", "buy", 1)
    assert (await bound.look()).verdict is LookVerdict.DIFFERS
    with pytest.raises(asyncpg.CheckViolationError, match="halted"):
        await bound.pool.execute(sent, order.order_id)
    for other in bound.host.orders.values():
        other["status"] = "canceled"
    assert (await bound.look()).verdict is LookVerdict.AGREES
    await bound.pool.execute(sent, order.order_id)
    with pytest.raises(asyncpg.CheckViolationError, match="does not become"):
        await bound.pool.execute(
            "update venue_orders set state = 'intent' where order_id = $1", order.order_id
        )


async def test_what_was_refused_of_other_accounts_still_is(
    bound: BoundDesk, owner: Pool, desk: Desk
) -> None:
    other = desk.another()
    other.trading = desk.trading
    await other.open(FRIDAY.replace(year=2012, month=6, day=29))
    entry = "insert into entries (account, key, kind, session) values ($1, $2, 'fill', $3)"
    lines = (
        "insert into postings (entry_id, line, account, book, ticker, amount, quantity)"
        " select entry_id, $3, $1, $4, $5, $6, $7 from entries where account = $1 and key = $2"
    )
    for account, is_refused in ((other.account, True), (bound.account, False)):
        for book, ticker, amount, shares in (
            ("cash", None, D(-1_000_000), D(0)),
            ("position", "QQQ", D(-10), D(-1)),
        ):
            async with owner.acquire() as db:
                transaction = db.transaction()
                await transaction.start()
                await db.execute(entry, account, f"try/{book}", MONDAY)
                try:
                    await db.execute(lines, account, f"try/{book}", 1, book, ticker, amount, shares)
                    refused = False
                except asyncpg.CheckViolationError:
                    refused = True
                await transaction.rollback()
            assert refused is is_refused


async def test_a_person_reconciles_on_record_and_buys_are_free_again(bound: BoundDesk) -> None:
    await bought(bound, 10)
    bound.host.manual_trade("AAA", -4)
    desk, account = bound.venue_desk, bound.account
    shown = await reconcile_account("cli", ReconcileAccount(account=account), desk=desk)
    assert shown.hash is not None
    confirmed = ReconcileAccount(account=account, confirmed=shown.hash, reason="sold by hand")
    done = await reconcile_account("cli", confirmed, desk=desk)
    assert done.posted
    assert done.look.verdict is LookVerdict.AGREES
    assert await shares_of(bound, "AAA") == D(6)
    assert await cash_of(bound) == D(99_940)
    kept = await bound.pool.fetchrow(
        "select by_whom, reason from looks where account = $1 and reason <> ''", account
    )
    assert tuple(kept) == ("cli", "sold by hand")
    bound.host.move(at("2026-11-30 22:00"))
    assert (await bound.open(MONDAY)).halt is None


async def test_cash_that_moves_at_the_broker_is_booked_once(bound: BoundDesk) -> None:
    await bought(bound, 10)
    bound.host.transfer(D(250))
    bound.host.dividend("AAA", D("1.25"))
    for _ in range(3):
        assert (await bound.look()).verdict is LookVerdict.AGREES
    assert await cash_of(bound) == D("100151.25")
    bound.host.move(at("2026-11-30 22:00"))
    await bound.open(MONDAY)
    row = await bound.pool.fetchrow(
        "select paid_in, dividends from snapshots where account = $1 and session = $2",
        bound.account,
        MONDAY,
    )
    assert tuple(row) == (D(100_250), D("1.25"))
