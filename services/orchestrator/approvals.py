"""What a person's answer to a proposal comes to. Pure: the times were read under the lock."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from contracts.approval import AnswerProposal, Approval, Verdict
from contracts.cycle import CycleRequest, CycleStatus
from contracts.risk import PortfolioDecision
from contracts.types import Failure
from libs.quant.risk import proposal_hash
from libs.runtime.settings import Settings
from services.orchestrator.answers import rejection
from services.orchestrator.inputs import ProposalAnswered
from services.orchestrator.logic import SEQ_ASKED, Fact
from services.orchestrator.rows import Proposal
from services.orchestrator.workflow import Workflow

Passes = Mapping[str, tuple[str, ...]]
"""By pipeline: its optional states."""


class Refused(Exception):
    """The answer does not count; `answer` says why."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.answer = rejection(code, message, field)


def asked_for(request: CycleRequest, workflow: Workflow, settings: Settings) -> Passes | None:
    """The pipelines whose proposals a person answers, with the states that they pass for it.

    All of them where the request says so, else those of accounts that always need it. None where
    this kind of cycle cannot ask.
    """
    states = tuple(state.name for state in workflow.states if state.optional)
    always = settings.approval_accounts
    asked = [each for each in request.pipelines if each.account in always]
    if request.approval_required:
        asked = list(request.pipelines)
    return {each.name: states for each in asked} if states or not asked else None


def timed(fact: Fact, limit_s: float) -> Fact:
    """The fact; where it asks a person, with how long it waits."""
    if fact.seq != SEQ_ASKED:
        return fact
    return replace(fact, data={**fact.data, "time_limit_s": limit_s})


def nobody_answered(limit_s: float) -> Failure:
    """How an operation ends that a person did not answer in time."""
    text = f"nobody answered the proposal within {limit_s:g} s"
    return Failure(code=CycleStatus.EXPIRED, message=text)


def judge(
    given: ProposalAnswered,
    proposals: Sequence[Proposal],
    live: Collection[UUID],
    valid_s: float,
) -> tuple[Proposal, Approval]:
    """The proposal that is answered, and the approval that stands for it from now on.

    `live` are the operations that still wait. The same answer by the same approver again gives the
    approval that stands already. Raises `Refused`.
    """
    proposal = _meant(given.answer, proposals)
    approval = _approval(given, proposal, valid_s)
    stands = proposal.approval
    if stands is not None:
        if _same(stands, approval):
            return proposal, stands
        raise Refused(
            "decided",
            f"{stands.approver} has said {stands.verdict} at {stands.decided_at:%Y-%m-%d %H:%M:%S} "
            f"UTC, and the first word counts",
        )
    if proposal.op_id not in live or not proposal.in_time:
        over = "it was not answered in time" if not proposal.in_time else "the cycle has ended"
        raise Refused(
            "expired" if not proposal.in_time else "too_late",
            f"the proposal no longer waits: {over}; request a new cycle",
        )
    return proposal, approval


def _meant(answer: AnswerProposal, proposals: Sequence[Proposal]) -> Proposal:
    lanes = [each for each in proposals if answer.pipeline in {None, each.pipeline}]
    if not lanes:
        which = f"pipeline {answer.pipeline}" if answer.pipeline else "the cycle"
        raise Refused("not_waiting", f"{which} waits for no approval", "cycle_id")
    found = [each for each in lanes if _hash(each) == answer.proposal_hash]
    if not found:
        hashes = ", ".join(f"{each.pipeline}: {_hash(each)}" for each in lanes)
        raise Refused(
            "proposal_changed",
            f"what waits has another hash ({hashes}); look at it again",
            "proposal_hash",
        )
    if len(found) > 1:
        names = ", ".join(each.pipeline for each in found)
        raise Refused("invalid", f"{names} wait with the same proposal: name one", "pipeline")
    return found[0]


def _approval(given: ProposalAnswered, proposal: Proposal, valid_s: float) -> Approval:
    answer = given.answer
    if answer.edits and answer.verdict is not Verdict.EDIT:
        raise Refused("invalid", f"the verdict {answer.verdict} takes no edits", "edits")
    decisions: tuple[PortfolioDecision, ...] = ()
    approved = answer.proposal_hash
    if answer.verdict is Verdict.EDIT:
        decisions = edited(answer, proposal.command.decision_validation.decisions)
        approved = proposal_hash(decisions)
    return Approval.of(
        proposal.command,
        proposal_hash=approved,
        validated_hash=answer.proposal_hash,
        verdict=answer.verdict,
        approver=given.approver,
        reason=answer.reason,
        decided_at=proposal.now,
        expires_at=proposal.expires_at,
        not_after=proposal.now + timedelta(seconds=valid_s),
        decisions=decisions,
    )


def edited(
    answer: AnswerProposal, decisions: Sequence[PortfolioDecision]
) -> tuple[PortfolioDecision, ...]:
    """The decisions with the edits made: downwards only. Raises `Refused`."""
    wanted: Mapping[str, Decimal] = {each.asset: each.quantity for each in answer.edits}
    if not wanted:
        raise Refused("invalid", "an edit names at least one decision", "edits")
    if len(wanted) < len(answer.edits):
        raise Refused("invalid", "an asset is named twice", "edits")
    present = {each.asset: each.quantity for each in decisions}
    for asset, quantity in wanted.items():
        _require_smaller(asset, quantity, present)
    left = tuple(
        each.model_copy(update={"quantity": wanted.get(each.asset, each.quantity)})
        for each in decisions
        if wanted.get(each.asset, each.quantity) > 0
    )
    if not left:
        raise Refused("invalid", "the edit leaves nothing to execute: reject it instead", "edits")
    return left


def _require_smaller(asset: str, quantity: Decimal, present: Mapping[str, Decimal]) -> None:
    if asset not in present:
        known = ", ".join(sorted(present))
        raise Refused("invalid", f"{asset} is not in the proposal; in it: {known}", "edits")
    if quantity > present[asset]:
        text = f"{asset}: {quantity:f} is more than the {present[asset]:f} that the rules allowed"
        raise Refused("invalid", f"{text}; an edit can only make it smaller", "edits")
    if quantity != quantity.to_integral_value():
        raise Refused("invalid", f"{asset}: {quantity:f} is no number of whole shares", "edits")


def _hash(proposal: Proposal) -> str:
    return proposal.command.decision_validation.proposal_hash


def _same(stands: Approval, again: Approval) -> bool:
    return (stands.approver, stands.verdict, stands.proposal_hash) == (
        again.approver,
        again.verdict,
        again.proposal_hash,
    )
