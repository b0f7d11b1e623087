"""The memory of a cycle: what happened and nothing else, however it ended."""

from decimal import Decimal
from uuid import uuid4

import pytest

from contracts.account import AccountLimits, Fill, OrderStatus, Side
from contracts.assessment import Memorize
from contracts.cycle import CycleStatus
from contracts.execution import ExecutionResult, Order
from contracts.memory import PickFate
from contracts.risk import DecisionAction, DecisionValidation, PortfolioDecision
from contracts.types import ExchangeRate, Foreign, Money
from tests.fakes.scripted_model import ScriptedProvider, says


async def test_a_failed_cycle_is_remembered_with_its_reason(desk):
    memory = await desk.do(
        Memorize, outcome=CycleStatus.FAILED, reason="no_candidates: widen the universe"
    )
    assert "ended failed" in memory.short_term_summary
    assert "widen the universe" in memory.short_term_summary
    assert memory.active_hypotheses == ()
    assert memory.pending_orders == ()
    assert "mend first" in memory.next_steps[0]


def test_a_decision_is_remembered_with_its_picks_and_directions(found):
    memory = found["memory"]
    assert "MSFT 13.34%" in memory.short_term_summary
    assert any("GOOG is bearish at 2012-06-29" in line for line in memory.active_hypotheses)


async def test_an_empty_summary_is_sent_back(desk):
    desk.providers = {
        "rules": ScriptedProvider(
            [says({"short_term_summary": ""}), says({"short_term_summary": "done"})]
        )
    }
    memory = await desk.do(Memorize, outcome=CycleStatus.COMPLETED)
    assert memory.short_term_summary == "done"


MONEY = Money(amount=Decimal(1_000))


def allowed(desk, *tickers) -> DecisionValidation:
    """The rules' word on a proposal: these are left."""
    cycle, operation = desk.command_ids()
    decisions = tuple(
        PortfolioDecision(
            action=DecisionAction.BUY,
            asset=ticker,
            quantity=Decimal(10),
            price=MONEY,
            allocation_pct=Decimal(20),
            confidence=0.5,
            reasoning="left",
            strategy_used="rules",
        )
        for ticker in tickers
    )
    return DecisionValidation(
        cycle_id=cycle,
        op_id=operation,
        as_of=desk.as_of,
        passed=bool(decisions),
        decisions=decisions,
        proposal_hash="0" * 64,
        limits=AccountLimits(),
    )


def executed(desk, ticker, status) -> ExecutionResult:
    """One order, filled where its status says so."""
    cycle, operation = desk.command_ids()
    order = Order(
        order_id=uuid4(), asset=ticker, side=Side.BUY, quantity=Decimal(10), status=status
    )
    fill = Fill(
        order_id=order.order_id,
        asset=ticker,
        side=Side.BUY,
        price=Money(amount=Decimal("30.75")),
        quantity=Decimal(10),
        fee=MONEY,
        session=desk.as_of,
    )
    return ExecutionResult(
        cycle_id=cycle,
        op_id=operation,
        as_of=desk.as_of,
        account="main",
        orders=(order,),
        fills=(fill,) if status is OrderStatus.FILLED else (),
        cash_before=MONEY,
        cash_after=MONEY,
    )


@pytest.mark.parametrize(
    ("left", "status", "fates"),
    [
        (("MSFT",), OrderStatus.FILLED, (PickFate.FILLED, PickFate.VETOED)),
        (("MSFT", "AAPL"), OrderStatus.WORKING, (PickFate.WORKING, PickFate.NOT_ORDERED)),
        (("MSFT",), OrderStatus.REJECTED, (PickFate.NOT_ORDERED, PickFate.VETOED)),
        (("MSFT",), None, (PickFate.NOT_ORDERED, PickFate.VETOED)),
        (None, None, (PickFate.NOT_ORDERED, PickFate.NOT_ORDERED)),
    ],
)
async def test_a_decision_is_kept_with_what_became_of_each_pick(desk, found, left, status, fates):
    memory = await desk.do(
        Memorize,
        outcome=CycleStatus.COMPLETED,
        signal_digest=found["digest"],
        daily_picks=found["picks"],
        decision_validation=None if left is None else allowed(desk, *left),
        execution_result=None if status is None else executed(desk, "MSFT", status),
    )
    decision = memory.decision
    assert [each.ticker for each in decision.picks] == ["MSFT", "AAPL"]
    assert tuple(each.fate for each in decision.picks) == fates
    paid = Money(amount=Decimal("30.75")) if status is OrderStatus.FILLED else None
    assert decision.picks[0].fill_price == paid
    assert set(decision.universe) == {"AAPL", "FB", "GOOG", "IBM", "MSFT"}
    assert (decision.pipeline, decision.as_of) == ("rules", desk.as_of)


async def test_a_fill_in_another_currency_is_kept_at_the_price_that_the_share_traded_at(
    desk, found
):
    result = executed(desk, "MSFT", OrderStatus.FILLED)
    rate = ExchangeRate(currency="EUR", into="USD", rate=Decimal("1.25"), on=desk.as_of)
    traded = Foreign(price=Money(amount=Decimal("24.60"), currency="EUR"), rate=rate)
    fill = result.fills[0].model_copy(update={"foreign": traded})
    memory = await desk.do(
        Memorize,
        outcome=CycleStatus.COMPLETED,
        daily_picks=found["picks"],
        execution_result=result.model_copy(update={"fills": (fill,)}),
    )
    assert memory.decision.picks[0].fill_price == Money(amount=Decimal("24.60"), currency="EUR")


async def test_a_cycle_that_never_came_to_picks_leaves_no_decision(desk):
    memory = await desk.do(Memorize, outcome=CycleStatus.FAILED, reason="no candidates")
    assert (memory.decision, memory.outcomes, memory.track_record) == (None, (), ())


async def test_the_model_is_told_the_outcomes_in_words_and_not_what_is_for_code(desk, found):
    model = ScriptedProvider([says({"short_term_summary": "done"})])
    desk.providers = {"rules": model}
    last = found["memory"].model_copy(update={"track_record": ("an old outcome",)})
    await desk.do(
        Memorize, outcome=CycleStatus.COMPLETED, signal_digest=found["digest"], agent_memory=last
    )
    (asked,) = model.requests
    assert asked.task["agent_memory"]["track_record"] == ["an old outcome"]
    assert "decision" not in asked.task["agent_memory"]
    assert "signal_digest" not in asked.task["cycle"]
    assert asked.task["outcomes"] == []
