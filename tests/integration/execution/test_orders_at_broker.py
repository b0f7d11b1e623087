"""Orders of a bound account: sent once, filled, booked by the broker's ids, never lost."""

from decimal import Decimal
from typing import Any

import pytest

from contracts.account import OrderStatus
from contracts.halt import HaltTrading
from contracts.venue import (
    BindAccount,
    CancelOrder,
    DifferenceKind,
    LookVerdict,
    VenueOrdersQuery,
    VenueState,
)
from libs.postgres.pool import Pool
from libs.runtime.errors import DeskError
from services.execution.halt import halt_trading
from services.execution.venue.binding import Terms, bind_account
from services.execution.venue.desk import NotLatest
from services.execution.venue.handler import cancel_order, show_orders
from tests.fakes.alpaca_trading import Fault, PaperHost
from tests.integration.execution.at_broker import (
    FRIDAY,
    MONDAY,
    TUESDAY,
    BoundDesk,
    at,
    bound_desk,
)
from tests.integration.execution.conftest import Desk

D = Decimal


async def holds(desk: BoundDesk) -> tuple[Decimal, dict[str, Decimal]]:
    rows = await desk.pool.fetch(
        "select book, ticker, amount, quantity from balances where account = $1", desk.account
    )
    cash = sum((row["amount"] for row in rows if row["book"] == "cash"), D(0))
    return cash, {row["ticker"]: row["quantity"] for row in rows if row["book"] == "position"}


async def test_a_ticker_that_the_broker_cannot_have_is_refused_by_name(bound: BoundDesk) -> None:
    (refused,) = (await bound.order("SAP.DE", 5)).orders
    assert refused.status is OrderStatus.REJECTED
    assert "SAP.DE is no ticker of a US exchange" in refused.reason
    (sent,) = (await bound.order("BRK.B", 5)).orders
    await bound.rounds()
    assert sent.status is OrderStatus.WORKING
    assert [order["symbol"] for order in bound.host.orders.values()] == ["BRK.B"]


async def test_a_buy_is_sent_after_the_close_and_filled_at_the_open(bound: BoundDesk) -> None:
    portfolio = await bound.open(FRIDAY)
    assert portfolio.venue is not None
    assert portfolio.venue.account_number == bound.host.number
    assert portfolio.cash.amount == D(100_000)
    (order,) = (await bound.order("AAA", 100)).orders
    assert order.status is OrderStatus.WORKING
    assert order.venue is not None
    assert order.venue.limit_price is not None
    assert order.venue.limit_price.amount == D("10.50")
    await bound.rounds()
    (sent,) = bound.host.orders.values()
    assert (sent["client_order_id"], sent["symbol"], sent["qty"]) == (
        str(order.order_id),
        "AAA",
        "100",
    )
    assert (sent["type"], sent["time_in_force"], sent["limit_price"]) == ("limit", "day", "10.50")
    assert (await bound.row(order.order_id)).state is VenueState.KNOWN
    bound.host.prices["AAA"] = D("10.1234")
    bound.host.move(at("2026-11-30 14:31"))
    await bound.rounds()
    assert await holds(bound) == (D("98987.66"), {"AAA": D(100)})
    assert (await bound.row(order.order_id)).state is VenueState.OVER
    bound.host.move(at("2026-11-30 22:00"))
    after = await bound.open(MONDAY)
    (position,) = after.positions
    assert (position.quantity, position.opened_on) == (D(100), MONDAY)
    (fill,) = await bound.pool.fetch(
        "select price, quantity, fee, session from fills where order_id = $1", order.order_id
    )
    assert tuple(fill) == (D("10.1234"), D(100), D(0), MONDAY)


@pytest.mark.parametrize("fault", list(Fault))
async def test_a_fault_of_the_post_neither_loses_nor_doubles_an_order(
    bound: BoundDesk, fault: Fault
) -> None:
    await bound.open(FRIDAY)
    bound.host.hang_s = 1.2
    bound.host.plan(fault)
    (order,) = (await bound.order("AAA", 10)).orders
    await bound.rounds()
    for _ in range(3):
        await bound.rounds()
        bound.looker.quiet_until = None
    assert list(bound.host.by_client) == [str(order.order_id)]
    assert (await bound.row(order.order_id)).state is VenueState.KNOWN
    bound.host.move(at("2026-11-30 14:31"))
    await bound.rounds()
    assert await holds(bound) == (D(99_900), {"AAA": D(10)})


