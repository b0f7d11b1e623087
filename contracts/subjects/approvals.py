"""Proposals that wait for a person, their answers, and decisions."""

from contracts.approval import (
    AnswerProposal,
    Approval,
    ApprovalsPage,
    ApprovalsQuery,
    AwaitApproval,
)
from contracts.cycle import RequestAnswer
from contracts.execution import DecisionsPage, DecisionsQuery
from contracts.subjects.subject import ORCHESTRATOR, Class, Subject, console, request

ANSWER_PROPOSAL = request("approval", AnswerProposal, RequestAnswer)
APPROVAL = Subject(Class.COMMAND, ORCHESTRATOR, "approval", AwaitApproval, Approval)
"""What a person answers, not a service: an operation like any other, but nothing is published."""

APPROVALS = console("approvals", ApprovalsQuery, ApprovalsPage)
DECISIONS = console("decisions", DecisionsQuery, DecisionsPage, agents=True)
