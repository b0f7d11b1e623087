"""Approved proposals on a real ledger: in time, near the price, and once."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from contracts.account import OrderStatus
from contracts.approval import Approval, Verdict
from contracts.execution import ExecuteDecisions
from contracts.types import Money
from libs.market.errors import NoHistory
from libs.market.source import FillPrice
from libs.runtime.data_version import reading, version_read
from libs.runtime.errors import DeskError
from services.execution.approvals import ApprovalTooOld, PriceDrifted, ProposalChanged
from services.execution.reads import ExecutionReads
from tests.integration.execution.conftest import FRIDAY, MONDAY, Desk, Prices, decision

D = Decimal


def now() -> datetime:
    """When it is asked, not when the tests were collected."""
    return datetime.now(UTC)


def approved(command: ExecuteDecisions, **fields: Any) -> ExecuteDecisions:
    """The command as it comes after a person's yes."""
    known = command.decision_validation.proposal_hash
    body = {
        "cycle_id": command.cycle_id,
        "op_id": command.op_id,
        "as_of": command.as_of,
        "proposal_hash": known,
        "validated_hash": known,
        "verdict": Verdict.APPROVE,
        "approver": "user",
        "decided_at": now(),
        "expires_at": now() + timedelta(hours=1),
        "not_after": now() + timedelta(minutes=15),
        **fields,
    }
    return command.model_copy(update={"approval": Approval.model_validate(body)})


async def refused(desk: Desk, command: ExecuteDecisions, by: type[DeskError]) -> None:
    """The command is refused and leaves the account as it was."""
    before = await desk.open()
    with pytest.raises(by, match="nothing was ordered"):
        await desk.execute(command)
    after = await desk.open()
    assert (after.cash, after.positions, after.open_orders) == (
        before.cash,
        before.positions,
        before.open_orders,
    )


async def test_what_was_approved_in_time_is_ordered_once(desk: Desk) -> None:
    await desk.open()
    command = approved(desk.command({"AAA": 40}))
    first = await desk.execute(command)
    assert [order.status for order in first.orders] == [OrderStatus.FILLED]
    assert await desk.execute(command) == first


async def test_an_approval_whose_time_has_passed_orders_nothing(desk: Desk) -> None:
    command = approved(desk.command({"AAA": 40}), not_after=now() - timedelta(seconds=60))
    await refused(desk, command, ApprovalTooOld)


async def test_another_hash_than_the_approved_one_orders_nothing(desk: Desk) -> None:
    other = (decision("AAA", 41, Money(amount=D(10))),)
    for fields in ({"validated_hash": "0" * 64}, {"verdict": Verdict.EDIT, "decisions": other}):
        await refused(desk, approved(desk.command({"AAA": 40}), **fields), ProposalChanged)


async def test_a_price_that_opens_far_from_the_approved_one_orders_nothing(desk: Desk) -> None:
    desk.prices.opens["AAA", MONDAY] = D("10.51")
    command = desk.command({"AAA": 40})
    await refused(desk, approved(command), PriceDrifted)
    # Whom nobody asked, the rules alone judge.
    result = await desk.execute(desk.command({"AAA": 40}))
    assert [order.status for order in result.orders] == [OrderStatus.FILLED]


async def test_a_price_that_opens_near_the_approved_one_is_ordered(desk: Desk) -> None:
    await desk.open(FRIDAY)
    desk.prices.opens["AAA", MONDAY] = D("10.5")
    result = await desk.execute(approved(desk.command({"AAA": 40})))
    assert [order.status for order in result.orders] == [OrderStatus.FILLED]


@dataclass
class Growing(Prices):
    """Prices of which the version "friday" ends on Friday."""

    async def next_open(self, ticker: str, after: date) -> FillPrice:
        self.reads.append(f"open {ticker} in {version_read()}")
        if version_read() == "friday" and after >= FRIDAY:
            raise NoHistory(f"{ticker} has no open after {after} yet")
        return await super().next_open(ticker, after)


@pytest.fixture
def growing(desk: Desk) -> Desk:
    """A folder to which Monday came after the cycle was accepted on Friday's version."""
    prices = Growing()
    reads = ExecutionReads(prices, prices, prices)  # type: ignore[arg-type]
    return Desk(replace(desk.trading, reads=reads), prices, desk.orchestrator)


@pytest.mark.parametrize("shares", [40, -40])
async def test_an_open_that_came_after_the_cycle_was_accepted_is_compared(
    growing: Desk, shares: int
) -> None:
    growing.prices.opens["AAA", MONDAY] = D(20)
    command = growing.command({"AAA": shares})
    with reading("friday"):
        await refused(growing, approved(command), PriceDrifted)


async def test_an_open_that_came_late_and_near_is_compared_and_not_filled_at(
    growing: Desk,
) -> None:
    growing.prices.opens["AAA", MONDAY] = D("10.5")
    await growing.open()
    with reading("friday"):
        command = approved(growing.command({"AAA": 40}))
        result = await growing.execute(command)
        assert await growing.execute(command) == result
        # Whom nobody asked reads its own version only.
        growing.prices.reads.clear()
        await growing.execute(growing.command({"BBB": 40}))
    assert [order.status for order in result.orders] == [OrderStatus.WORKING]
    assert "open BBB in friday" in growing.prices.reads
    assert "open BBB in None" not in growing.prices.reads
    (position,) = [p for p in (await growing.open(MONDAY)).positions if p.ticker == "AAA"]
    assert position.average_cost.amount == D("10.5")