async def test_a_refused_order_is_rejected(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 10)).orders
    await bound.look()
    account = bound.host
    original = account.answer

    def answer(method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if (method, path) == ("POST", "/v2/orders"):
            return 403, {"code": 40310000, "message": "insufficient buying power"}
        return original(method, path, query, body)

    account.answer = answer  # type: ignore[method-assign]
    await bound.rounds()
    row = await bound.row(order.order_id)
    assert (row.state, row.status) == (VenueState.OVER, "rejected")
    assert "insufficient buying power (40310000)" in row.words
    booked = await bound.pool.fetchrow(
        "select status, reason from orders where order_id = $1", order.order_id
    )
    assert booked["status"] == "rejected"
    assert "insufficient buying power" in booked["reason"]


async def test_a_refusal_after_an_unclear_answer_is_no_end(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    bound.host.late_s = 60
    bound.host.plan(Fault.LATE)
    (order,) = (await bound.order("AAA", 10)).orders
    await bound.rounds()
    original = bound.host.answer

    def answer(method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if (method, path) == ("POST", "/v2/orders"):
            return 403, {"code": 40310000, "message": "insufficient buying power"}
        return original(method, path, query, body)

    bound.host.answer = answer  # type: ignore[method-assign]
    await bound.rounds()
    row = await bound.row(order.order_id)
    assert (row.state, row.status) == (VenueState.SENT, "rejected")
    posts = dict(bound.host.posts)
    await bound.rounds()
    assert bound.host.posts == posts  # it is only looked for
    bound.host.move(at("2026-11-30 14:31"))  # the late acceptance comes before the open
    await bound.rounds()
    assert await holds(bound) == (D(99_900), {"AAA": D(10)})


async def test_what_was_not_sent_by_the_open_is_never_sent(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 10)).orders
    bound.host.move(at("2026-11-30 14:26"))
    await bound.rounds(2)
    row = await bound.row(order.order_id)
    assert (row.state, bound.host.posts) == (VenueState.NEVER, {})
    booked = await bound.pool.fetchrow(
        "select status, reason from orders where order_id = $1", order.order_id
    )
    assert booked["status"] == "cancelled"
    assert "had to be sent by 14:25 UTC" in booked["reason"]


async def test_a_lost_order_is_never_only_once_its_session_is_over(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    bound.host.plan(Fault.BROKEN)
    (order,) = (await bound.order("AAA", 10)).orders
    await bound.rounds()
    bound.host.move(at("2026-11-30 14:40"))
    await bound.rounds(2)
    assert (await bound.row(order.order_id)).state is VenueState.SENT
    assert len(bound.host.posts) == 1
    bound.host.move(at("2026-11-30 21:30"))
    await bound.rounds()
    assert (await bound.row(order.order_id)).state is VenueState.NEVER
    assert bound.host.posts[str(order.order_id)] == 1


async def test_fills_in_parts_and_repeated_are_booked_once(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 100)).orders
    await bound.rounds()
    bound.host.repeat_activities = True
    bound.host.now = at("2026-11-30 14:30")
    (sent,) = bound.host.orders.values()
    bound.host.fill(sent, D(30))
    await bound.rounds(2)
    assert await holds(bound) == (D(99_700), {"AAA": D(30)})
    assert (await bound.row(order.order_id)).state is VenueState.KNOWN
    bound.host.fill(sent, D(20))
    bound.host.move(at("2026-11-30 21:30"))
    await bound.rounds(2)
    assert await holds(bound) == (D(99_500), {"AAA": D(50)})
    booked = await bound.pool.fetchrow("select * from orders where order_id = $1", order.order_id)
    assert (booked["status"], booked["quantity"]) == ("filled", D(50))
    assert "50 of 100 shares were filled, the rest is expired" in booked["reason"]
    portfolio = await bound.open(MONDAY)
    assert portfolio.cash_free == D(99_500)


async def test_a_fill_after_the_end_is_booked_and_told(bound: BoundDesk, postgres: Pool) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 10)).orders
    await bound.rounds()
    (sent,) = bound.host.orders.values()
    sent["status"] = "canceled"
    await bound.rounds()
    assert (await bound.row(order.order_id)).state is VenueState.OVER
    bound.host.now = at("2026-11-30 14:30")
    bound.host.fill(sent, D(4))
    sent["status"] = "canceled"
    await bound.rounds()
    assert await holds(bound) == (D(99_960), {"AAA": D(4)})
    booked = await bound.pool.fetchrow("select * from orders where order_id = $1", order.order_id)
    assert booked["status"] == "cancelled"
    told = await postgres.fetchval(
        "select count(*) from state_events where type = 'late_fill' and cycle_id = $1",
        booked["cycle_id"],
    )
    assert told == 1
    assert (await bound.look()).verdict is LookVerdict.AGREES


