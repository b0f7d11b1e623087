"""Research: the plan of a cycle, the quant's answer and the analyst's findings."""

from datetime import date
from decimal import Decimal
from enum import StrEnum

from pydantic import Field

from contracts.account import Portfolio
from contracts.cycle import CycleRequest
from contracts.grounding import Checked
from contracts.memory import AgentMemory
from contracts.message import Command
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.types import Amount, Confidence, Currency, Score10, ShortText, Text, Ticker, Value

FINDINGS_MAX = 10


class PlanDraft(Value):
    """What the planner writes: which assets to look at, and the question the quant must answer."""

    objective: Text = Field(min_length=1)
    assets: tuple[Ticker, ...] = Field(min_length=1, max_length=FINDINGS_MAX)
    quant_question: Text = Field(min_length=1)
    timeframes: tuple[ShortText, ...] = Field(default=("1d",), min_length=1, max_length=4)
    constraints: dict[ShortText, ShortText] = Field(default_factory=dict, max_length=20)
    expected_outputs: tuple[ShortText, ...] = Field(min_length=1, max_length=12)


class Plan(PlanDraft, Checked):
    """The planner's plan, with its ids."""


class QuantSignal(StrEnum):
    """The quant's direction. `uncertain`: evidence on both sides; it never stands for a failure."""

    BULLISH = "bullish"
    BEARISH = "bearish"
    NEUTRAL = "neutral"
    UNCERTAIN = "uncertain"


class AssetView(Value):
    """The quant's view of one asset; `technical_indicators` are the values it stands on."""

    ticker: Ticker
    signal: QuantSignal
    confidence: Confidence
    reasoning: Text
    technical_indicators: dict[ShortText, float] = Field(default_factory=dict, max_length=40)


class QuantDraft(Value):
    """What the quant writes: one view of all, and one per asset."""

    signal: QuantSignal
    confidence: Confidence
    reasoning: Text
    technical_indicators: dict[ShortText, float] = Field(default_factory=dict, max_length=40)
    assets: tuple[AssetView, ...] = Field(min_length=1, max_length=FINDINGS_MAX)


class QuantReport(QuantDraft, Checked):
    """The quant's answer to the plan's question, with its ids."""


class ResearchFinding(Value):
    """One researched ticker. Scores run 0 to 10; a high `risk_score` is bad."""

    ticker: Ticker
    exchange: ShortText = ""
    current_price: Amount = Field(default=Decimal(0), ge=0)
    currency: Currency = "USD"
    fundamental_score: Score10
    technical_score: Score10
    risk_score: Score10
    news_summary: Text = ""
    earnings_outlook: Text = ""
    catalyst: Text = ""
    sector: ShortText = "unknown"
    sector_peers: tuple[Ticker, ...] = Field(default=(), max_length=20)
    summary: Text = ""
    evidence: tuple[ShortText, ...] = Field(default=(), max_length=20)


class ResearchDraft(Value):
    """What the analyst writes after its tools have answered."""

    analysis_date: date
    tickers: tuple[ResearchFinding, ...] = Field(max_length=FINDINGS_MAX)
    sectors_analyzed: tuple[ShortText, ...] = Field(default=(), max_length=20)
    research_notes: Text = ""


class ResearchReport(ResearchDraft, Checked):
    """The analyst's findings, with its ids and the number of tool calls behind them."""

    tool_calls_made: int = Field(default=0, ge=0)


class MakePlan(Command):
    """Decide what this cycle looks into."""

    request: CycleRequest
    signal_digest: SignalDigest
    sentiment_report: SentimentReport
    portfolio: Portfolio
    agent_memory: AgentMemory | None = None


class AnswerQuestion(Command):
    """Answer the plan's quant_question with computed indicators as evidence."""

    plan: Plan


class ResearchTickers(Command):
    """Dig into the plan's assets with the market tools."""

    plan: Plan
    signal_digest: SignalDigest
    sentiment_report: SentimentReport
