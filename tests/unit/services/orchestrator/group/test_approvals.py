"""A person's answer, and what it comes to: no clock, no I/O."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from contracts.account import AccountLimits
from contracts.approval import AnswerProposal, Approval, AwaitApproval, QuantityEdit, Verdict
from contracts.message import Pipeline
from contracts.risk import DecisionAction, DecisionValidation
from libs.quant.risk.evaluation import proposal_hash
from services.orchestrator.group.approvals import AnswerRefused, edited, judge
from services.orchestrator.group.inputs import ProposalAnswered
from services.orchestrator.group.rows import Proposal
from tests.fakes.proposed import DECISIONS, HASH, decision

CYCLE = UUID("11111111-2222-3333-4444-555555555555")
OP, OTHER_OP = UUID(int=1), UUID(int=2)
DAY = date(2012, 6, 29)
NOW = datetime(2026, 11, 22, 6, tzinfo=UTC)
VALID_S = 900.0


def proposal(pipeline: str = "rules", op_id: UUID = OP, **fields: Any) -> Proposal:
    validation = DecisionValidation(
        cycle_id=CYCLE,
        op_id=UUID(int=9),
        as_of=DAY,
        passed=True,
        decisions=DECISIONS,
        proposal_hash=HASH,
        limits=AccountLimits(),
    )
    command = AwaitApproval(
        cycle_id=CYCLE,
        op_id=op_id,
        as_of=DAY,
        now=NOW,
        pipeline=Pipeline(name=pipeline),
        state="awaiting_approval",
        step="approval",
        workflow_version=1,
        seed=0,
        decision_validation=validation,
    )
    known = {"now": NOW, "expires_at": NOW + timedelta(hours=1), "in_time": True, **fields}
    return Proposal(op_id, pipeline, command, **known)


def said(verdict: Verdict = Verdict.APPROVE, by: str = "user", **fields: Any) -> ProposalAnswered:
    body = {"cycle_id": CYCLE, "proposal_hash": HASH, "verdict": verdict, **fields}
    return ProposalAnswered(by, AnswerProposal.model_validate(body))


def edit(**quantities: str) -> ProposalAnswered:
    edits = [QuantityEdit(asset=name, quantity=Decimal(n)) for name, n in quantities.items()]
    return said(Verdict.EDIT, edits=edits)


def judged(given: ProposalAnswered, *proposals: Proposal) -> Approval:
    known = proposals or (proposal(),)
    return judge(given, known, {each.op_id for each in known}, VALID_S)[1]


def refused(given: ProposalAnswered, *proposals: Proposal, live: bool = True) -> tuple[str, str]:
    known = proposals or (proposal(),)
    waiting = {each.op_id for each in known} if live else set()
    with pytest.raises(AnswerRefused) as caught:
        judge(given, known, waiting, VALID_S)
    return caught.value.answer.code or "", caught.value.answer.message


def test_an_approval_is_bound_to_the_hash_the_approver_and_the_time() -> None:
    made = judged(said(reason="fine"))
    assert (made.proposal_hash, made.validated_hash) == (HASH, HASH)
    assert (made.approver, made.verdict, made.reason) == ("user", "approve", "fine")
    assert made.decided_at == NOW
    assert made.not_after == NOW + timedelta(seconds=VALID_S)
    assert (made.cycle_id, made.op_id, made.as_of) == (CYCLE, OP, DAY)
    assert made.decisions == ()


def test_one_that_cannot_be_read_says_so_and_hinders_no_other() -> None:
    other = proposal("other", UUID(int=7))
    unreadable = replace(proposal(), command=None)

    code, message = refused(said(pipeline="rules"), unreadable, other)

    assert code == "unreadable"
    assert message == (
        "the proposal of rules cannot be read by this version of Deskbus: answer it with the "
        f"version that wrote it, or `deskbus cycle cancel {CYCLE}`"
    )
    assert refused(said(proposal_hash="0" * 64), unreadable, other)[0] == "unreadable"
    assert judged(said(), unreadable, other).op_id == other.op_id


def test_an_edit_makes_smaller_drops_and_has_a_hash_of_its_own() -> None:
    made = judged(edit(AAPL="15", IBM="0"))
    assert [(each.asset, each.quantity) for each in made.decisions] == [("AAPL", Decimal(15))]
    assert made.validated_hash == HASH
    assert made.proposal_hash == proposal_hash(made.decisions) != HASH


def test_a_sale_is_edited_to_a_part_of_a_share() -> None:
    (sale,) = edited(edit(AAPL="1.5").answer, [decision("AAPL", 40, action=DecisionAction.SELL)])
    assert sale.quantity == Decimal("1.5")


def test_a_buy_is_edited_in_whole_lots() -> None:
    lots = [DECISIONS[0].model_copy(update={"lot": 10}), DECISIONS[1]]
    with pytest.raises(AnswerRefused, match="15 is not a whole number of lots of 10 shares"):
        edited(edit(AAPL="15").answer, lots)
    assert edited(edit(AAPL="30").answer, lots)[0].quantity == 30


def test_what_an_edit_does_not_name_stays_as_it_is() -> None:
    made = judged(edit(AAPL="15"))
    assert made.decisions[1] == DECISIONS[1]


@pytest.mark.parametrize(
    ("quantities", "why"),
    [
        ({"AAPL": "41"}, "41 is more than the 40"),
        ({"MSFT": "1"}, "MSFT is not in the proposal; in it: AAPL, IBM"),
        ({"AAPL": "1.5"}, "not a whole number of shares"),
        ({"AAPL": "0", "IBM": "0"}, "reject it instead"),
        ({}, "at least one decision"),
    ],
)
def test_an_edit_that_is_not_a_smaller_proposal_is_refused(
    quantities: dict[str, str], why: str
) -> None:
    code, message = refused(edit(**quantities))
    assert code == "invalid"
    assert why in message


def test_an_asset_named_twice_is_refused() -> None:
    twice = [QuantityEdit(asset="AAPL", quantity=Decimal(n)) for n in (1, 2)]
    assert refused(said(Verdict.EDIT, edits=twice))[1] == "an asset is named twice"


@pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.REJECT])
def test_only_an_edit_takes_edits(verdict: Verdict) -> None:
    edits = [QuantityEdit(asset="AAPL", quantity=Decimal(1))]
    assert refused(said(verdict, edits=edits))[0] == "invalid"


def test_another_hash_is_refused_and_the_present_one_named() -> None:
    code, message = refused(said(proposal_hash="0" * 64))
    assert code == "proposal_changed"
    assert HASH in message


def test_a_cycle_that_asked_nobody_waits_for_no_approval() -> None:
    assert refused(said(pipeline="other"))[0] == "not_waiting"
    with pytest.raises(AnswerRefused) as caught:
        judge(said(), (), set(), VALID_S)
    assert caught.value.answer.code == "not_waiting"


def test_an_answer_after_the_time_is_refused_whether_or_not_the_sweep_has_seen_it() -> None:
    late = proposal(in_time=False)
    assert refused(said(), late)[0] == "expired"
    assert refused(said(), late, live=False)[0] == "expired"


def test_an_answer_to_a_cancelled_cycle_is_too_late() -> None:
    assert refused(said(), live=False)[0] == "too_late"


def test_the_same_answer_again_gets_the_approval_that_stands() -> None:
    stands = judged(said())
    again = proposal(approval=stands, now=NOW + timedelta(hours=9), in_time=False)
    assert judge(said(), [again], set(), VALID_S) == (again, stands)


@pytest.mark.parametrize(
    "second", [said(by="cli"), said(Verdict.REJECT), edit(AAPL="1")], ids=["by", "reject", "edit"]
)
def test_the_second_word_loses_and_hears_whose_the_first_was(second: ProposalAnswered) -> None:
    code, message = refused(second, proposal(approval=judged(said())))
    assert code == "decided"
    assert "approved by user at" in message


def test_two_pipelines_with_one_proposal_need_a_name() -> None:
    both = (proposal("a"), proposal("b", OTHER_OP))
    assert refused(said(), *both)[1] == "a, b wait with the same proposal: name one"
    assert judged(said(pipeline="b"), *both).op_id == OTHER_OP
