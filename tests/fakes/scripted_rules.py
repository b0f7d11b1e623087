"""The rules provider with a planner, an analyst, a trader and a reviewer who do as they are told.

So that a cycle reaches what honest rules never ask for: whatever a model says, the rules in code
have the last word. Everything else at the desk is as shipped.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from contracts.reasons import ReasonDraft, Speaks
from contracts.research import FindingDraft, PlanDraft, ResearchDraft
from contracts.risk import ReviewDraft, ReviewedPick
from contracts.sentiment import SignalDigest
from contracts.trader import BuyDraft, DailyPicks, PickDraft, PicksDraft
from libs.llm.rules.provider import RULE_SETS
from libs.llm.rules.rule_set import EvidenceIndex, TaskData

NOT_OFFERED = "NOPE"
RISK_SCORE = 9.0
"""Of a finding without a catalyst: above every default limit."""


@dataclass(frozen=True)
class Script:
    """What the trader of one account says at one session: tickers with percentages."""

    buys: Sequence[tuple[str, str]] = ()
    sells: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Parts:
    """Who says what. For the account `lost` the planner names what nobody offered, every time.

    `reviews` maps a ticker to what the reviewer leaves of its percentage; tickers in `added` are
    the reviewer's own idea, on the accounts in which it removes something.
    """

    assets: Sequence[str]
    lost: str
    risky: str
    picks: Mapping[tuple[str, date], Script]
    reviews: Mapping[str, Decimal]
    added: Sequence[str] = ()


@contextmanager
def played(parts: Parts) -> Iterator[None]:
    """While the block runs the agents play their parts, and nobody checks their answers."""
    sets = {
        **RULE_SETS,
        "planner": replace(RULE_SETS["planner"], answer=_planner(parts)),
        "analyst": replace(RULE_SETS["analyst"], answer=_analyst(parts)),
        "trader": replace(RULE_SETS["trader"], answer=_trader(parts)),
        "risk_review": replace(RULE_SETS["risk_review"], answer=_reviewer(parts)),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("libs.llm.rules.provider.RULE_SETS", sets)
        patch.setattr("services.trader.logic.pick_problems", lambda *_: ())
        yield


def _planner(parts: Parts) -> Any:
    def answer(task: TaskData, found: EvidenceIndex) -> PlanDraft:
        draft = RULE_SETS["planner"].answer(task, found)
        digest = SignalDigest.model_validate(task["signal_digest"])
        offered = {candidate.ticker for candidate in digest.candidates}
        wanted = tuple(name for name in parts.assets if name in offered)
        portfolio: Any = task["portfolio"]
        if portfolio["account"] == parts.lost:
            wanted = (NOT_OFFERED,)
        assert isinstance(draft, PlanDraft)
        return draft.model_copy(update={"assets": wanted})

    return answer


def _analyst(parts: Parts) -> Any:
    def changed(finding: FindingDraft) -> FindingDraft:
        if finding.ticker == parts.risky:
            return finding.model_copy(update={"risk_score": RISK_SCORE, "catalyst": ""})
        return finding

    def answer(task: TaskData, found: EvidenceIndex) -> ResearchDraft:
        draft = RULE_SETS["analyst"].answer(task, found)
        assert isinstance(draft, ResearchDraft)
        return draft.model_copy(update={"tickers": tuple(map(changed, draft.tickers))})

    return answer


def _trader(parts: Parts) -> Any:
    def answer(task: TaskData, _: EvidenceIndex) -> PicksDraft:
        portfolio: Any = task["portfolio"]
        key = portfolio["account"], date.fromisoformat(str(task["as_of"]))
        said = parts.picks.get(key, Script())
        return PicksDraft(
            picks=tuple(BuyDraft(**dict(_pick(ticker, share))) for ticker, share in said.buys),
            sell_recommendations=tuple(_pick(*each) for each in said.sells),
            confidence=0.5,
            answer="as the script says",
        )

    return answer


def _pick(ticker: str, share: str) -> PickDraft:
    return PickDraft(
        ticker=ticker,
        allocation_pct=Decimal(share),
        confidence=0.5,
        reasons=(ReasonDraft(fact=f"{ticker}.technical_score", speaks=Speaks.FOR),),
    )


def _reviewer(parts: Parts) -> Any:
    def answer(task: TaskData, _: EvidenceIndex) -> ReviewDraft:
        daily = DailyPicks.model_validate(task["daily_picks"])
        left = {p.ticker: parts.reviews.get(p.ticker, p.allocation_pct) for p in daily.picks}
        kept = [_reviewed(ticker, share) for ticker, share in left.items() if share]
        removed = tuple(ticker for ticker, share in left.items() if not share)
        own = [_reviewed(ticker, Decimal(5)) for ticker in parts.added if removed]
        return ReviewDraft(picks=(*kept, *own), confidence=0.5, vetoed_tickers=removed)

    return answer


def _reviewed(ticker: str, share: Decimal) -> ReviewedPick:
    return ReviewedPick(ticker=ticker, allocation_pct=share, confidence=0.5)
