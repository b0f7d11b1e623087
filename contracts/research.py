"""Research: the plan of a cycle, the quant's answer and the analyst's findings."""

import operator
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from contracts.account import Portfolio
from contracts.constraints import BuyConstraints, ConstraintWords, usable
from contracts.cycle import CycleRequest
from contracts.exit_signal import SIGNALS_MAX, ExitSignal
from contracts.facts import RISK_UNKNOWN, UNKNOWN_SECTOR, DatedEvent, ReportAhead
from contracts.memory import AgentMemory
from contracts.message import Command, Contract
from contracts.plugins import ToolPluginNames
from contracts.reasons import (
    FINDING_REASONS_MAX,
    REASONS_MAX,
    FindingReasons,
    NameDraft,
    Reason,
    Reasoned,
    Reasons,
    Words,
)
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.stages import Stage
from contracts.types import (
    Amount,
    Confidence,
    Currency,
    Lot,
    Money,
    Score10,
    ShortText,
    Text,
    Ticker,
    Value,
    is_none,
    is_single,
)

FINDINGS_MAX = 10
REMARKS_MAX = 10


class _Planned(Value):
    objective: Text = Field(min_length=1)
    assets: tuple[Ticker, ...] = Field(min_length=1, max_length=FINDINGS_MAX)
    quant_question: Text = Field(min_length=1)
    timeframes: tuple[ShortText, ...] = Field(default=("1d",), min_length=1, max_length=4)
    expected_outputs: tuple[ShortText, ...] = Field(min_length=1, max_length=12)


class PlanDraft(_Planned):
    """The planner's answer: which assets to look at, and the question the quant must answer.

    Its `limits` bind beside those of the request; one that cannot be used is left out. `remarks`
    are for the trader and the reviewer.
    """

    limits: Annotated[BuyConstraints, BeforeValidator(usable)] = BuyConstraints()
    remarks: tuple[Words, ...] = Field(default=(), max_length=REMARKS_MAX)


class Plan(_Planned, Contract):
    """The planner's plan, with its ids. Its `constraints` are the limits and remarks in words."""

    constraints: ConstraintWords = Field(default_factory=dict)


class QuantSignal(StrEnum):
    """The quant's direction. `uncertain`: evidence on both sides; it never stands for a failure."""

    BULLISH = "bullish"
    BEARISH = "bearish"
    NEUTRAL = "neutral"
    UNCERTAIN = "uncertain"


class ViewDraft(Value):
    """The quant's judgement of one asset, with its reasons."""

    ticker: Ticker
    signal: QuantSignal
    confidence: Confidence
    reasons: Reasons


class QuantDraft(Value):
    """The quant's judgement: of all together, and of each asset."""

    signal: QuantSignal
    confidence: Confidence
    answer: Words = ""
    assets: tuple[ViewDraft, ...] = Field(min_length=1, max_length=FINDINGS_MAX)


class AssetView(Value):
    """The quant's view of one asset. Code composed `reasoning` from the `reasons`;
    `technical_indicators` are the computed values behind it, those that are prices in `currency`.
    """

    ticker: Ticker
    signal: QuantSignal
    confidence: Confidence
    reasons: tuple[Reason, ...] = Field(default=(), max_length=REASONS_MAX)
    reasoning: Text
    technical_indicators: dict[ShortText, float] = Field(default_factory=dict, max_length=40)
    currency: Currency | None = Field(default=None, exclude_if=is_none)


class QuantReport(Reasoned):
    """The quant's answer to the plan's question, with its ids.

    `reasoning` counts the views and has the quant's few words behind them. `technical_indicators`
    are those of the only asset, where there is but one.
    """

    signal: QuantSignal
    confidence: Confidence
    reasoning: Text
    technical_indicators: dict[ShortText, float] = Field(default_factory=dict, max_length=40)
    assets: tuple[AssetView, ...] = Field(min_length=1, max_length=FINDINGS_MAX)


class FindingDraft(Value):
    """The analyst's judgement of one ticker, with its reasons. Scores run 0 to 10; a high
    `risk_score` is bad.

    `fundamental_score` is null where no fundamentals are known. `catalyst` is the name of a fact:
    one dated event of the ticker (a headline, a filing, a report); empty for none.
    """

    ticker: Ticker
    fundamental_score: Score10 | None
    technical_score: Score10
    risk_score: Score10
    reasons: FindingReasons
    catalyst: NameDraft = ""
    sector_peers: tuple[Ticker, ...] = Field(default=(), max_length=20)


