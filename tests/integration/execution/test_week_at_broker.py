"""A week by the broker's clock: a half day, a holiday, a split, a dividend and a sale by hand.

Nothing but the desk's own messages and the rounds of the loop move it.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from contracts.account import OrderStatus
from contracts.venue import DifferenceKind, LookVerdict, ReconcileAccount
from libs.market.source import CorporateAction
from libs.postgres.pool import Pool
from services.execution.venue.binding import reconcile_account
from tests.fakes.alpaca_trading import PaperHost, paper_host
from tests.integration.execution.at_broker import BoundDesk, bound_desk
from tests.integration.execution.conftest import Desk

D = Decimal
MONDAY = date(2026, 12, 21)
TUESDAY = date(2026, 12, 22)
WEDNESDAY = date(2026, 12, 23)
HALF_DAY = date(2026, 12, 24)  # it closes at 18:00 UTC; the 25th is a holiday
AFTER = date(2026, 12, 28)


@pytest.fixture
def host() -> Iterator[PaperHost]:
    start = datetime(2026, 12, 21, 22, 0, tzinfo=UTC)
    with paper_host(PaperHost(number="PWEEK0000001", now=start, seed=3, partly=0.5)) as running:
        yield running


async def evening(desk: BoundDesk, as_of: date, **legs: int) -> list[OrderStatus]:
    """40 minutes after the close: decide and send."""
    desk.host.move(desk.host.calendar.close(as_of) + timedelta(minutes=40))
    await desk.open(as_of)
    if not legs:
        return []
    result = await desk.execute(desk.decided(legs, as_of))
    await desk.rounds(2)
    return [order.status for order in result.orders if order.type.value == "market"]


async def opened(desk: BoundDesk, session: date) -> None:
    """The open, and what the loop does around it."""
    desk.host.move(desk.host.calendar.open(session) + timedelta(minutes=1))
    await desk.rounds(2)


async def test_a_week(pool: Pool, orchestrator: Pool, host: PaperHost, desk: Desk) -> None:
    async with bound_desk(pool, orchestrator, host, desk, cooling_off=0) as bound:
        await bound.bind()
        assert await evening(bound, MONDAY, AAA=100, BBB=50) == [OrderStatus.WORKING] * 2
        await opened(bound, TUESDAY)
        # A dividend that the broker pays, and one that it does not.
        host.dividend("AAA", D("12.50"))
        bound.prices.events.append(CorporateAction("BBB", WEDNESDAY, D(1), D("0.25")))
        assert await evening(bound, TUESDAY, CCC=10) == [OrderStatus.WORKING]
        await opened(bound, WEDNESDAY)
        assert await evening(bound, WEDNESDAY, BBB=-50) == [OrderStatus.WORKING]
        # The half day: a split that both have, after the open of which somebody sells by hand.
        bound.prices.events.append(CorporateAction("AAA", HALF_DAY, D(2), D(0)))
        host.split("AAA", 2)
        host.prices["AAA"] = D(5)
        await opened(bound, HALF_DAY)
        host.manual_trade("AAA", -20)
        bound.prices.closes["AAA", HALF_DAY] = D(5)
        statuses = await evening(bound, HALF_DAY, DDD=10, AAA=-200)
        assert statuses == [OrderStatus.WORKING, OrderStatus.REJECTED]  # the sale, no buy
        look = await bound.look()
        assert look.verdict is LookVerdict.DIFFERS
        assert {it.kind for it in look.differences} >= {DifferenceKind.SHARES, DifferenceKind.CASH}
        # Nobody trades on the holiday; the sale of what both hold waits until Monday.
        host.move(datetime(2026, 12, 25, 20, 0, tzinfo=UTC))
        await bound.rounds(2)
        assert host.positions["AAA"] == D(180)
        await opened(bound, AFTER)
        assert host.positions["AAA"] == 0
        request = ReconcileAccount(account=bound.account)
        shown = await reconcile_account("cli", request, desk=bound.venue_desk)
        confirmed = ReconcileAccount(
            account=bound.account, confirmed=shown.hash, reason="20 were sold by hand"
        )
        done = await reconcile_account("cli", confirmed, desk=bound.venue_desk)
        assert done.look.verdict is LookVerdict.AGREES
        bound.prices.closes["AAA", AFTER] = D(5)
        assert await evening(bound, AFTER, DDD=10) == [OrderStatus.WORKING]
        snapshots = await pool.fetch(
            "select session from snapshots where account = $1 order by session", bound.account
        )
        days = [row["session"] for row in snapshots]
        assert days == [MONDAY, TUESDAY, WEDNESDAY, HALF_DAY, AFTER]
        cash = await pool.fetchval(
            "select amount from balances where account = $1 and book = 'cash'", bound.account
        )
        assert cash == host.cash
        assert len(host.posts) == 6
        assert set(host.posts.values()) == {1}
