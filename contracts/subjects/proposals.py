"""Proposals of other people's programs. Each has an identity of its own, whose key lets it say
these rows under its own name and nothing else."""

from contracts.cycle import RequestAnswer
from contracts.proposal import Propose
from contracts.proposal_query import (
    ProposalLimits,
    ProposalLimitsQuery,
    ProposalQuery,
    ProposalView,
)
from contracts.subjects.subject import ORCHESTRATOR, PROPOSER, Class, Subject

PROPOSE = Subject(Class.REQUEST, ORCHESTRATOR, "propose", Propose, RequestAnswer, (PROPOSER,))
PROPOSAL = Subject(Class.QUERY, "console", "proposal", ProposalQuery, ProposalView, (PROPOSER,))
PROPOSAL_LIMITS = Subject(
    Class.QUERY,
    "console",
    "proposal_limits",
    ProposalLimitsQuery,
    ProposalLimits,
    (PROPOSER,),
)
OF_PROPOSERS = (PROPOSE, PROPOSAL, PROPOSAL_LIMITS)
