"""Effects of a person's answer to a proposal. Pure: the times were read under the lock."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from contracts.approval import AnswerProposal, Approval, AwaitApproval, Verdict
from contracts.cycle import PREVIEW, CycleRequest, CycleStatus
from contracts.risk import DecisionAction, PortfolioDecision
from contracts.types import Failure
from libs.quant.risk.evaluation import proposal_hash
from libs.quant.sizing import whole_lots
from libs.runtime.settings import Settings
from services.orchestrator.group.answers import rejection
from services.orchestrator.group.inputs import ProposalAnswered
from services.orchestrator.group.rows import Proposal
from services.orchestrator.machine.logic import SEQ_ASKED, EventDraft
from services.orchestrator.machine.workflow import Workflow

SAID = {
    Verdict.APPROVE: "approved",
    Verdict.EDIT: "approved in part",
    Verdict.REJECT: "rejected",
}
Passes = Mapping[str, tuple[str, ...]]
"""By pipeline: its optional states."""


class AnswerRefused(Exception):
    """The answer does not count; `answer` says why."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.answer = rejection(code, message, field)


def asked_for(request: CycleRequest, workflow: Workflow, settings: Settings) -> Passes | None:
    """The pipelines whose proposals a person answers, with the states that they pass for it.

    All of them where the request says so, else those of accounts that always need it. None where
    this kind of cycle cannot ask.
    """
    if request.kind == PREVIEW:
        return {}
    states = tuple(state.name for state in workflow.states if state.optional)
    always = settings.approval.accounts
    pipelines = [pipeline for pipeline in request.pipelines if pipeline.account in always]
    if request.approval_required:
        pipelines = list(request.pipelines)
    return {pipeline.name: states for pipeline in pipelines} if states or not pipelines else None


def timed(fact: EventDraft, limit_s: float) -> EventDraft:
    """The fact; where it asks a person, with how long it waits."""
    if fact.seq != SEQ_ASKED:
        return fact
    return replace(fact, data={**fact.data, "time_limit_s": limit_s})


def nobody_answered(limit_s: float) -> Failure:
    """How an operation ends that a person did not answer in time."""
    text = f"the proposal was not answered within {limit_s:g} s"
    return Failure(code=CycleStatus.EXPIRED, message=text)


def judge(
    answered: ProposalAnswered,
    proposals: Sequence[Proposal],
    live: Collection[UUID],
    valid_s: float,
) -> tuple[Proposal, Approval]:
    """The proposal that is answered, and the approval that stands for it from now on.

    `live` are the operations that still wait. The same answer by the same approver again gives the
    approval that stands already. Raises `AnswerRefused`.
    """
    proposal, command = _match(answered.answer, proposals)
    approval = _approval(answered, proposal, command, valid_s)
    first = proposal.approval
    if first is not None:
        if _same(first, approval):
            return proposal, first
        raise AnswerRefused(
            "decided",
            f"{SAID[first.verdict]} by {first.approver} at {first.decided_at:%Y-%m-%d %H:%M:%S} "
            "UTC, and the first answer counts",
        )
    if proposal.op_id not in live or not proposal.in_time:
        over = "it was not answered in time" if not proposal.in_time else "the cycle has ended"
        raise AnswerRefused(
            "expired" if not proposal.in_time else "too_late",
            f"the proposal no longer waits: {over}; request a new cycle",
        )
    return proposal, approval


