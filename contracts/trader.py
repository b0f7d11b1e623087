"""The trader's picks: what it would buy and sell. A pick proposes; it never orders."""

from datetime import date

from pydantic import Field

from contracts.account import Portfolio, Side
from contracts.cycle import CycleRequest
from contracts.memory import AgentMemory
from contracts.message import Command
from contracts.reasons import REASONS_MAX, Reason, Reasoned, Reasons, Speaks, Words
from contracts.research import Plan, QuantReport, ResearchReport
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.types import Confidence, Percent, ShortText, Text, Ticker, Value

PICKS_MAX = 10


class PickDraft(Value):
    """What the trader judges of one proposal, and by which facts: a share of the budget (percent)
    for a buy, of the position for a sale.
    """

    ticker: Ticker
    allocation_pct: Percent
    confidence: Confidence
    reasons: Reasons


class PicksDraft(Value):
    """What the trader judges: `picks` are buys. `answer` says in a few words what the session
    offered, and why these.
    """

    picks: tuple[PickDraft, ...] = Field(default=(), max_length=PICKS_MAX)
    sell_recommendations: tuple[PickDraft, ...] = Field(default=(), max_length=PICKS_MAX)
    confidence: Confidence
    answer: Words = ""


class StockPick(Value):
    """One proposal with its side, and its exchange where that is known. Code composed `reasoning`
    from the `reasons`.
    """

    ticker: Ticker
    allocation_pct: Percent
    confidence: Confidence
    reasons: tuple[Reason, ...] = Field(default=(), max_length=REASONS_MAX)
    reasoning: Text
    exchange: ShortText = ""
    action: Side = Side.BUY

    @property
    def own_reasons(self) -> tuple[Reason, ...]:
        """The reasons for it that are about its own ticker."""
        return tuple(
            reason
            for reason in self.reasons
            if reason.speaks is Speaks.FOR and reason.about == self.ticker
        )


class DailyPicks(Reasoned):
    """The trader's picks with their ids, the provider that wrote them and their session.

    `market_summary` counts and sums them, and has the trader's few words behind that.
    """

    picks: tuple[StockPick, ...] = Field(default=(), max_length=PICKS_MAX)
    sell_recommendations: tuple[StockPick, ...] = Field(default=(), max_length=PICKS_MAX)
    confidence: Confidence
    market_summary: Text
    llm: ShortText
    pick_date: date


class PickTrades(Command):
    """Choose what to buy and what to sell from all that was found before."""

    request: CycleRequest
    signal_digest: SignalDigest
    sentiment_report: SentimentReport
    plan: Plan
    quant_report: QuantReport
    research_report: ResearchReport
    portfolio: Portfolio
    agent_memory: AgentMemory | None = None
