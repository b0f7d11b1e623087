"""Proposals of other people's programs, as requests of the desk's own.

A proposal becomes an ordinary cycle: the request holds what was proposed, the provider `proposal`
says it as the trader, and everything else is as in any cycle of the rules.
"""

import re
from collections.abc import Callable
from pathlib import Path

from contracts.cycle import DECISION, PREVIEW, CycleRequest
from contracts.message import Pipeline
from contracts.proposal import WORDS_CHARS_MAX, Propose, ProposedPick, TradeProposal, key_of
from libs.runtime.errors import DeskError
from libs.runtime.model_settings import PROPOSAL
from libs.runtime.proposers import Proposer, Proposers
from libs.runtime.untrusted import clean_line
from services.orchestrator.group.refusals import CallerShares

_LINK = re.compile(
    r"\b[a-z][a-z0-9+.-]*:/*[^\s]*/[^\s]*|\b(?:mailto|javascript|data|tel):\S*|\bwww\.\S+"
    r"|\b(?:[a-z0-9-]+\.)+[a-z]{2,}/\S*|\[[^\]]*\]\([^)]*\)",
    re.IGNORECASE,
)
READ_LEAST = 12
LINK_LEFT_OUT = "(link left out)"


class NoProposalsHere(DeskError):
    """The desk takes no proposals: it is a demo."""

    code = "not_supported"


class ReadTooOften(DeskError):
    """A proposer sends more proposals than its limit."""

    code = "too_often"


class ProposalDesk:
    """Takes proposals of those that a person has added. `is_demo`: none is taken here.

    Of one proposer as many are looked at in a minute as it may propose in an hour, READ_LEAST at
    least: to refuse one asks the market source too, and what is refused counts for no hour.
    """

    def __init__(self, secrets_dir: Path, monotonic: Callable[[], float], *, is_demo: bool) -> None:
        self._proposers = Proposers(secrets_dir)
        self._shares = CallerShares(monotonic)
        self._is_demo = is_demo

    def proposer(self, identity: str) -> Proposer:
        """The proposer of an identity on the bus. Raises NotAProposer, NoProposalsHere and
        ReadTooOften."""
        if self._is_demo:
            raise NoProposalsHere("this is a demo, on synthetic prices: propose on your own desk")
        proposer = self._proposers.calling(identity)
        most = max(READ_LEAST, proposer.per_hour_max)
        if not self._shares.takes(identity, most):
            raise ReadTooOften(f"{most} proposals a minute are looked at: wait a minute")
        return proposer


def request_of(wish: Propose, proposer: Proposer) -> CycleRequest:
    """The request that a proposal stands for, within the limits of its proposer."""
    picks = tuple(_cleaned(pick) for pick in wish.picks)
    proposal = TradeProposal(proposer=proposer.name, picks=picks)
    return CycleRequest(
        idempotency_key=key_of(wish.proposal_id, preview=wish.preview),
        kind=PREVIEW if wish.preview else DECISION,
        universe=proposal.tickers("buy") or proposal.tickers("sell"),
        pipelines=(
            Pipeline(
                name=proposer.name, provider=PROPOSAL, account=proposer.account, account_named=True
            ),
        ),
        approval_required=proposer.approval_required and not wish.preview,
        constraints={
            "max_sales": str(proposer.sales_max),
            "max_sold_pct": f"{proposer.sold_pct_max}",
        },
        proposal=proposal,
    )


def _cleaned(pick: ProposedPick) -> ProposedPick:
    words = _LINK.sub(LINK_LEFT_OUT, clean_line(pick.reason, WORDS_CHARS_MAX))
    return pick.model_copy(update={"reason": words[:WORDS_CHARS_MAX]})
