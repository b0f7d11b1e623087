"""Both books of a bound account: what differs, what blocks, and what the desk does at a stop."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import asyncpg
import pytest

from contracts.account import OrderStatus
from contracts.capital import MoveCash
from contracts.exit_signal import HoldingsQuery
from contracts.venue import (
    DESK_STOPS,
    DifferenceKind,
    LookVerdict,
    ReconcileAccount,
    VenueQuery,
    VenueState,
)
from libs.market.source import CorporateAction
from libs.postgres.pool import EXECUTION_ROLE, OWNER_ROLE
from libs.postgres.retention import retain_looks
from libs.runtime.errors import DeskError
from services.execution.capital.handler import move_cash
from services.execution.handler import show_holdings
from services.execution.store import read_halts
from services.execution.venue import store
from services.execution.venue.binding import reconcile_account
from services.execution.venue.handler import show_standing
from tests.fakes.alpaca_trading import Fault
from tests.integration.execution.at_broker import (
    FRIDAY,
    MONDAY,
    TUESDAY,
    BoundDesk,
    at,
)
from tests.integration.own_servers import OwnServers

D = Decimal


async def entered(desk: BoundDesk, quantity: int) -> None:
    """Shares of AAA with a plan, so with a stop at 9.90, filled at Monday's open."""
    await desk.open(FRIDAY)
    command = desk.planned("AAA", quantity)
    await desk.execute(command)
    await desk.rounds()
    desk.host.move(at("2026-11-30 14:31"))
    await desk.rounds()


async def stops(desk: BoundDesk) -> list[tuple[str, Decimal, str]]:
    rows = await desk.pool.fetch(
        "select status, quantity, reason from orders where account = $1 and type = 'stop'"
        " order by placed_at",
        desk.account,
    )
    return [(row["status"], row["quantity"], row["reason"]) for row in rows]


async def test_a_stop_that_was_reached_is_sold_at_the_next_open(bound: BoundDesk) -> None:
    await entered(bound, 100)
    assert await stops(bound) == [("waiting", D(100), DESK_STOPS)]
    shown = await show_holdings(HoldingsQuery(account=bound.account), trading=bound.trading)
    assert shown.venue == (await bound.bound()).bound
    bound.prices.lows["AAA", MONDAY] = D("9.80")
    bound.host.move(at("2026-11-30 22:00"))
    await bound.open(MONDAY)
    ((status, _, reason),) = await stops(bound)
    assert (status, reason) == (
        "waiting",
        f"{DESK_STOPS}; reached on {MONDAY}, sold at the next open",
    )
    await bound.rounds()
    sale = next(o for o in bound.host.orders.values() if o["side"] == "sell")
    assert (sale["type"], sale["time_in_force"], sale["qty"]) == ("market", "day", "100")
    bound.host.move(at("2026-12-01 14:31"))
    await bound.rounds()
    assert bound.host.positions["AAA"] == 0
    assert [status for status, _, _ in await stops(bound)] == ["cancelled"]
    assert (await bound.look()).verdict is LookVerdict.AGREES


async def test_a_sale_filled_in_part_leaves_a_stop_for_what_is_held_at_once(
    bound: BoundDesk,
) -> None:
    await entered(bound, 100)
    bound.prices.lows["AAA", MONDAY] = D("9.80")
    bound.host.move(at("2026-11-30 22:00"))
    await bound.open(MONDAY)
    await bound.rounds()
    sale = next(o for o in bound.host.orders.values() if o["side"] == "sell")
    bound.host.now = at("2026-12-01 14:31")
    bound.host.fill(sale, D(40))
    await bound.rounds(2)
    ((status, quantity, reason),) = await stops(bound)
    assert (status, quantity) == ("waiting", D(60))
    assert "cut from 100 to 60 shares: no more are held" in reason
    bound.host.move(at("2026-12-01 22:00"))  # the rest expired
    await bound.open(TUESDAY)
    await bound.rounds()
    bound.host.move(at("2026-12-02 14:31"))
    await bound.rounds()
    assert bound.host.positions["AAA"] == 0
    assert [status for status, _, _ in await stops(bound)] == ["cancelled"]


