"""The trader's picks: what it would buy and sell. A pick proposes; it never orders."""

import operator
from datetime import date
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo

from contracts.account import HORIZON_SESSIONS_MAX, Portfolio, Side
from contracts.cycle import SAMPLES_MAX, CycleRequest
from contracts.memory import AgentMemory
from contracts.message import Command
from contracts.not_bought import NotBought
from contracts.plugins import ToolPluginNames
from contracts.reasons import REASONS_MAX, NameDraft, Reason, Reasoned, Reasons, Speaks, Words
from contracts.research import Plan, QuantReport, ResearchReport
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.stages import Stage
from contracts.types import (
    NOTES,
    Confidence,
    Percent,
    ShortText,
    Text,
    Ticker,
    Value,
    is_none,
    scale,
)

PICKS_MAX = 10
PASSED_MAX = 40
"""Tickers that a trader says why it passed them over: all that can be researched, and some."""
NOT_BOUGHT_MAX = 100
UNSTABLE_MAX = 2 * PICKS_MAX * SAMPLES_MAX
STOP_ATR_DEFAULT = 3.0
"""Three ordinary days against it are more than noise."""
HORIZON_SESSIONS_DEFAULT = 60
"""About a quarter: by then the company has reported once."""
StopAtr = Annotated[float, Field(ge=1.0, le=6.0), scale(1, 6)]
"""How far below the price a stop stands, in average true ranges: nearer than one an ordinary day
reaches it, farther than six it protects nothing."""
Horizon = Annotated[int, Field(ge=1, le=HORIZON_SESSIONS_MAX), scale(1, HORIZON_SESSIONS_MAX)]


class PickDraft(Value):
    """The trader's judgement of one proposal, with its reasons: a share of the budget (percent) for
    a buy, of the position for a sale.
    """

    ticker: Ticker
    allocation_pct: Percent
    confidence: Confidence
    reasons: Reasons


class BuyDraft(PickDraft):
    """The trader's judgement of a buy, with its plan: for how many sessions, how far away the stop
    stands, and by which dated event of its ticker (the name of a fact; empty for none) it is
    looked at again before that.
    """

    horizon_sessions: Horizon = HORIZON_SESSIONS_DEFAULT
    stop_atr: StopAtr = STOP_ATR_DEFAULT
    review_event: NameDraft = ""


class PassedDraft(Value):
    """A ticker that the trader does not buy, and why in a few words."""

    ticker: Ticker
    why: Words


def _usable(value: Any, info: ValidationInfo) -> Any:
    """Where a model's answer is read: the items that can be used. What it passed over is optional,
    so nothing of it spoils the answer."""
    notes = info.context.get(NOTES) if isinstance(info.context, dict) else None
    if notes is None:
        return value
    kept = []
    for item in value if isinstance(value, list | tuple) else ():
        try:
            kept.append(PassedDraft.model_validate(item))
        except ValidationError:
            notes.append("passed: an item was left out, it has no ticker or no reason")
    return kept[:PASSED_MAX]


class PicksDraft(Value):
    """The trader's judgement: `picks` are buys, stated also where there are none. `answer` says in
    a few words what the session offered, and why these. `passed` may say of others why they are not
    bought.
    """

    picks: tuple[BuyDraft, ...] = Field(max_length=PICKS_MAX)
    sell_recommendations: tuple[PickDraft, ...] = Field(default=(), max_length=PICKS_MAX)
    confidence: Confidence
    answer: Words = ""
    passed: Annotated[
        tuple[PassedDraft, ...], Field(max_length=PASSED_MAX), BeforeValidator(_usable)
    ] = ()


class PickPlan(Value):
    """The plan of a buy before it is sized; `review_by` and `review_event` as in `EntryPlan`."""

    horizon_sessions: Horizon = HORIZON_SESSIONS_DEFAULT
    stop_atr: StopAtr = STOP_ATR_DEFAULT
    review_by: date | None = None
    review_event: ShortText = ""


class Recalibrated(Value):
    """How often came true what was stated as surely: by `outcomes`, the last known on
    `known_until`, which is before as_of; `left_out` more are of decisions with a fallback.

    `needed`: fewer outcomes of a proposer are known than so many, so that what it stated counts as
    the lowest whatever came true; `known_until` is as_of then.
    """

    confidence: Confidence
    outcomes: int = Field(ge=0)
    left_out: int = Field(default=0, ge=0, exclude_if=operator.not_)
    known_until: date
    needed: int = Field(default=0, ge=0, exclude_if=operator.not_)


class StockPick(Value):
    """One proposal with its side, and its exchange where that is known. Code composed `reasoning`
    from the `reasons`. A buy has a `plan`. The `confidence` is as it was stated; the rules judge by
    the lower of it and of the `recalibrated` one, where there is one.
    """

    ticker: Ticker
    allocation_pct: Percent
    confidence: Confidence
    reasons: tuple[Reason, ...] = Field(default=(), max_length=REASONS_MAX)
    reasoning: Text
    exchange: ShortText = ""
    action: Side = Side.BUY
    plan: PickPlan | None = Field(default=None, exclude_if=is_none)
    recalibrated: Recalibrated | None = Field(default=None, exclude_if=is_none)

    @property
    def confidence_to_size_by(self) -> float:
        """The lower of the stated and the recalibrated one: an outcome makes nothing larger."""
        again = self.recalibrated
        return self.confidence if again is None else min(self.confidence, again.confidence)

    @property
    def own_reasons(self) -> tuple[Reason, ...]:
        """The reasons for it that are about its own ticker."""
        return tuple(
            reason
            for reason in self.reasons
            if reason.speaks is Speaks.FOR and reason.about == self.ticker
        )


class Unstable(Value):
    """A ticker that was left out since the trader does not say the same twice: how many of its
    `samples` would `buy` or `sell` it, and how far its weights are spread, as a part of their
    mean."""

    ticker: Ticker
    samples: int = Field(ge=2, le=SAMPLES_MAX)
    buy: int = Field(ge=0)
    sell: int = Field(ge=0)
    spread: float = Field(ge=0)


class DailyPicks(Reasoned):
    """The trader's picks with their ids, the provider that wrote them and their session. What is
    `unstable` has no weight.

    `market_summary` counts and sums them, and has the trader's few words behind that. `passed` has
    the reasons on record why others were not picked; libs/report/why_not.py has those of all.
    """

    picks: tuple[StockPick, ...] = Field(default=(), max_length=PICKS_MAX)
    sell_recommendations: tuple[StockPick, ...] = Field(default=(), max_length=PICKS_MAX)
    confidence: Confidence
    market_summary: Text
    llm: ShortText
    pick_date: date
    unstable: tuple[Unstable, ...] = Field(
        default=(), max_length=UNSTABLE_MAX, exclude_if=operator.not_
    )
    passed: tuple[NotBought, ...] = Field(default=(), max_length=NOT_BOUGHT_MAX)


class PickTrades(Command):
    """Choose what to buy and what to sell from all that was found before."""

    STAGE: ClassVar[Stage | None] = "trader"

    request: CycleRequest
    signal_digest: SignalDigest
    sentiment_report: SentimentReport
    plan: Plan
    quant_report: QuantReport
    research_report: ResearchReport
    portfolio: Portfolio
    agent_memory: AgentMemory | None = None
    tool_plugins: ToolPluginNames = Field(default=(), exclude_if=operator.not_)
