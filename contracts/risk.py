"""Risk: the review by a model, then the rules in code, which have the last word."""

from datetime import date
from decimal import Decimal
from enum import StrEnum

from pydantic import Field

from contracts.account import AccountLimits, Portfolio, is_none
from contracts.cycle import CycleRequest
from contracts.exit_signal import ExitReport
from contracts.grounding import Checked
from contracts.message import Command, Contract
from contracts.research import QuantReport, ResearchReport
from contracts.trader import DailyPicks, StockPick
from contracts.types import (
    Amount,
    Confidence,
    Currency,
    Foreign,
    Money,
    Quantity,
    Score10,
    ShortText,
    Text,
    Ticker,
    Value,
)

UNGROUNDED_MAX = 20
"""Figures named with one finding: more of them say nothing new."""


class ReviewDraft(Value):
    """What the risk reviewer writes: the same picks, trimmed or removed, never larger."""

    picks: tuple[StockPick, ...] = Field(default=(), max_length=10)
    sell_recommendations: tuple[StockPick, ...] = Field(default=(), max_length=10)
    confidence: Confidence
    market_summary: Text = ""
    risk_notes: Text = ""
    adjustments: tuple[Text, ...] = Field(default=(), max_length=40)
    vetoed_tickers: tuple[Ticker, ...] = Field(default=(), max_length=20)


class PickReview(ReviewDraft, Checked):
    """The reviewer's word on the picks, with its ids."""

    llm: ShortText
    pick_date: date


class DecisionAction(StrEnum):
    """What a decision does with an asset."""

    BUY = "buy"
    SELL = "sell"
    HOLD = "hold"


class Evidence(Value):
    """What the rules know about one ticker: from research, and the price then.

    `price` is in the account's currency; `foreign` is what it was before the exchange. Where no
    rate is known, `no_rate` names the currency that `price` still is in, and nothing is bought.
    `ungrounded` names figures of the finding that no tool result shows; with any of them the
    rules treat the finding as missing.
    """

    ticker: Ticker
    sector: ShortText = "unknown"
    risk_score: Score10
    catalyst: Text = ""
    price: Amount = Field(gt=0)
    confidence: Confidence = 0.0
    foreign: Foreign | None = None
    no_rate: Currency | None = None
    ungrounded: tuple[ShortText, ...] = Field(default=(), max_length=UNGROUNDED_MAX)


class RuleOutcome(StrEnum):
    """What a rule did to a proposal."""

    KEPT = "kept"
    CUT = "cut"
    VETOED = "vetoed"


class Check(Value):
    """One rule on one ticker (or on the whole, `ticker` None): what it saw, against which limit."""

    rule: ShortText
    ticker: Ticker | None = None
    outcome: RuleOutcome
    passed: bool
    value: ShortText
    limit: ShortText
    reason: Text


class ExitPlan(Value):
    """What makes a sale an exit: there is at most one an account, ticker and session.

    Once it is filled, a stop order at `stop_price` (in the currency that the asset trades in) is
    placed on what is left, good till cancelled; None: no stop.
    """

    stop_price: Money | None = None


class PortfolioDecision(Value):
    """A sized decision. `price` is what sizing assumed; the order is a market order.

    A sale that an exit check proposed says so in `exit`.
    """

    action: DecisionAction
    asset: Ticker
    quantity: Quantity
    price: Money
    allocation_pct: Decimal = Field(ge=0, le=100)
    confidence: Confidence
    reasoning: Text
    strategy_used: ShortText
    exit: ExitPlan | None = Field(default=None, exclude_if=is_none)


class DecisionValidation(Contract):
    """The proposal as the rules left it. `passed` is whether anything is left to execute.

    `proposal_hash` is the SHA-256 of the decisions in canonical JSON; an approval is bound to it.
    `proposals`, `evidence`, `limits` and `budget` are all that the rules took, so that execution
    runs the same function again on the account as it is then.
    """

    passed: bool
    checks: tuple[Check, ...] = ()
    decisions: tuple[PortfolioDecision, ...] = ()
    adjustments: tuple[Text, ...] = ()
    vetoed_tickers: tuple[Ticker, ...] = ()
    proposal_hash: str
    proposals: tuple[StockPick, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    limits: AccountLimits
    budget: Money | None = None


class ValidateExits(Command):
    """Apply the rules in code to the exits that a check proposed."""

    request: CycleRequest
    portfolio: Portfolio
    exit_report: ExitReport


class ReviewPicks(Command):
    """Ask the risk reviewer for its word."""

    daily_picks: DailyPicks
    quant_report: QuantReport
    research_report: ResearchReport
    portfolio: Portfolio


class ValidateDecision(Command):
    """Apply the rules in code and size what is left."""

    request: CycleRequest
    daily_picks: DailyPicks
    pick_review: PickReview
    quant_report: QuantReport
    research_report: ResearchReport
    portfolio: Portfolio