@pytest.mark.parametrize(("sold", "left"), [(40, ("waiting", D(60))), (100, ("cancelled", D(100)))])
async def test_a_sale_by_hand_leaves_a_stop_for_what_is_held_once_it_is_taken_over(
    bound: BoundDesk, sold: int, left: tuple[str, Decimal]
) -> None:
    await entered(bound, 100)
    bound.host.manual_trade("AAA", -sold)
    shown = await reconcile_account(
        "cli", ReconcileAccount(account=bound.account), desk=bound.venue_desk
    )
    why = ReconcileAccount(account=bound.account, confirmed=shown.hash, reason="sold by hand")
    done = await reconcile_account("cli", why, desk=bound.venue_desk)
    assert (done.posted, done.look.verdict) == (True, LookVerdict.AGREES)
    ((status, quantity, _),) = await stops(bound)
    assert (status, quantity) == left


async def test_a_stop_whose_sale_was_refused_is_sold_at_the_open_after(bound: BoundDesk) -> None:
    await entered(bound, 10)
    bound.prices.lows["AAA", MONDAY] = D("9.80")
    bound.host.move(at("2026-11-30 22:00"))
    await bound.open(MONDAY)
    bound.host.move(at("2026-12-01 14:27"))  # nobody was there to send it
    await bound.rounds(2)
    bound.host.move(at("2026-12-01 22:00"))
    await bound.open(TUESDAY)
    await bound.rounds()
    bound.host.move(at("2026-12-02 14:31"))
    await bound.rounds()
    assert bound.host.positions["AAA"] == 0


async def test_the_simulators_steps_are_off(bound: BoundDesk) -> None:
    await entered(bound, 10)
    bound.prices.events.append(CorporateAction("AAA", MONDAY, D(1), D("0.50")))
    bound.host.move(at("2026-11-30 22:00"))
    portfolio = await bound.open(MONDAY)
    assert portfolio.cash.amount == D(99_900)
    bound.prices.events.append(CorporateAction("AAA", TUESDAY, D(1), D("0.50")))
    bound.host.move(at("2026-12-01 22:00"))
    portfolio = await bound.open(TUESDAY)
    assert portfolio.cash.amount == D(99_900)
    look = await bound.look()
    assert look.verdict is LookVerdict.AGREES  # it blocks nothing
    ((kind, about),) = {(it.kind, it.about) for it in look.differences}
    assert (kind, about) == (DifferenceKind.DIVIDEND, "AAA")
    assert portfolio.halt is None


async def test_a_split_that_both_sides_have_is_booked(bound: BoundDesk) -> None:
    await entered(bound, 10)
    bound.host.move(at("2026-11-30 22:00"))
    await bound.open(MONDAY)
    bound.prices.events.append(CorporateAction("AAA", TUESDAY, D(4), D(0)))
    bound.host.split("AAA", 4)
    bound.host.move(at("2026-12-01 22:00"))
    portfolio = await bound.open(TUESDAY)
    (position,) = portfolio.positions
    assert position.quantity == D(40)
    ((_, quantity, _),) = await stops(bound)
    assert quantity == D(40)
    assert (await bound.look()).verdict is LookVerdict.AGREES


async def test_a_split_that_only_the_market_source_has_blocks_its_ticker(bound: BoundDesk) -> None:
    await entered(bound, 10)
    bound.host.move(at("2026-11-30 22:00"))
    await bound.open(MONDAY)
    bound.prices.events.append(CorporateAction("AAA", TUESDAY, D(4), D(0)))
    bound.host.move(at("2026-12-01 22:00"))
    portfolio = await bound.open(TUESDAY)
    assert portfolio.halt is None
    (sold,) = (await bound.order("AAA", -10)).orders
    assert sold.status is OrderStatus.REJECTED
    assert "split" in sold.reason
    (bought,) = (await bound.order("BBB", 10)).orders
    assert bought.status is OrderStatus.WORKING
    assert any(it.kind is DifferenceKind.SPLIT for it in (await bound.look()).differences)
    bound.host.split("AAA", 4)  # the broker comes to it later
    look = await bound.look()
    assert (look.verdict, look.differences) == (LookVerdict.AGREES, ())


