"""A person's answer to a proposal, in words. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from contracts.account import Side
from contracts.approval import Approval, Verdict
from contracts.proposal import UncheckedWords
from contracts.risk import PortfolioDecision
from contracts.venue import DESK_STOPS
from libs.facts import amounts
from libs.report import view
from libs.report.tones import Tone, tone
from libs.report.view import Table

REASON_CHARS = 200
REASONING_CHARS = 600
VERDICTS = {
    Verdict.APPROVE: "approved",
    Verdict.EDIT: "approved in part",
    Verdict.REJECT: "rejected",
}


@dataclass(frozen=True)
class ApprovalAnswer:
    """A person's answer; `left` is what an edit left of each order: `AAPL 17 of 68 shares`."""

    approval: Approval
    left: Sequence[str]

    @property
    def verdict(self) -> str:
        """`approved in part`."""
        return VERDICTS[self.approval.verdict]

    @property
    def tone(self) -> Tone:
        """Good for a plain yes."""
        return tone(self.approval.verdict)

    @property
    def sentence(self) -> str:
        """Who answered what and when, what became smaller, and why."""
        at = f"{self.approval.decided_at:%Y-%m-%d %H:%M} UTC"
        less = f"; {', '.join(self.left)}" if self.left else ""
        return f"{self.verdict} by {self.approval.approver}, {at}{less}{_why(self.approval)}"


def answer(approval: Approval, validated: Mapping[str, PortfolioDecision]) -> ApprovalAnswer:
    """The answer to what the rules left."""
    if approval.verdict is not Verdict.EDIT:
        return ApprovalAnswer(approval, ())
    left = {decision.asset: decision for decision in approval.decisions}
    return ApprovalAnswer(
        approval, [f"{asset} {_edit(whole, left.get(asset))}" for asset, whole in validated.items()]
    )


def of_one(
    approval: Approval, validated: PortfolioDecision, decision: PortfolioDecision | None
) -> str:
    """The answer to one asset's decision, and why."""
    verdict = VERDICTS[approval.verdict]
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


def orders(of: Sequence[PortfolioDecision]) -> Table:
    """A row an order that is proposed; below them why each is, in whole sentences: it is what a
    person decides by."""
    return view.table(
        (
            "Order",
            "Shares",
            "Price",
            "Value",
            "Share",
        ),
        (
            (
                view.say(
                    f"{it.action.value} {it.asset}",
                    Tone.GOOD if it.action.value == Side.BUY.value else Tone.BAD,
                ),
                view.shares(it.quantity),
                view.price(it.price),
                view.money(it.price.amount * it.quantity, it.price.currency),
                view.percent(it.allocation_pct),
            )
            for it in of
        ),
        notes=view.notes(*(f"{it.asset}: {_reasoning(it)}" for it in of), *_sent(of)),
    )


def unchecked(words: Sequence[UncheckedWords], left: Sequence[PortfolioDecision]) -> Table:
    """What a proposer says itself of its trades, under a label that says what it is worth. Of what
    is not `left` there is no order to answer."""
    ordered = {it.asset for it in left}
    return view.table(
        ("Trade", "Unchecked words of the proposer"),
        (
            (
                f"{one.action} {one.ticker}{'' if one.ticker in ordered else ' (no order)'}",
                one.words,
            )
            for one in words
        ),
        notes=view.notes("nobody has checked these words; the figures above are the desk's own"),
    )


def _sent(of: Sequence[PortfolioDecision]) -> Iterator[str]:
    """What a broker is sent of each, where one is: the approval is bound to it."""
    for it in of:
        if it.venue is None:
            continue
        limit = it.venue.limit_price
        kind = "at any price" if limit is None else f"at {amounts.price(limit)} or better"
        to = f"{it.venue.venue} {it.venue.account_number}"
        yield f"{it.asset}: sent to {to} as a {it.venue.type.value} day order, {kind}"
    if any(it.venue and (it.plan or it.exit) for it in of):
        yield DESK_STOPS


def _reasoning(of: PortfolioDecision) -> str:
    """The reasoning, and the stop order that an exit places on what it leaves."""
    price = of.exit.stop_price if of.exit else None
    stop = f"; then a stop at {amounts.price(price)}" if price else ""
    return amounts.cut(of.reasoning.removeprefix("rules: ") + stop, REASONING_CHARS)
