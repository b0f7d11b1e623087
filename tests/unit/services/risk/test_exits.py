"""Proposed exits under the rules: sized again, once a session, never more than is held."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.account import OpenOrder, Portfolio, Position, Side
from contracts.cycle import EXIT, CycleRequest
from contracts.exit_signal import ExitCheck, ExitReport, ExitSignal
from contracts.halt import Halt
from contracts.message import Pipeline
from contracts.risk import DecisionAction, DecisionValidation, ExitPlan, ValidateExits
from contracts.types import Money
from libs.quant.risk.evaluation import proposal_hash
from services.risk import exits

D = Decimal
AS_OF = date(2012, 6, 29)
NAMES = {"cycle_id": UUID(int=7), "op_id": UUID(int=8), "as_of": AS_OF}
NO_MONEY = Money(amount=D(0))


def check(
    ticker: str = "AAPL", sell_pct: str = "75", quantity: str = "30", **fields: Any
) -> ExitCheck:
    fired = ExitSignal(rule="momentum", primary=True, triggered=True, severity=0.8)
    return ExitCheck(
        ticker=ticker,
        assessment="EXIT (momentum)",
        signals=(fired,),
        sell_pct=D(sell_pct),
        quantity=D(quantity),
        **fields,
    )


def judged(*checks: ExitCheck, shares: str = "40", **books: Any) -> DecisionValidation:
    positions = tuple(
        Position(
            ticker=ticker,
            quantity=D(shares),
            average_cost=Money(amount=D(100)),
            price=Money(amount=D(120)),
        )
        for ticker in sorted({each.ticker for each in checks} - {"NONE"})
    )
    portfolio = Portfolio(
        **NAMES, account="main", cash=NO_MONEY, equity=NO_MONEY, positions=positions, **books
    )
    command = ValidateExits(
        **NAMES,
        now=datetime(2026, 11, 22, tzinfo=UTC),
        pipeline=Pipeline(name="rules"),
        state="validating_decision",
        step="validate_exits",
        workflow_version=1,
        seed=0,
        request=CycleRequest(idempotency_key="k", kind=EXIT),
        portfolio=portfolio,
        exit_report=ExitReport(**NAMES, account="main", checks=checks),
    )
    return exits.validate(command)


def sale(quantity: str) -> OpenOrder:
    return OpenOrder(
        order_id=UUID(int=1),
        asset="AAPL",
        side=Side.SELL,
        quantity=D(quantity),
        hold=NO_MONEY,
        as_of=AS_OF,
    )


def test_a_proposed_exit_becomes_a_decision_with_its_stop() -> None:
    found = judged(check(stop_price=Money(amount=D("95.5"))))

    (decision,) = found.decisions
    assert (decision.action, decision.asset, decision.quantity) == (DecisionAction.SELL, "AAPL", 30)
    assert decision.exit == ExitPlan(stop_price=Money(amount=D("95.5")))
    assert decision.price == Money(amount=D(120))
    assert (decision.strategy_used, decision.confidence) == ("exit_signals", 0.8)
    assert found.proposal_hash == proposal_hash(found.decisions)
    assert found.passed


def test_without_a_proposal_nothing_passes() -> None:
    hold = ExitCheck(ticker="AAPL", assessment="HOLD")
    found = judged(hold)
    assert not found.passed
    assert found.decisions == found.proposals == ()


def test_an_exit_of_what_is_being_sold_already_is_vetoed() -> None:
    found = judged(check(), open_orders=(sale("5"),))

    assert not found.passed
    assert found.vetoed_tickers == ("AAPL",)
    assert any("one_exit_a_session" in text for text in found.adjustments)


def test_a_stop_order_does_not_stand_against_an_exit() -> None:
    stop = sale("40").model_copy(update={"stop_price": Money(amount=D(90))})
    assert judged(check(), open_orders=(stop,)).decisions[0].quantity == 30


def test_what_is_not_held_is_not_sold() -> None:
    found = judged(check("NONE"))
    assert found.vetoed_tickers == ("NONE",)
    assert any("something_to_sell" in text for text in found.adjustments)


def test_a_halt_lets_exits_pass() -> None:
    halt = Halt(account=None, reason="crash", by="cli", since=datetime(2012, 6, 29, tzinfo=UTC))
    assert judged(check(), halt=halt).passed


def test_of_many_proposals_only_those_checks_are_told_that_changed_something() -> None:
    many = [check(f"T{n}") for n in range(exits.PROPOSALS_TOLD_MAX)]
    assert len(judged(*many).checks) == 4 * len(many)
    found = judged(*many, check("NONE"))
    assert {each.ticker for each in found.checks} == {"NONE"}
    assert len(found.decisions) == len(many)


@given(
    shares=st.integers(0, 10**9),
    pct=st.decimals(D("0.0001"), 100, places=4),
    promised=st.integers(0, 10**9),
)
def test_sales_never_exceed_what_is_held(shares: int, pct: Decimal, promised: int) -> None:
    orders = (sale(str(promised)),) if promised else ()
    found = judged(check(sell_pct=str(pct)), shares=str(shares), open_orders=orders)
    for decision in found.decisions:
        assert 0 < decision.quantity <= shares - promised


@pytest.mark.parametrize("stop", [None, Money(amount=D(90))])
def test_the_hash_binds_the_stop_too(stop: Money | None) -> None:
    plain = judged(check()).decisions[0]
    other = plain.model_copy(update={"exit": ExitPlan(stop_price=stop)})
    assert (proposal_hash([plain]) == proposal_hash([other])) is (stop is None)


def test_a_decision_that_is_no_exit_has_the_hash_that_it_had_before_there_were_exits() -> None:
    plain = judged(check()).decisions[0].model_copy(update={"exit": None})
    assert "exit" not in plain.model_dump()