class ResearchDraft(Value):
    """The analyst's answer after its tools have answered."""

    tickers: tuple[FindingDraft, ...] = Field(max_length=FINDINGS_MAX)
    research_notes: Text = ""


class ResearchFinding(Value):
    """One researched ticker: the analyst's judgements beside the facts that the desk has.

    Code composed `summary`, `news_summary` and `earnings_outlook` from the `reasons`; `evidence`
    are the tool results that these stand on. `name`, `exchange`, `current_price`, `currency`,
    `sector`, `measured_risk` (code's own score, with its reason), `atr` and the next `report` are
    the market source's at as_of. `exits` is how the account's exit rules judge it if it is bought
    now, None where these cannot be read; `exits_note` says where rules read before stand.
    `risk_score` is the analyst's as answered; the rules take
    the higher. `catalyst` tells the dated event that the analyst named, which `catalyst_event`
    holds; both are empty where it named none that the source has. `fundamental_score` is None where
    no fundamentals were known; findings from before that was so have 0 there.
    """

    ticker: Ticker
    fundamental_score: Score10 | None
    technical_score: Score10
    risk_score: Score10
    reasons: tuple[Reason, ...] = Field(default=(), max_length=FINDING_REASONS_MAX)
    summary: Text = ""
    news_summary: Text = ""
    earnings_outlook: Text = ""
    catalyst: Text = ""
    sector_peers: tuple[Ticker, ...] = Field(default=(), max_length=20)
    evidence: tuple[ShortText, ...] = Field(default=(), max_length=20)
    name: ShortText = ""
    exchange: ShortText = ""
    current_price: Amount = Field(default=Decimal(0), ge=0)
    currency: Currency = "USD"
    sector: ShortText = UNKNOWN_SECTOR
    measured_risk: Score10 = RISK_UNKNOWN
    measured_risk_reason: ShortText = ""
    atr: Amount | None = Field(default=None, ge=0)
    report: ReportAhead | None = None
    has_reports: bool = False
    issuer: ShortText = ""
    lot: Lot = Field(default=1, exclude_if=is_single)
    exits: tuple[ExitSignal, ...] | None = Field(default=(), max_length=SIGNALS_MAX)
    exits_note: ShortText = Field(default="", exclude_if=operator.not_)
    catalyst_event: DatedEvent | None = None

    @property
    def close(self) -> Money:
        """Its current price with the currency that it is in."""
        return Money(amount=self.current_price, currency=self.currency)

    @property
    def risk(self) -> float:
        """The risk score of the rules: the higher of the analyst's and the measured one."""
        return max(self.risk_score, self.measured_risk)


class ResearchReport(Reasoned):
    """The analyst's findings, with its ids and the number of tool calls behind them."""

    analysis_date: date
    tickers: tuple[ResearchFinding, ...] = Field(max_length=FINDINGS_MAX)
    research_notes: Text = ""
    sectors_analyzed: tuple[ShortText, ...] = Field(default=(), max_length=20)
    tool_calls_made: int = Field(default=0, ge=0)


class MakePlan(Command):
    """Decide what this cycle looks into."""

    STAGE: ClassVar[Stage | None] = "planner"

    request: CycleRequest
    signal_digest: SignalDigest
    sentiment_report: SentimentReport
    portfolio: Portfolio
    agent_memory: AgentMemory | None = None
    tool_plugins: ToolPluginNames = Field(default=(), exclude_if=operator.not_)


class AnswerQuestion(Command):
    """Answer the plan's quant_question with computed indicators as evidence."""

    STAGE: ClassVar[Stage | None] = "quant"

    plan: Plan


class ResearchTickers(Command):
    """Dig into the plan's assets with the market tools."""

    STAGE: ClassVar[Stage | None] = "research"

    plan: Plan
    signal_digest: SignalDigest
    sentiment_report: SentimentReport
    tool_plugins: ToolPluginNames = Field(default=(), exclude_if=operator.not_)
