"""A buy is sized by the lower of what was stated and of what came true of the like, and says so."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.account import Side
from contracts.memory import AgentMemory, StatedOutcome
from contracts.message import Pipeline
from contracts.risk import DecisionValidation, ValidateDecision
from libs.quant.risk.evaluation import evaluate
from services.risk import logic
from tests.fakes.moves import calm
from tests.unit.services.risk.test_logic import (
    DAY,
    OWN,
    command,
    daily,
    finding,
    pick,
    research,
    review,
    validate,
)

D = Decimal
LAST = DAY - timedelta(days=1)


def memory(rows: list[tuple[float, bool]], known_on: date = LAST) -> AgentMemory:
    stated = tuple(
        StatedOutcome(
            on=known_on - timedelta(days=28),
            known_on=known_on,
            provider="rules",
            stated=confidence,
            beat=beat,
        )
        for confidence, beat in rows
    )
    return AgentMemory(**OWN, short_term_summary="s", stated=stated)


def asked(confidence: float = 0.9, **fields: object) -> ValidateDecision:
    """A buy that only what it may lose at its stop can cut."""
    wanted = pick("AAA", 40).model_copy(update={"confidence": confidence})
    found = research(finding("AAA", atr=D("0.5")))
    return command(daily(wanted), review(wanted), found).model_copy(update=fields)


def shares(validation: DecisionValidation) -> Decimal:
    (decision,) = validation.decisions
    return decision.quantity


HALF_WON = [(0.9, number % 5 < 3) for number in range(200)]
"""Of what was stated with 0.9 three of five came true."""


def test_a_buy_is_cut_by_what_came_true_of_the_like_and_its_row_says_so():
    before = validate(asked(recalibrated_from=30))
    after = validate(asked(recalibrated_from=30, agent_memory=memory(HALF_WON)))
    assert shares(after) < shares(before)
    assert after.recalibration is not None
    assert (after.recalibration.outcomes, after.recalibration.known_until) == (200, LAST)
    (decision,) = after.decisions
    assert decision.confidence == 0.9
    assert decision.recalibrated is not None
    assert decision.recalibrated.confidence == 0.6
    (row,) = [check for check in after.checks if check.rule == "risk_per_trade"]
    said = "(stated 0.90, recalibrated 0.60 from 200 outcomes known until 2012-06-28; min 0.5)"
    assert said in row.reason
    assert any(said in text for text in after.adjustments)


def test_without_a_table_it_is_decided_as_if_nobody_had_asked():
    as_ever = validate(asked())
    for same in (
        asked(recalibrated_from=30),
        asked(recalibrated_from=30, agent_memory=memory(HALF_WON[:29])),
        asked(recalibrated_from=0, agent_memory=memory(HALF_WON)),
        asked(recalibrated_from=30, agent_memory=memory(HALF_WON, known_on=DAY)),
        asked(recalibrated_from=30, agent_memory=memory(HALF_WON, DAY + timedelta(days=1))),
        asked(
            recalibrated_from=30,
            agent_memory=memory(HALF_WON),
            pipeline=Pipeline(name="rules", provider="claude"),
        ),
    ):
        validation = validate(same)
        assert validation.recalibration is None
        assert validation.checks == as_ever.checks
        assert [one.quantity for one in validation.decisions] == [shares(as_ever)]


def test_a_sale_is_not_recalibrated():
    sale = pick("AAA", 100, Side.SELL)
    sold = command(daily(sells=(sale,)), review(), research(finding("AAA")))
    update = {"recalibrated_from": 30, "agent_memory": memory(HALF_WON)}
    (proposal,) = validate(sold.model_copy(update=update)).proposals
    assert proposal.recalibrated is None


@pytest.mark.slow
@given(
    stated=st.floats(0, 1),
    rows=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=30, max_size=60),
)
@settings(max_examples=100, derandomize=True, deadline=None)
def test_no_outcome_makes_a_buy_larger_and_a_replay_decides_the_same(stated, rows):
    plain = validate(asked(stated))
    told = asked(stated, recalibrated_from=30, agent_memory=memory(rows))
    sized = validate(told)
    assert sized.recalibration is not None
    assert shares(sized) <= shares(plain)
    on_record = ValidateDecision.model_validate_json(told.model_dump_json())
    assert validate(on_record) == sized


@given(rows=st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=30, max_size=60))
@settings(max_examples=50, derandomize=True, deadline=None)
def test_judged_again_it_is_left_as_it_is(rows):
    sized = validate(asked(recalibrated_from=30, agent_memory=memory(rows)))
    (decision,) = sized.decisions
    approved = sized.proposals[0].model_copy(update={"allocation_pct": decision.allocation_pct})
    again = evaluate(
        [approved],
        {item.ticker: item for item in sized.evidence},
        asked().portfolio,
        sized.limits,
        sized.budget,
        {item.ticker: item.price for item in sized.evidence},
        moves=calm(("AAA", "BBB")),
    )
    assert [one.quantity for one in again.decisions] == [decision.quantity]


def test_execution_sizes_by_the_same_confidence():
    sized = validate(asked(recalibrated_from=30, agent_memory=memory(HALF_WON)))
    assert logic.proposal_hash(sized.decisions) == sized.proposal_hash
    assert sized.decisions[0].recalibrated == sized.proposals[0].recalibrated
