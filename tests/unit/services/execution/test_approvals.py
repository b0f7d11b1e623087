"""What execution accepts as approved."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.account import AccountLimits
from contracts.approval import Approval, Verdict
from contracts.execution import ExecuteDecisions
from contracts.message import Pipeline
from contracts.risk import DecisionAction, DecisionValidation, PortfolioDecision
from contracts.types import ExchangeRate, Money
from libs.broker.broker import Opening
from libs.quant.exchange import PriceMark
from libs.quant.risk.evaluation import proposal_hash
from services.execution.account import Quotes
from services.execution.approvals import (
    ApprovalTooOld,
    PriceDrifted,
    ProposalChanged,
    require_approved,
    require_in_time,
    require_near,
)
from tests.fakes.proposed import DECISIONS, HASH, decision

CYCLE = UUID("11111111-2222-3333-4444-555555555555")
DAY = date(2012, 6, 29)
NOW = datetime(2026, 11, 22, 6, tzinfo=UTC)


def approval(decisions: tuple[PortfolioDecision, ...] = (), **fields: Any) -> Approval:
    body = {
        "cycle_id": CYCLE,
        "op_id": UUID(int=3),
        "as_of": DAY,
        "proposal_hash": proposal_hash(decisions) if decisions else HASH,
        "validated_hash": HASH,
        "verdict": Verdict.EDIT if decisions else Verdict.APPROVE,
        "approver": "user",
        "decided_at": NOW,
        "expires_at": NOW + timedelta(hours=1),
        "not_after": NOW + timedelta(minutes=15),
        "decisions": decisions,
    }
    return Approval.model_validate({**body, **fields})


def command(given: Approval | None) -> ExecuteDecisions:
    return ExecuteDecisions(
        cycle_id=CYCLE,
        op_id=UUID(int=4),
        as_of=DAY,
        now=NOW,
        pipeline=Pipeline(name="rules"),
        state="executing",
        step="execute",
        workflow_version=1,
        seed=0,
        decision_validation=DecisionValidation(
            cycle_id=CYCLE,
            op_id=UUID(int=9),
            as_of=DAY,
            passed=True,
            decisions=DECISIONS,
            proposal_hash=HASH,
            limits=AccountLimits(),
        ),
        approval=given,
    )


@pytest.mark.parametrize("given", [None, approval()], ids=["nobody was asked", "approved whole"])
def test_a_proposal_that_was_approved_whole_stays_as_it_was(given: Approval | None) -> None:
    made = require_approved(command(None), given).decision_validation
    assert (made.decisions, made.proposal_hash) == (DECISIONS, HASH)


def test_after_an_edit_only_what_the_edit_left_is_executed() -> None:
    left = (decision("AAPL", 15),)
    made = require_approved(command(None), approval(left)).decision_validation
    assert (made.decisions, made.proposal_hash) == (left, proposal_hash(left))


@pytest.mark.parametrize(
    "given",
    [
        approval(verdict=Verdict.REJECT),
        approval(validated_hash="0" * 64),
        approval(proposal_hash="0" * 64),
        approval(cycle_id=UUID(int=8)),
        approval((decision("AAPL", 15),), proposal_hash=HASH),
        approval((decision("AAPL", 41),)),
        approval((decision("MSFT", 1),)),
        approval((decision("AAPL", 15, action=DecisionAction.SELL),)),
        approval((decision("AAPL", 15, price=Money(amount=Decimal(99))),)),
    ],
)
def test_what_was_not_approved_is_refused(given: Approval) -> None:
    with pytest.raises(ProposalChanged, match="nothing was ordered"):
        require_approved(command(None), given)


def test_an_approval_that_only_the_command_speaks_of_is_none() -> None:
    made = require_approved(command(approval((decision("AAPL", 15),))), None)
    assert (made.approval, made.decision_validation.decisions) == (None, DECISIONS)


def test_an_approval_holds_until_its_time_and_not_after() -> None:
    until = approval().not_after
    require_in_time(command(approval()), until)
    require_in_time(command(None), until + timedelta(days=900))
    with pytest.raises(ApprovalTooOld, match="was valid until 2026-11-22 06:15:00"):
        require_in_time(command(approval()), until + timedelta(seconds=1))


def mark(close: str) -> PriceMark:
    return PriceMark(Decimal(close), "USD", Decimal(close))


EURUSD = ExchangeRate(currency="EUR", into="USD", rate=Decimal("1.25"), on=DAY)


def quotes(
    *,
    opens: str | None = None,
    closes: str | None = None,
    ratio: int = 1,
    rate: ExchangeRate | None = None,
) -> Quotes:
    opening = Opening(date(2012, 7, 2), Decimal(opens), Decimal(ratio), rate) if opens else None
    return Quotes(
        closes={("AAPL", DAY): mark(closes) if closes else None, ("IBM", DAY): mark("10")},
        openings={("AAPL", DAY): opening},
        since=None,
    )


@pytest.mark.parametrize(
    "market",
    [
        quotes(opens="10.5"),
        quotes(opens="9.5"),
        quotes(opens="9.9", closes="20"),
        quotes(closes="10.5"),
        quotes(),
        quotes(opens="5.1", ratio=2),
        quotes(opens="8", rate=EURUSD),
    ],
    ids=[
        "up to the limit",
        "down to it",
        "the open counts",
        "its close",
        "no price",
        "a split",
        "8 euros are 10 dollars",
    ],
)
def test_a_price_near_the_approved_one_is_executed(market: Quotes) -> None:
    require_near(command(approval()), market, Decimal(5))


@pytest.mark.parametrize(
    ("market", "told"),
    [
        (quotes(opens="10.51"), r"AAPL \+5.1%, limit 5%"),
        (quotes(opens="9.49"), "AAPL -5.1%"),
        (quotes(closes="11"), r"AAPL \+10.0%"),
        (quotes(opens="10", ratio=2), r"AAPL \+100.0%"),
    ],
)
def test_a_price_that_has_drifted_orders_nothing(market: Quotes, told: str) -> None:
    with pytest.raises(PriceDrifted, match=told):
        require_near(command(approval()), market, Decimal(5))
    require_near(command(None), market, Decimal(5))