async def test_a_split_that_only_the_broker_has_blocks_buys(bound: BoundDesk) -> None:
    await entered(bound, 10)
    bound.host.split("AAA", 2)
    look = await bound.look()
    assert look.verdict is LookVerdict.DIFFERS


async def test_a_foreign_order_blocks_buys_and_is_never_touched(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    await bound.order("AAA", 10)
    foreign = bound.host.manual_order("ZZZ", "buy", 3)
    await bound.rounds(2)
    assert bound.host.posts == {}
    assert foreign["status"] == "accepted"
    look = await bound.look()
    assert [it.kind for it in look.differences] == [DifferenceKind.FOREIGN_ORDER]
    foreign["status"] = "canceled"
    await bound.rounds(2)
    assert len(bound.host.posts) == 1


async def test_clocks_more_than_a_minute_apart_send_nothing(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 10)).orders
    host = bound.host
    for wrong in (90, -90):
        off = timedelta(seconds=wrong)
        bound.sender.clock = bound.looker.clock = lambda off=off: host.time() + off
        await bound.rounds(2)
        # A look that is nearly a minute old makes it neither better nor worse.
        host.move(host.now + timedelta(seconds=55))
        await bound.sender.round_of(await bound.bound())
        assert host.posts == {}
        assert "clock says" in (await bound.row(order.order_id)).words
    bound.sender.clock = bound.looker.clock = lambda: host.time() + timedelta(seconds=20)
    await bound.look()
    bound.sender.looked.clear()
    assert (await bound.look()).verdict is LookVerdict.AGREES
    await bound.rounds()
    assert len(host.posts) == 1


async def test_an_account_that_may_borrow_again_buys_nothing(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    await bound.order("AAA", 10)
    bound.host.multiplier = "4"
    await bound.rounds(2)
    assert bound.host.posts == {}
    bound.host.multiplier = "1"
    await bound.rounds(2)
    assert len(bound.host.posts) == 1


async def test_an_account_is_blocked_since_its_books_began_to_differ(bound: BoundDesk) -> None:
    """However often it is looked, whatever else differs by then, and until they agree."""

    async def since() -> datetime | None:
        async with bound.pool.acquire() as db:
            halts = await read_halts(db)
        return next((it.since for it in halts if it.account == bound.account), None)

    start = bound.host.now
    await bound.look()
    assert await since() is None
    bound.host.cash += 5
    for minutes in (5, 10, 15):
        bound.host.move(start + timedelta(minutes=minutes))
        bound.host.cash += minutes == 10
        bound.host.deleted = minutes == 15  # no answer ends nothing
        await bound.look()
        assert await since() == start + timedelta(minutes=5)
    bound.host.deleted = False
    bound.host.cash -= 6
    await bound.look()
    assert await since() is None
    bound.host.cash += 1
    bound.host.move(start + timedelta(minutes=20))
    await bound.look()
    assert await since() == start + timedelta(minutes=20)


async def test_parts_of_a_cent_are_no_difference_after_a_reconciliation_either(
    bound: BoundDesk,
) -> None:
    host = bound.host
    for as_of, tickers, opens in (
        (FRIDAY, ("AAA", "BBB", "CCC", "DDD"), "2026-11-30 14:31"),
        (MONDAY, ("EEE", "FFF", "GGG", "HHH"), "2026-12-01 14:31"),
    ):
        await bound.open(as_of)
        for ticker in tickers:
            host.prices[ticker] = D("9.9953")  # 10.00 in whole cents
            await bound.order(ticker, 1)
        await bound.rounds()
        host.move(at(opens))
        for ticker in tickers:
            host.dividend(ticker, D("1.0049"))
        await bound.rounds(2)
        assert (await bound.look()).verdict is LookVerdict.AGREES
        host.cash -= 5
        request = ReconcileAccount(account=bound.account)
        shown = await reconcile_account("cli", request, desk=bound.venue_desk)
        why = ReconcileAccount(account=bound.account, confirmed=shown.hash, reason="a fee")
        done = await reconcile_account("cli", why, desk=bound.venue_desk)
        assert (done.posted, done.look.verdict) == (True, LookVerdict.AGREES)
        host.move(at("2026-11-30 22:00") if as_of is FRIDAY else at("2026-12-01 22:00"))


async def test_a_fill_that_is_listed_late_is_a_difference_until_it_comes(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 10)).orders
    await bound.rounds()
    bound.host.move(at("2026-11-30 14:31"))
    fill = bound.host.listed[-1]
    bound.host.listed.remove(fill)
    look = await bound.look()
    kinds = {it.kind for it in look.differences}
    assert kinds == {DifferenceKind.CASH, DifferenceKind.SHARES, DifferenceKind.ORDER}
    assert (await bound.row(order.order_id)).state is VenueState.KNOWN
    bound.host.listed.append(fill)
    assert (await bound.look()).verdict is LookVerdict.AGREES
    assert (await bound.row(order.order_id)).state is VenueState.OVER


