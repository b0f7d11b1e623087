"""The trader's picks: what it would buy and sell. A pick proposes; it never orders."""

import operator
from datetime import date
from typing import Annotated, ClassVar

from pydantic import Field

from contracts.account import HORIZON_SESSIONS_MAX, Portfolio, Side
from contracts.cycle import SAMPLES_MAX, CycleRequest
from contracts.memory import AgentMemory
from contracts.message import Command
from contracts.reasons import REASONS_MAX, NameDraft, Reason, Reasoned, Reasons, Speaks, Words
from contracts.research import Plan, QuantReport, ResearchReport
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.stages import Stage
from contracts.types import Confidence, Percent, ShortText, Text, Ticker, Value, is_none, scale

PICKS_MAX = 10
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


class PicksDraft(Value):
    """The trader's judgement: `picks` are buys. `answer` says in a few words what the session
    offered, and why these.
    """

    picks: tuple[BuyDraft, ...] = Field(default=(), max_length=PICKS_MAX)
    sell_recommendations: tuple[PickDraft, ...] = Field(default=(), max_length=PICKS_MAX)
    confidence: Confidence
    answer: Words = ""


class PickPlan(Value):
    """The plan of a buy before it is sized; `review_by` and `review_event` as in `EntryPlan`."""

    horizon_sessions: Horizon = HORIZON_SESSIONS_DEFAULT
    stop_atr: StopAtr = STOP_ATR_DEFAULT
    review_by: date | None = None
    review_event: ShortText = ""


class Recalibrated(Value):
    """How often came true what was stated as surely: by `outcomes`, the last known on
    `known_until`, which is before as_of."""

    confidence: Confidence
    outcomes: int = Field(ge=1)
    known_until: date


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

    `market_summary` counts and sums them, and has the trader's few words behind that.
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
