"""Decisions that may be executed: validated and, where a person was asked, approved."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from contracts.approval import Approval, Verdict
from contracts.execution import ExecuteDecisions
from contracts.risk import DecisionAction, PortfolioDecision
from libs.broker.broker import Opening
from libs.quant.exchange import price_in
from libs.quant.risk.evaluation import proposal_hash
from libs.runtime.errors import DeskError
from services.execution.account import Quotes


class ProposalChanged(DeskError):
    """The decisions differ from the validated ones."""

    code = "proposal_changed"


class PriceDrifted(DeskError):
    """A price has moved too far from the approved one."""

    code = "price_drifted"


class ApprovalTooOld(DeskError):
    """The command came after the approval had expired."""

    code = "approval_too_old"


def require_validated(command: ExecuteDecisions) -> None:
    """Raise ProposalChanged where the decisions are not those of the hash, or of another cycle."""
    validation = command.decision_validation
    if proposal_hash(validation.decisions) != validation.proposal_hash:
        raise ProposalChanged(
            f"the decisions do not have the hash {validation.proposal_hash} that was validated; "
            "nothing was ordered: request the cycle again"
        )
    if validation.cycle_id != command.cycle_id or validation.as_of != command.as_of:
        raise ProposalChanged(
            f"the validation is of cycle {validation.cycle_id} at {validation.as_of}, the command "
            f"of {command.cycle_id} at {command.as_of}; nothing was ordered"
        )


def require_approved(command: ExecuteDecisions, approval: Approval | None) -> ExecuteDecisions:
    """The command with what a person approved in the place of what was proposed: by the approval
    on record, whatever the command says of one.

    None where nobody was asked. Raises ProposalChanged where the approval is not of this proposal,
    is a rejection, or would make anything larger.
    """
    command = command.model_copy(update={"approval": approval})
    validation = command.decision_validation
    if approval is None:
        return command
    edit = approval.verdict is Verdict.EDIT
    decisions = approval.decisions if edit else validation.decisions
    why = _why_not_approved(command, decisions)
    if why:
        raise ProposalChanged(f"{why}; nothing was ordered: request the cycle again")
    if edit:
        decisions = tuple(_as_edited(decision, validation.decisions) for decision in decisions)
    update = {"decisions": decisions, "proposal_hash": approval.proposal_hash}
    approved = validation.model_copy(update=update)
    return command.model_copy(update={"decision_validation": approved})


def _as_edited(
    edited: PortfolioDecision, validated: Sequence[PortfolioDecision]
) -> PortfolioDecision:
    """With what a person struck off its exit no longer asked for: nobody completes that later."""
    if edited.exit is None or edited.exit.acts is None:
        return edited
    before = next(d for d in validated if (d.action, d.asset) == (edited.action, edited.asset))
    acts = edited.exit.acts
    asked = max(acts.asked - (before.quantity - edited.quantity), Decimal(0))
    acts = acts.model_copy(update={"asked": asked})
    return edited.model_copy(update={"exit": edited.exit.model_copy(update={"acts": acts})})


def _why_not_approved(
    command: ExecuteDecisions, decisions: Sequence[PortfolioDecision]
) -> str | None:
    approval, validation = command.approval, command.decision_validation
    if approval is None or approval.verdict is Verdict.REJECT:
        return "the proposal was not approved"
    if (approval.cycle_id, approval.as_of) != (command.cycle_id, command.as_of):
        return f"the approval is of cycle {approval.cycle_id} at {approval.as_of}"
    if approval.validated_hash != validation.proposal_hash:
        return f"the approval is of the proposal {approval.validated_hash}"
    if proposal_hash(decisions) != approval.proposal_hash:
        return f"the decisions do not have the approved hash {approval.proposal_hash}"
    allowed = {(decision.action, decision.asset): decision for decision in validation.decisions}
    for decision in decisions:
        whole = allowed.get((decision.action, decision.asset))
        if whole is None or not _is_smaller(decision, whole):
            return f"the approval makes {decision.asset} larger or other than it was validated"
    return None


def _is_smaller(edited: PortfolioDecision, whole: PortfolioDecision) -> bool:
    same = edited.model_copy(update={"quantity": whole.quantity}) == whole
    return same and edited.quantity <= whole.quantity


def require_in_time(command: ExecuteDecisions, now: datetime) -> None:
    """Raise ApprovalTooOld where the approval no longer holds at `now`."""
    approval = command.approval
    if approval is not None and now > approval.not_after:
        raise ApprovalTooOld(
            f"{approval.approver}'s approval was valid until "
            f"{approval.not_after:%Y-%m-%d %H:%M:%S} UTC and execution was ready at "
            f"{now:%Y-%m-%d %H:%M:%S}; nothing was ordered: request the cycle again"
        )


def require_near(command: ExecuteDecisions, quotes: Quotes, move_pct_max: Decimal) -> None:
    """Raise PriceDrifted where an approved asset's price is further off than `move_pct_max`.

    Its open, where the newest data has it already, else its close, against the price that was shown
    to the approver. What nobody was asked about is left to the rules.
    """
    if command.approval is None:
        return
    moves = {
        decision.asset: _move_pct(decision, quotes, command.as_of)
        for decision in command.decision_validation.decisions
        if decision.action is not DecisionAction.HOLD
    }
    far = {asset: pct for asset, pct in moves.items() if abs(pct) > move_pct_max}
    if far:
        drifts = ", ".join(f"{asset} {pct:+.1f}%" for asset, pct in sorted(far.items()))
        raise PriceDrifted(
            f"prices have moved since they were approved: {drifts}, limit {move_pct_max:f}%; "
            "nothing was ordered: request the cycle again"
        )


def _move_pct(decision: PortfolioDecision, quotes: Quotes, as_of: date) -> Decimal:
    key = (decision.asset, as_of)
    opening, close = quotes.openings.get(key), quotes.closes.get(key)
    price = None if close is None else close.amount
    if isinstance(opening, Opening):
        # Of a share as it was before a split on the day of the open.
        price = price_in(opening.price * opening.split_ratio, opening.rate)
    if price is None:
        return Decimal(0)
    return 100 * (price - decision.price.amount) / decision.price.amount
