"""The HTTP API's paths for proposers: each bears a token of its own, which opens these alone."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from contracts.http import CycleAccepted
from contracts.proposal import ProposalId, Propose
from contracts.proposal_query import (
    ProposalLimits,
    ProposalLimitsQuery,
    ProposalQuery,
    ProposalView,
)
from contracts.subjects.proposals import PROPOSAL, PROPOSAL_LIMITS, PROPOSE
from libs.web.proposer import proposer_in
from services.console.http.bodies import ROOT, Body, of_cycle, problems
from services.console.http.problems import accepted, not_found
from services.console.http.requests import Desk

PATHS = (f"{ROOT}/proposals", f"{ROOT}/proposer")
"""What a proposer's token opens."""


async def _caller(request: Request) -> str:
    """Who proposes, by the token that came. Raises `HttpProblem` (403)."""
    return proposer_in(request.scope)


Caller = Annotated[str, Depends(_caller)]

proposing = APIRouter(tags=["proposals"])


@proposing.post(
    "/proposals", status_code=HTTPStatus.ACCEPTED, responses=problems(409, 413, 415, 429)
)
async def propose_trades(
    desk: Desk, caller: Caller, response: Response, wish: Annotated[Propose, Body(Propose)]
) -> CycleAccepted:
    """Propose trades for the newest session, or with `preview` see what the rules would leave.

    The same id and body again change nothing; another body is refused (409). The rules cut, and a
    person approves unless the account's owner has said otherwise.
    """
    answer = accepted(await desk.proposers.ask(caller, PROPOSE, wish))
    preview = "?preview=true" if wish.preview else ""
    response.headers["Location"] = f"{ROOT}/proposals/{wish.proposal_id}{preview}"
    return of_cycle(answer)


@proposing.get("/proposals/{proposal_id}", responses=problems(404))
async def get_proposal(
    desk: Desk, caller: Caller, proposal_id: ProposalId, preview: bool = False
) -> ProposalView:
    """The status of your proposal or preview."""
    query = ProposalQuery(proposal_id=proposal_id, preview=preview)
    view = await desk.proposers.ask(caller, PROPOSAL, query)
    if not view.found:
        raise not_found(view.message)
    return view


@proposing.get("/proposer")
async def get_limits(desk: Desk, caller: Caller) -> ProposalLimits:
    """Your limits, and your account's holdings."""
    return await desk.proposers.ask(caller, PROPOSAL_LIMITS, ProposalLimitsQuery())