async def test_a_halt_cancels_working_buys_and_says_what_is_pending(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    orders = [(await bound.order(ticker, 10)).orders[0] for ticker in ("AAA", "BBB", "CCC")]
    first = await bound.row(orders[0].order_id)
    async with bound.pool.acquire() as db:
        await db.execute(
            "update venue_orders set state = 'sent', tries = 1 where order_id = $1", first.order_id
        )
    await bound.rounds()
    bound.host.stuck_cancels = True
    request = HaltTrading(account=bound.account, reason="a test")
    answer = await halt_trading("cli", request, pool=bound.pool, venue_desk=bound.venue_desk)
    assert (answer.cancelled, answer.pending) == (0, 3)
    posts = dict(bound.host.posts)
    await bound.rounds(2)
    assert bound.host.posts == posts
    assert {order["status"] for order in bound.host.orders.values()} == {"pending_cancel"}
    bound.host.move(at("2026-11-30 21:30"))
    # What the broker filled under the halt is true all the same.
    await bound.rounds()
    assert (await bound.look()).verdict is LookVerdict.AGREES


async def test_a_halt_ends_what_was_never_sent(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 10)).orders
    request = HaltTrading(account=bound.account, reason="a test")
    answer = await halt_trading("cli", request, pool=bound.pool, venue_desk=bound.venue_desk)
    assert (answer.cancelled, answer.pending) == (1, 0)
    await bound.rounds()
    assert bound.host.posts == {}
    assert (await bound.row(order.order_id)).state is VenueState.NEVER


async def test_one_order_can_be_taken_back_over_night(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 10)).orders
    await bound.rounds()
    asked = CancelOrder(order_id=order.order_id, reason="changed my mind")
    answer = await cancel_order("cli", asked, desk=bound.venue_desk)
    assert not answer.confirmed  # nobody runs the loop here
    await bound.rounds(2)
    answer = await cancel_order("cli", asked, desk=bound.venue_desk)
    assert answer.confirmed
    assert answer.order.status == "canceled"
    shown = await show_orders(VenueOrdersQuery(order_id=order.order_id), desk=bound.venue_desk)
    states = [change.state for change in shown.orders[0].life]
    assert states[0] is VenueState.INTENT
    assert states[-1] is VenueState.OVER


async def test_only_a_fresh_flat_account_is_bound(
    pool: Pool, orchestrator: Pool, host: PaperHost, desk: Desk
) -> None:
    host.manual_trade("AAA", 5)
    async with bound_desk(pool, orchestrator, host, desk) as made:
        answer = await made.bind()
        assert not answer.bound
        assert any("holds 1 positions" in it for it in answer.findings)
        assert any("traded before" in it for it in answer.findings)
        host.manual_trade("AAA", -5)
        assert not (await made.bind()).bound
        assert await made.venue_desk.bound(made.account) is None


async def test_an_account_that_has_decided_is_not_bound(
    pool: Pool, orchestrator: Pool, host: PaperHost, desk: Desk
) -> None:
    async with bound_desk(pool, orchestrator, host, desk) as made:
        await made.open(FRIDAY)
        with pytest.raises(DeskError, match="exists already, and a bound one is new"):
            await made.bind()
    assert not host.no_shorting


async def test_binding_is_refused_where_the_broker_does_not_set_long_only(
    pool: Pool, orchestrator: Pool, host: PaperHost, desk: Desk
) -> None:
    host.settable = False
    async with bound_desk(pool, orchestrator, host, desk) as made:
        with pytest.raises(DeskError, match="long only and cash only"):
            await made.bind()
        assert await made.venue_desk.bound(made.account) is None


async def test_a_trading_key_that_other_processes_read_data_with_is_not_bound(
    pool: Pool, orchestrator: Pool, host: PaperHost, desk: Desk
) -> None:
    async with bound_desk(pool, orchestrator, host, desk) as made:
        made.venue_desk.shares_key = made.venue_desk.is_apart = True
        refused = await made.bind()
        assert not refused.bound
        assert "make a second paper account" in refused.findings[0]
        made.venue_desk.is_apart = False
        assert (await made.bind()).changed


