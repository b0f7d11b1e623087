"""The tools of a proposer: it proposes for its own account, and sees that account alone."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from contracts.cycle import CycleStatus
from contracts.proposal import PICKS_MAX, SIDE_MAX, ProposalId, Propose, ProposedPick
from contracts.proposal_query import (
    ProposalLimits,
    ProposalLimitsQuery,
    ProposalQuery,
    ProposalView,
)
from contracts.subjects.proposals import PROPOSAL, PROPOSAL_LIMITS, PROPOSE
from libs.bus.client import QuestionRefused
from libs.bus.desk_link import ProposerLinks
from libs.runtime.ids import NotFound
from libs.runtime.proposers import NotAProposer, Proposers
from libs.web.proposer import calling
from services.mcp_server import shapes
from services.mcp_server.server import tool_of

INSTRUCTIONS = (
    "A trading desk that takes proposals for one account of yours. The desk reads the facts "
    "itself; its rules may only cut what you propose, and a person approves it unless the owner "
    "said otherwise. get_limits says what you may do, preview_proposal what the rules would leave; "
    "propose_trades proposes, and get_proposal says what became of it. A person may take hours, "
    "and the fill waits for the next session: looking again costs nothing."
)
PREVIEW_S_MAX = 60.0
LOOK_EVERY_S = 0.25
ID_DOC = (
    "An id that you choose, new for each proposal: the same again changes nothing, and with other "
    "picks it is refused. A preview and a proposal of one id have nothing to do with each other"
)
PICKS_DOC = (
    f"Trades, each ticker once, at most {SIDE_MAX} buys and {SIDE_MAX} sales. allocation_pct is "
    "of the account's free cash for a buy, of the position for a sale. confidence is how likely "
    "you think that the trade comes true: it counts as 0 until enough of yours have. reason is "
    "shown to a person as unchecked words"
)
NewId = Annotated[ProposalId, Field(description=ID_DOC)]
KnownId = Annotated[
    ProposalId, Field(description="The id that you gave it, which is not its cycle_id")
]
Picks = Annotated[
    tuple[ProposedPick, ...], Field(min_length=1, max_length=PICKS_MAX, description=PICKS_DOC)
]
Caller = Callable[[], str]


def caller_of(proposers: Proposers, token: str) -> Caller:
    """Whose token it is, looked up anew with each call; of a request over HTTP, where it is empty,
    whose token came with it. Raises NotAProposer."""

    def caller() -> str:
        if not token:
            return calling.get()
        found = proposers.bearing(token)
        if found is None:
            raise NotAProposer("DESKBUS_MCP_PROPOSER_TOKEN is revoked, or of another desk")
        return found.name

    return caller


def proposal_tools(links: ProposerLinks, caller: Caller) -> Sequence[Tool]:
    """All that a proposer is offered."""
    tools = ProposalTools(links, caller)
    return (
        tool_of(tools.get_limits),
        tool_of(tools.preview_proposal, reads=False),
        tool_of(tools.propose_trades, reads=False),
        tool_of(tools.get_proposal),
    )


class ProposalTools:
    """The tools, in the name of whoever calls."""

    def __init__(self, links: ProposerLinks, caller: Caller) -> None:
        self._links = links
        self._caller = caller

    async def get_limits(self) -> ProposalLimits:
        """What you may propose now, and what your account held at its newest close, which may be
        older than the newest session: what trades since then have changed is not in it."""
        return await self._links.ask(self._caller(), PROPOSAL_LIMITS, ProposalLimitsQuery())

    async def preview_proposal(self, proposal_id: NewId, picks: Picks) -> ProposalView:
        """See what the rules would leave of your trades at the newest session; nothing is ordered,
        and no person is asked. It counts as a proposal of the hour. Where status is still
        `running`, ask get_proposal with preview true."""
        await self._propose(Propose(proposal_id=proposal_id, picks=picks, preview=True))
        return await self._ended(proposal_id)

    async def propose_trades(self, proposal_id: NewId, picks: Picks) -> shapes.RequestedShape:
        """Propose trades for the newest session; the answer is that they were received. The rules
        may cut or veto each, a person approves what is left (unless get_limits says that none is
        asked), and it is filled at the next open, whatever that is."""
        return await self._propose(Propose(proposal_id=proposal_id, picks=picks))

    async def get_proposal(
        self,
        proposal_id: KnownId,
        preview: Annotated[bool, Field(description="True: of your preview of this id")] = False,
    ) -> ProposalView:
        """What became of a proposal of yours so far: what was cut by which rule, whether it waits
        for a person, and its orders. `completed` means that they were placed; whether each was
        filled is its own status."""
        query = ProposalQuery(proposal_id=proposal_id, preview=preview)
        view = await self._links.ask(self._caller(), PROPOSAL, query)
        if not view.found:
            raise NotFound(view.message)
        return view

    async def _propose(self, wish: Propose) -> shapes.RequestedShape:
        answer = await self._links.ask(self._caller(), PROPOSE, wish)
        if answer.outcome != "accepted" or answer.cycle_id is None or answer.status is None:
            raise QuestionRefused(answer.code or "refused", answer.message)
        following = "get_proposal tells what the rules left and what a person said"
        return shapes.RequestedShape(cycle_id=answer.cycle_id, status=answer.status, next=following)

    async def _ended(self, proposal_id: str) -> ProposalView:
        """The preview, once the rules have spoken; as it is where that takes too long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PREVIEW_S_MAX
        while True:
            view = await self.get_proposal(proposal_id, preview=True)
            if view.status is not CycleStatus.RUNNING or loop.time() >= until:
                return view
            await asyncio.sleep(LOOK_EVERY_S)