def _match(answer: AnswerProposal, proposals: Sequence[Proposal]) -> tuple[Proposal, AwaitApproval]:
    lanes = [proposal for proposal in proposals if answer.pipeline in {None, proposal.pipeline}]
    if not lanes:
        which = f"pipeline {answer.pipeline}" if answer.pipeline else "the cycle"
        raise AnswerRefused("not_waiting", f"{which} waits for no approval", "cycle_id")
    readable = [(lane, lane.command) for lane in lanes if lane.command is not None]
    matches = [lane for lane in readable if _hash(lane[1]) == answer.proposal_hash]
    if not matches and len(readable) < len(lanes):
        names = ", ".join(lane.pipeline for lane in lanes if lane.command is None)
        raise AnswerRefused(
            "unreadable",
            f"the proposal of {names} cannot be read by this version of Deskbus: answer it with "
            f"the version that wrote it, or `deskbus cycle cancel {answer.cycle_id}`",
        )
    if not matches:
        hashes = ", ".join(f"{lane.pipeline}: {_hash(command)}" for lane, command in readable)
        raise AnswerRefused(
            "proposal_changed",
            f"what waits has another hash ({hashes}); look at it again",
            "proposal_hash",
        )
    if len(matches) > 1:
        names = ", ".join(lane.pipeline for lane, _ in matches)
        raise AnswerRefused("invalid", f"{names} wait with the same proposal: name one", "pipeline")
    return matches[0]


def _approval(
    answered: ProposalAnswered, proposal: Proposal, command: AwaitApproval, valid_s: float
) -> Approval:
    answer = answered.answer
    if answer.edits and answer.verdict is not Verdict.EDIT:
        raise AnswerRefused("invalid", f"the verdict {answer.verdict} allows no edits", "edits")
    decisions: tuple[PortfolioDecision, ...] = ()
    approved = answer.proposal_hash
    if answer.verdict is Verdict.EDIT:
        decisions = edited(answer, command.decision_validation.decisions)
        approved = proposal_hash(decisions)
    return Approval.of(
        command,
        proposal_hash=approved,
        validated_hash=answer.proposal_hash,
        verdict=answer.verdict,
        approver=answered.approver,
        reason=answer.reason,
        decided_at=proposal.now,
        expires_at=proposal.expires_at,
        not_after=proposal.now + timedelta(seconds=valid_s),
        decisions=decisions,
    )


def edited(
    answer: AnswerProposal, decisions: Sequence[PortfolioDecision]
) -> tuple[PortfolioDecision, ...]:
    """The decisions with the edits made: downwards only. Raises `AnswerRefused`."""
    quantities: Mapping[str, Decimal] = {edit.asset: edit.quantity for edit in answer.edits}
    if not quantities:
        raise AnswerRefused("invalid", "an edit names at least one decision", "edits")
    if len(quantities) < len(answer.edits):
        raise AnswerRefused("invalid", "an asset is named twice", "edits")
    proposed = {decision.asset: decision for decision in decisions}
    for asset, quantity in quantities.items():
        _require_smaller(asset, quantity, proposed)
    reduced = tuple(
        decision.model_copy(update={"quantity": quantities.get(decision.asset, decision.quantity)})
        for decision in decisions
        if quantities.get(decision.asset, decision.quantity) > 0
    )
    if not reduced:
        raise AnswerRefused(
            "invalid", "the edit leaves nothing to execute: reject it instead", "edits"
        )
    return reduced


def _require_smaller(
    asset: str, quantity: Decimal, present: Mapping[str, PortfolioDecision]
) -> None:
    if asset not in present:
        known = ", ".join(sorted(present))
        raise AnswerRefused("invalid", f"{asset} is not in the proposal; in it: {known}", "edits")
    allowed = present[asset].quantity
    if quantity > allowed:
        text = f"{asset}: {quantity:f} is more than the {allowed:f} that the rules allowed"
        raise AnswerRefused("invalid", f"{text}; an edit can only make it smaller", "edits")
    lot = present[asset].lot
    if present[asset].action is DecisionAction.BUY and quantity != whole_lots(quantity, lot):
        lots = "shares" if lot == 1 else f"lots of {lot:,} shares"
        text = f"{asset}: {quantity:f} is not a whole number of {lots}"
        raise AnswerRefused("invalid", text, "edits")


def _hash(command: AwaitApproval) -> str:
    return command.decision_validation.proposal_hash


def _same(first: Approval, again: Approval) -> bool:
    return (first.approver, first.verdict, first.proposal_hash) == (
        again.approver,
        again.verdict,
        again.proposal_hash,
    )