async def test_binding_is_for_ever_and_of_one_number(bound: BoundDesk) -> None:
    assert (bound.host.no_shorting, bound.host.multiplier) == (True, "1")
    again = await bound.bind()
    assert (again.bound, again.changed) == (True, False)
    with pytest.raises(Exception, match="permission denied"):
        await bound.pool.execute("update accounts set venue_account = 'X'")
    bound.host.number = "PAOTHER"
    look = await bound.look()
    assert look.verdict is LookVerdict.UNKNOWN
    assert "is bound" in look.note


async def test_a_bound_account_decides_for_the_newest_session_on_live_prices_only(
    bound: BoundDesk,
) -> None:
    with pytest.raises(NotLatest, match="newest session"):
        await bound.open(FRIDAY.replace(day=25))
    await bound.open(FRIDAY)
    bound.host.move(at("2026-11-30 22:00"))
    with pytest.raises(NotLatest):
        await bound.execute(bound.decided({"AAA": 1}, FRIDAY))
    bound.venue_desk.is_live = False
    with pytest.raises(NotLatest, match="live prices"):
        await bound.open(MONDAY)


async def test_without_an_answer_nothing_is_decided_and_nothing_sent(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    await bound.order("AAA", 10)
    bound.host.deleted = True
    await bound.rounds(2)
    assert bound.host.posts == {}
    bound.host.move(at("2026-11-30 22:00"))
    with pytest.raises(DeskError, match="unknown"):
        await bound.open(MONDAY)


async def test_five_days_asleep_each_fill_belongs_to_its_session(bound: BoundDesk) -> None:
    await bound.open(FRIDAY)
    (order,) = (await bound.order("AAA", 100)).orders
    await bound.rounds()
    bound.host.move(at("2026-12-04 22:00"))
    after = await bound.open(FRIDAY.replace(month=12, day=4))
    (position,) = after.positions
    assert position.opened_on == MONDAY
    snapshots = await bound.pool.fetch(
        "select session, cash from snapshots where account = $1 order by session", bound.account
    )
    assert [row["session"] for row in snapshots][:3] == [FRIDAY, MONDAY, TUESDAY]
    assert [row["cash"] for row in snapshots][:3] == [D(100_000), D(99_000), D(99_000)]
    assert order.order_id is not None


async def test_a_manual_sale_is_found_blocks_buys_and_exits_sell_what_both_hold(
    bound: BoundDesk,
) -> None:
    await bound.open(FRIDAY)
    await bound.order("AAA", 100)
    await bound.rounds()
    bound.host.move(at("2026-11-30 14:31"))
    await bound.rounds()
    bound.host.manual_trade("AAA", -40)
    look = await bound.look()
    assert look.verdict is LookVerdict.DIFFERS
    kinds = {(it.kind, it.about) for it in look.differences}
    assert (DifferenceKind.SHARES, "AAA") in kinds
    assert (DifferenceKind.CASH, "") in kinds
    bound.host.move(at("2026-11-30 22:00"))
    portfolio = await bound.open(MONDAY)
    assert portfolio.halt is not None
    assert portfolio.halt.remedy == f"deskbus account reconcile {bound.account}"
    (bought,) = (await bound.order("BBB", 10)).orders
    assert bought.status is OrderStatus.REJECTED
    (sold,) = (await bound.order("AAA", -100)).orders
    assert (sold.status, sold.quantity) == (OrderStatus.WORKING, D(60))
    await bound.rounds()
    bound.host.move(at("2026-12-01 14:31"))
    await bound.rounds()
    assert bound.host.positions["AAA"] == 0
    _, held = await holds(bound)
    assert held["AAA"] == D(40)


async def test_another_number_than_shown_is_not_bound(
    pool: Pool, orchestrator: Pool, host: PaperHost, desk: Desk
) -> None:
    async with bound_desk(pool, orchestrator, host, desk) as made:
        terms = Terms(made.venue_desk, made._latest, made._limits, lambda _: "USD")
        shown = await bind_account("cli", BindAccount(account=made.account), terms=terms)
        assert (shown.bound, len(shown.to_set)) == (False, 2)
        request = BindAccount(account=made.account, number="PAOTHER")
        with pytest.raises(DeskError, match="not of PAOTHER"):
            await bind_account("cli", request, terms=terms)
