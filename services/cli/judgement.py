"""What a person said to a proposal, in words."""

from collections.abc import Mapping

from contracts.approval import Approval, Verdict
from contracts.risk import PortfolioDecision
from libs.facts import amounts

REASON_CHARS = 200
SAID = {
    Verdict.APPROVE: "approved",
    Verdict.EDIT: "approved with less",
    Verdict.REJECT: "rejected",
}
STYLES = {Verdict.APPROVE: "green", Verdict.EDIT: "yellow", Verdict.REJECT: "yellow"}


def of_all(approval: Approval, validated: Mapping[str, PortfolioDecision]) -> str:
    """Who said what and when, what became smaller, and why."""
    told = (
        f"{SAID[approval.verdict]} by {approval.approver}, {approval.decided_at:%Y-%m-%d %H:%M} UTC"
    )
    if approval.verdict is Verdict.EDIT:
        left = {each.asset: each for each in approval.decisions}
        edits = [f"{asset} {_edit(whole, left.get(asset))}" for asset, whole in validated.items()]
        told += f"; {', '.join(edits)}"
    return told + _why(approval)


def of_one(
    approval: Approval, validated: PortfolioDecision, decision: PortfolioDecision | None
) -> str:
    """What was said of one asset's decision, and why."""
    verdict = SAID[approval.verdict]
    if approval.verdict is Verdict.EDIT:
        verdict = _edit(validated, decision)
    return f"{verdict} by {approval.approver}{_why(approval)}"


def _edit(whole: PortfolioDecision, left: PortfolioDecision | None) -> str:
    if left is None:
        return "dropped"
    if left.quantity == whole.quantity:
        return "as proposed"
    return f"{amounts.quantity(left.quantity)} of {amounts.quantity(whole.quantity)} shares"


def _why(approval: Approval) -> str:
    return f"; reason: {amounts.cut(approval.reason, REASON_CHARS)}" if approval.reason else ""
