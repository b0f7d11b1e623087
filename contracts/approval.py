"""Approvals: a person's word on a validated proposal, bound to its hash."""

import operator
from datetime import date, datetime
from enum import StrEnum

from pydantic import Field

from contracts.message import Command, Contract, Limit, Message, Request
from contracts.proposal import PICKS_MAX, UncheckedWords
from contracts.risk import DecisionValidation, PortfolioDecision, UnreadableDecision
from contracts.types import (
    CycleId,
    IdDigits,
    Name,
    OperationId,
    Quantity,
    ShortText,
    Ticker,
    Value,
)

EDITS_MAX = 40


class Verdict(StrEnum):
    """A person's answer to a proposal."""

    APPROVE = "approve"
    REJECT = "reject"
    EDIT = "edit"


class QuantityEdit(Value):
    """One decision made smaller: this many shares in its place; 0 drops the decision."""

    asset: Ticker
    quantity: Quantity


class AnswerProposal(Request):
    """Approve, reject or edit the proposal that a cycle waits with; the sender is the approver.

    `proposal_hash` is that of the proposal as it was seen. `pipeline` is needed only where two of
    the cycle wait with the same proposal. An edit names every decision that is to become smaller,
    approves the rest as it is, and can make nothing larger.
    """

    cycle_id: CycleId
    pipeline: Name | None = None
    proposal_hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    verdict: Verdict
    edits: tuple[QuantityEdit, ...] = Field(default=(), max_length=EDITS_MAX)
    reason: ShortText = ""


class AwaitApproval(Command):
    """The question to a person: the operation that waits. It is never sent to a service."""

    decision_validation: DecisionValidation


class Approval(Contract):
    """The answer that counted: the first one before `expires_at`, by the database's clock.

    `proposal_hash` is the hash of what may be executed: that of the proposal, after an edit that of
    `decisions`, which then stand in the proposal's place. `validated_hash` is always that of the
    proposal which was answered. Execution begins by `not_after` or never.
    """

    proposal_hash: str
    validated_hash: str
    verdict: Verdict
    approver: Name
    reason: ShortText = ""
    decided_at: datetime
    expires_at: datetime
    not_after: datetime
    decisions: tuple[PortfolioDecision, ...] = ()


class ApprovalsQuery(Message):
    """Proposals waiting for approval; the first to expire is at the top."""

    cycle_id: IdDigits | None = None
    limit: Limit = 20


class WaitingApproval(Value):
    """One proposal that waits; it is answered by its cycle and the proposal's hash.

    Where another program proposed it, `unchecked` are that program's own words: nobody has checked
    them, and no model was shown them.
    """

    cycle_id: CycleId
    op_id: OperationId
    pipeline: Name
    account: Name
    as_of: date
    requester: ShortText
    requested_at: datetime
    expires_at: datetime
    proposal: DecisionValidation
    unchecked: tuple[UncheckedWords, ...] = Field(
        default=(), max_length=PICKS_MAX, exclude_if=operator.not_
    )


class ApprovalsPage(Message):
    """The proposals that wait; `more` where the limit or the message's size cut the list.
    `unreadable` are those among them that cannot be shown."""

    approvals: tuple[WaitingApproval, ...] = ()
    unreadable: tuple[UnreadableDecision, ...] = ()
    more: bool = False