@pytest.mark.parametrize("path", ["account", "positions", "orders", "account/activities", "clock"])
@pytest.mark.parametrize("fault", [Fault.HTML, Fault.CUT, Fault.RESET, Fault.BUSY, Fault.HANG])
async def test_half_an_answer_is_unknown_and_nothing_is_booked(
    bound: BoundDesk, path: str, fault: Fault
) -> None:
    bound.host.hang_s = 1.1
    bound.host.plan(fault, f"GET /v2/{path}")
    look = await bound.look()
    assert look.verdict is LookVerdict.UNKNOWN
    assert look.note
    assert (await bound.look()).verdict is LookVerdict.AGREES


async def test_cash_of_a_bound_account_moves_at_the_broker_only(bound: BoundDesk) -> None:
    request = MoveCash(account=bound.account, kind="deposit", amount=D(10))
    with pytest.raises(DeskError, match="move cash there"):
        await move_cash("cli", request, trading=bound.trading)


async def test_doctor_has_a_line_of_each_thing(bound: BoundDesk) -> None:
    standing = await show_standing(VenueQuery(), desk=bound.venue_desk)
    lines = {finding.name: finding for finding in standing.findings}
    assert lines["key"].said.startswith("PKMA...")
    assert "never met" in lines["host"].said
    assert lines["account"].ok
    assert lines["stops"].ok is None
    assert "data key" not in lines
    bound.venue_desk.shares_key = True
    standing = await show_standing(VenueQuery(), desk=bound.venue_desk)
    [shared] = [finding for finding in standing.findings if finding.name == "data key"]
    assert not shared.ok
    bound.host.deleted = True
    standing = await show_standing(VenueQuery(), desk=bound.venue_desk)
    assert any(finding.name == "broker" and not finding.ok for finding in standing.findings)


async def test_looks_that_found_nothing_new_are_dropped_with_their_month(
    bound: BoundDesk, servers: OwnServers
) -> None:
    """What differed, since when, until when, and who settled it stays, and the newest look."""
    for cash in (0, 0, 5, 5, 0):
        bound.host.cash += cash
        await bound.look()
        bound.host.cash -= cash
        if not cash:
            await bound.look()
    request = ReconcileAccount(account=bound.account)
    bound.host.cash -= 1
    shown = await reconcile_account("cli", request, desk=bound.venue_desk)
    why = ReconcileAccount(account=bound.account, confirmed=shown.hash, reason="a fee")
    await reconcile_account("cli", why, desk=bound.venue_desk)
    await bound.look()
    newest = await bound.look()
    dsn = servers.postgres_dsn(OWNER_ROLE)
    found = "select number, verdict, by_whom from looks where account = $1 order by number"
    before = await bound.pool.fetch(found, bound.account)
    await retain_looks(dsn, 1)
    assert await bound.pool.fetch(found, bound.account) == before, "this month stays"

    await retain_looks(dsn, 1, today=date(2100, 1, 1))

    after = await bound.pool.fetch(found, bound.account)
    assert [(row["verdict"], row["by_whom"]) for row in after] == [
        ("agrees", "execution"),
        ("differs", "execution"),
        ("agrees", "execution"),
        ("differs", "execution"),
        ("differs", "cli"),
        ("agrees", "execution"),
        ("agrees", "execution"),
    ]
    assert after[-1] == before[-1]
    async with bound.pool.acquire() as db:
        kept = await store.newest_look(db, bound.account)
    assert kept is not None
    assert kept.at == newest.at
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await retain_looks(servers.postgres_dsn(EXECUTION_ROLE), 1)
