"""The trader's picks: what it would buy and sell. A pick proposes; it never orders."""

from datetime import date

from pydantic import Field

from contracts.account import Portfolio, Side
from contracts.cycle import CycleRequest
from contracts.grounding import Checked
from contracts.memory import AgentMemory
from contracts.message import Command
from contracts.research import Plan, QuantReport, ResearchReport
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.types import Confidence, Percent, ShortText, Text, Ticker, Value

PICKS_MAX = 10


class PickDraft(Value):
    """What the trader writes of one proposal: a share of the budget (percent) for a buy, of the
    position for a sale.
    """

    ticker: Ticker
    allocation_pct: Percent
    reasoning: Text
    confidence: Confidence


class PicksDraft(Value):
    """What the trader writes: `picks` are buys."""

    picks: tuple[PickDraft, ...] = Field(default=(), max_length=PICKS_MAX)
    sell_recommendations: tuple[PickDraft, ...] = Field(default=(), max_length=PICKS_MAX)
    confidence: Confidence
    market_summary: Text


class StockPick(PickDraft):
    """One proposal with its side, and its exchange where that is known."""

    exchange: ShortText = ""
    action: Side = Side.BUY


class DailyPicks(PicksDraft, Checked):
    """The trader's picks with their ids, the provider that wrote them and their session."""

    picks: tuple[StockPick, ...] = Field(default=(), max_length=PICKS_MAX)
    sell_recommendations: tuple[StockPick, ...] = Field(default=(), max_length=PICKS_MAX)
    llm: ShortText
    pick_date: date


class PickTrades(Command):
    """Choose what to buy and what to sell from all that was found before."""

    request: CycleRequest
    signal_digest: SignalDigest | None = None
    sentiment_report: SentimentReport | None = None
    plan: Plan
    quant_report: QuantReport
    research_report: ResearchReport
    portfolio: Portfolio
    agent_memory: AgentMemory | None = None
