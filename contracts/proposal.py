"""Proposals: the trades that a program of somebody else wants for its own account.

A proposer proposes and nothing else. The desk reads the facts itself, its rules may only cut, and a
person approves unless the account's owner has said otherwise.
"""

from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from contracts.message import Request
from contracts.types import Confidence, Name, Percent, Text, Ticker, Value

PICKS_MAX = 20
SIDE_MAX = 10
"""Buys of one proposal, and likewise sales: as many as the desk looks into, and a trader may pick.
"""
WORDS_CHARS_MAX = 500
ALLOCATED_PCT_MAX = 100
ProposalId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$")]


class ProposedPick(Value):
    """One trade that is proposed: of a buy `allocation_pct` of the account's free cash, of a sale
    of the position. `reason` is kept as unchecked words: people see it, no model does."""

    ticker: Ticker
    action: Literal["buy", "sell"]
    allocation_pct: Percent = Field(gt=0)
    confidence: Confidence = 0.0
    reason: Annotated[Text, Field(max_length=WORDS_CHARS_MAX)] = ""


def key_of(proposal_id: str, *, preview: bool) -> str:
    """The idempotency key of a proposal's cycle: a preview has ids of its own."""
    return f"preview/{proposal_id}" if preview else proposal_id


class Propose(Request):
    """Propose trades for the newest session. Sending it again with the same id and body changes
    nothing.

    `session` may name the session that the proposer expects as the newest; any other is refused.
    `preview`: the rules check it and nothing is ordered. Previews have separate ids.
    """

    proposal_id: ProposalId
    picks: tuple[ProposedPick, ...] = Field(min_length=1, max_length=PICKS_MAX)
    session: date | None = None
    preview: bool = False

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        named = Counter(pick.ticker for pick in self.picks)
        twice = [ticker for ticker, times in named.items() if times > 1]
        if twice:
            raise ValueError(f"picks: {twice[0]} is named twice; name each ticker once")
        sides = Counter(pick.action for pick in self.picks)
        if sides and max(sides.values()) > SIDE_MAX:
            raise ValueError(f"picks: at most {SIDE_MAX} buys and {SIDE_MAX} sales at once")
        bought = (pick.allocation_pct for pick in self.picks if pick.action == "buy")
        if sum(bought, start=Decimal(0)) > ALLOCATED_PCT_MAX:
            raise ValueError(f"picks: the buys may sum to {ALLOCATED_PCT_MAX}% of the free cash")
        return self


class TradeProposal(Value):
    """A proposal as the desk accepted it, with its proposer. Reasons are cleaned, without links."""

    proposer: Name
    picks: tuple[ProposedPick, ...] = Field(min_length=1, max_length=PICKS_MAX)

    def tickers(self, action: Literal["buy", "sell"]) -> tuple[str, ...]:
        """The tickers of one side."""
        return tuple(pick.ticker for pick in self.picks if pick.action == action)


class UncheckedWords(Value):
    """A proposer's own unchecked words on a trade: cleaned, without links."""

    ticker: Ticker
    action: Literal["buy", "sell"]
    words: Annotated[Text, Field(max_length=WORDS_CHARS_MAX)]
