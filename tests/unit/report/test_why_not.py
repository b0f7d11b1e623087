"""Why not that one: every candidate that was not bought has a cause, read from the record."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.account import OrderStatus, Portfolio, Position
from contracts.approval import Approval, Verdict
from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.execution import ExecutionResult
from contracts.message import Contract
from contracts.not_bought import Cause, NotBought
from contracts.reasons import Loose
from contracts.trader import DailyPicks, Unstable
from contracts.types import Money
from libs.report import view, why_not
from libs.report.reports import Reports

D = Decimal
Contracts = dict[str, Contract]
LATE = datetime(2012, 6, 29, 21, tzinfo=UTC)
OVER = CycleStatus.COMPLETED


def causes(
    made: Contracts, status: CycleStatus = OVER, reason: str = "", *, without: tuple[str, ...] = ()
) -> dict[str, list[tuple[str, str]]]:
    """Of each ticker its causes, each with its sentence."""
    pipeline = PipelineView(
        name="claude",
        account="main",
        provider="claude",
        state="",
        status=status,
        contracts={
            name: each.model_dump(mode="json") for name, each in made.items() if name not in without
        },
    )
    found: dict[str, list[tuple[str, str]]] = {}
    for it in why_not.of(Reports.of(pipeline), status, reason):
        found.setdefault(it.ticker, []).append((it.cause.value, why_not.sentence(it)))
    return found


def with_picks(made: Contracts, **fields: Any) -> Contracts:
    picks = made["daily_picks"]
    assert isinstance(picks, DailyPicks)
    return {**made, "daily_picks": picks.model_copy(update=fields)}


def test_a_veto_names_its_rule_with_value_and_limit_and_what_was_bought_is_not_there(
    contracts: Contracts,
) -> None:
    found = causes(contracts)
    assert "AAPL" not in found
    assert found["GOOG"] == [
        ("rule", "risk_needs_catalyst: 8.1, no catalyst, limit 7; because"),
    ]
    assert found["IBM"] == [("no_finding", "the analyst gave no finding of it")]


def test_recorded_causes_are_told_as_they_were_and_a_models_number_is_marked(
    contracts: Contracts,
) -> None:
    passed = (
        NotBought(
            ticker="IBM",
            cause=Cause.THRESHOLD,
            name="conviction",
            value="5.50",
            limit="6.00",
            buys_above=Money(amount=D("598.90")),
        ),
        NotBought(
            ticker="IBM",
            cause=Cause.RULE,
            name="penny_stock",
            value="0.50",
            limit="1",
            why="too cheap",
        ),
        NotBought(ticker="IBM", cause=Cause.OWN_WORDS, why="fell 30 days"),
    )
    made = with_picks(
        contracts, passed=passed, loose=(Loose(field="passed.2.why", start=5, text="30"),)
    )
    assert causes(made)["IBM"] == [
        ("threshold", "conviction: 5.50; a buy needs 6.00; would buy above 598.90 USD"),
        ("rule", "penny_stock: 0.50, limit 1; too cheap"),
        ("own_words", "the model: fell 30 (not from evidence) days"),
    ]
    table = view.data(why_not.table(passed))
    rows: Any = table["rows"]
    assert rows[0]["Would buy above"] == {"value": "598.90", "unit": "USD"}
    assert [row["Not bought"]["value"] for row in rows] == ["IBM", None, None]


def test_tickers_with_the_same_causes_stand_together() -> None:
    why = "the trader decided nothing: analyzing/quant failed: no answer"
    ended = [NotBought(ticker=it, cause=Cause.NOT_DECIDED, why=why) for it in ("AAPL", "IBM")]
    vetoed = NotBought(ticker="FB", cause=Cause.RULE, name="penny_stock", value="1", limit="2")
    rows: Any = view.data(why_not.table([ended[0], vetoed, ended[1]]))["rows"]
    assert [row["Not bought"]["value"] for row in rows] == ["AAPL IBM", "FB"]
    assert rows[0]["Why"]["value"] == why


def test_what_is_held_says_so_once(contracts: Contracts) -> None:
    books = contracts["portfolio"]
    assert isinstance(books, Portfolio)
    cost = Money(amount=D(100))
    held = Position(
        ticker="IBM", quantity=D(30), average_cost=cost, price=cost, opened_on=date(2012, 5, 1)
    )
    passed = (NotBought(ticker="IBM", cause=Cause.RULE, name=why_not.DOUBLE, value="held"),)
    made = with_picks(contracts, passed=passed)
    made["portfolio"] = books.model_copy(update={"positions": (held,)})
    assert causes(made)["IBM"] == [("held", "30 shares held already")]


def test_a_model_that_gave_no_reason_and_a_plan_that_left_one_out_are_told_apart(
    contracts: Contracts,
) -> None:
    picks = contracts["daily_picks"]
    assert isinstance(picks, DailyPicks)
    made = with_picks(contracts, picks=picks.picks[:1])
    assert causes(made)["GOOG"] == [("no_reason", "the model gave no reason")]
    plan = contracts["plan"].model_copy(update={"assets": ("AAPL", "GOOG")})
    assert causes({**made, "plan": plan})["IBM"] == [
        ("not_looked_into", "the plan does not have it")
    ]
    shaky = Unstable(ticker="IBM", samples=5, buy=2, sell=0, spread=0.4)
    assert causes(with_picks(contracts, unstable=(shaky,)))["IBM"] == [
        ("unstable", "of 5 answers on the same evidence 2 would buy it")
    ]


def test_a_pipeline_that_ended_before_it_decided_says_why_for_every_candidate(
    contracts: Contracts,
) -> None:
    late = ("daily_picks", "decision_validation", "execution_result")
    found = causes(contracts, CycleStatus.FAILED, "deciding/picks failed", without=late)
    assert set(found) == {"AAPL", "GOOG", "IBM"}
    assert found["AAPL"] == [
        ("not_decided", "the trader decided nothing: deciding/picks failed"),
    ]
    assert causes(contracts, CycleStatus.RUNNING, without=late) == {}
    unjudged = causes(contracts, CycleStatus.FAILED, "time limit", without=late[1:])
    assert unjudged["AAPL"] == [("not_decided", "the rules did not judge it: time limit")]


def test_a_person_and_an_order_that_was_not_filled_are_causes_too(
    contracts: Contracts,
) -> None:
    execution = contracts["execution_result"]
    assert isinstance(execution, ExecutionResult)
    order = execution.orders[0].model_copy(
        update={"status": OrderStatus.REJECTED, "reason": "no cash"}
    )
    made = {
        **contracts,
        "execution_result": execution.model_copy(update={"orders": (order,), "fills": ()}),
    }
    assert causes(made)["AAPL"] == [("order", "its order was rejected: no cash")]
    refused = Approval(
        cycle_id=UUID(int=1),
        op_id=UUID(int=2),
        as_of=date(2012, 6, 29),
        verdict=Verdict.REJECT,
        approver="ann",
        reason="not now",
        decided_at=LATE,
        expires_at=LATE,
        not_after=date(2012, 7, 2),
        validated_hash="0" * 64,
        proposal_hash="0" * 64,
    )
    found = causes(
        {**contracts, "approval": refused}, CycleStatus.REJECTED, without=("execution_result",)
    )
    assert found["AAPL"] == [("person", "ann rejected the proposal")]


@pytest.mark.parametrize("without", [(), ("plan",), ("research_report",), ("daily_picks",)])
def test_every_candidate_of_a_decision_was_bought_or_has_a_cause(
    contracts: Contracts, cycle_view: CycleView, without: tuple[str, ...]
) -> None:
    found = causes(contracts, without=without)
    assert {"GOOG", "IBM"} <= set(found)
    assert all(sentence for told in found.values() for _, sentence in told)
