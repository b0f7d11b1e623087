"""Risk: the review by a model, then the rules in code, which have the last word."""

import operator
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from contracts.account import AccountLimits, EntryPlan, ExitAct, Portfolio
from contracts.constraints import Constraints
from contracts.cycle import CycleRequest
from contracts.exit_signal import SIGNALS_MAX, ExitReport, ExitSignal
from contracts.facts import RISK_UNKNOWN, UNKNOWN_SECTOR, DatedEvent, Moves, ReportAhead
from contracts.memory import AgentMemory
from contracts.message import Command, Contract
from contracts.plugins import PLUGINS_MAX, PluginNames, PluginVerdict
from contracts.reasons import (
    FIGURES_MAX,
    LOOSE_MAX,
    Figure,
    Loose,
    Reasoned,
    Reasons,
    Words,
)
from contracts.research import Plan, QuantReport, ResearchReport
from contracts.stages import Stage
from contracts.trader import PICKS_MAX, DailyPicks, Recalibrated, StockPick
from contracts.types import (
    Amount,
    Confidence,
    Currency,
    CycleId,
    Foreign,
    Lot,
    Money,
    Name,
    Percent,
    Quantity,
    Score10,
    ShortText,
    Text,
    Ticker,
    Value,
    is_none,
    is_single,
)
from contracts.venue import VenueTerms

ADJUSTMENTS_MAX = 40
"""Changes that one review tells."""
RECALIBRATION_POINTS = 21


class ReviewedPick(Value):
    """The risk reviewer's judgement of one of the trader's picks, with its reasons. Nothing left is
    a veto.
    """

    ticker: Ticker
    allocation_pct: Percent
    confidence: Confidence
    reasons: Reasons = ()


class ReviewDraft(Value):
    """The risk reviewer's judgement: the trader's picks, trimmed or removed. `notes` says in a few
    words what could still go wrong.
    """

    picks: tuple[ReviewedPick, ...] = Field(max_length=PICKS_MAX)
    sell_recommendations: tuple[ReviewedPick, ...] = Field(default=(), max_length=PICKS_MAX)
    confidence: Confidence
    notes: Words = ""
    vetoed_tickers: tuple[Ticker, ...] = Field(default=(), max_length=2 * PICKS_MAX)


class PickReview(Reasoned):
    """The trader's picks as the reviewer leaves them: smaller or gone, never larger or new.

    `risk_notes` are the reviewer's few words. Code composed `adjustments` from what changed and the
    reasons for it; what the reviewer raised or added stands there as cut back.
    """

    llm: ShortText
    pick_date: date
    picks: tuple[StockPick, ...] = Field(default=(), max_length=PICKS_MAX)
    sell_recommendations: tuple[StockPick, ...] = Field(default=(), max_length=PICKS_MAX)
    confidence: Confidence
    market_summary: Text = ""
    risk_notes: Text = ""
    adjustments: tuple[Text, ...] = Field(default=(), max_length=ADJUSTMENTS_MAX)
    vetoed_tickers: tuple[Ticker, ...] = Field(default=(), max_length=2 * PICKS_MAX)


class DecisionAction(StrEnum):
    """The action of a decision on an asset."""

    BUY = "buy"
    SELL = "sell"
    HOLD = "hold"


class Evidence(Value):
    """The evidence of the rules on one ticker: facts of the market source, judgements of research.

    `sector`, `price`, `measured_risk`, `catalyst_event` (in words: `catalyst`), `atr` (in the
    currency that it trades in), the next `report` and whether the source knows of reports are the
    source's; so is the `issuer`, the same for all share classes of one company, empty where the
    source does not know it, and the `lot` that its shares are bought in. `exits` are the account's
    exit rules that decide, as they judge a position that is bought at as_of's close; None where
    they cannot be read, and `exits_note` where rules read before stand, with why.
    `risk_score` is the analyst's; the rules take the higher of the two. `confidence` is the
    quant's.

    `price` is in the account's currency; `foreign` is what it was before the exchange. Where no
    rate is known, `no_rate` names the currency that `price` still is in, and nothing is bought.
    `is_sourced`: the finding cites a tool result; without one nothing is bought.
    """

    ticker: Ticker
    sector: ShortText = UNKNOWN_SECTOR
    risk_score: Score10
    measured_risk: Score10 = RISK_UNKNOWN
    catalyst: Text = ""
    catalyst_event: DatedEvent | None = None
    price: Amount = Field(gt=0)
    confidence: Confidence = 0.0
    foreign: Foreign | None = None
    no_rate: Currency | None = None
    atr: Amount | None = Field(default=None, ge=0)
    report: ReportAhead | None = None
    has_reports: bool = False
    issuer: ShortText = ""
    lot: Lot = Field(default=1, exclude_if=is_single)
    exits: tuple[ExitSignal, ...] | None = Field(default=(), max_length=SIGNALS_MAX)
    exits_note: ShortText = Field(default="", exclude_if=operator.not_)
    is_sourced: bool = True

    @property
    def risk(self) -> float:
        """The rules' risk score: a model's score may only make it stricter than the prices do."""
        return max(self.risk_score, self.measured_risk)


class RuleOutcome(StrEnum):
    """The outcome of a rule for a proposal."""

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
    """The mark of a sale that is an exit: there is at most one an account, ticker and session.

    Once it is filled, a stop order at `stop_price` (in the currency that the asset trades in) is
    placed on what is left, good till cancelled; None: no stop. `acts` is what it acts on, where
    rules proposed it.
    """

    stop_price: Money | None = None
    acts: ExitAct | None = Field(default=None, exclude_if=is_none)


class PortfolioDecision(Value):
    """A sized decision. `price` is what sizing assumed; the order is a market order.

    A sale that an exit check proposed says so in `exit`; a buy has a `plan`, whose stop is placed
    once it is filled. `reasoning` is its thesis. `confidence` is as it was stated, and sized by the
    lower of it and of the `recalibrated` one. A buy is of whole lots of `lot` shares. `venue` is
    what a broker is sent of it; None: the simulated one fills it.
    """

    action: DecisionAction
    asset: Ticker
    quantity: Quantity
    price: Money
    allocation_pct: Decimal = Field(ge=0, le=100)
    confidence: Confidence
    reasoning: Text
    strategy_used: ShortText
    lot: Lot = Field(default=1, exclude_if=is_single)
    exit: ExitPlan | None = Field(default=None, exclude_if=is_none)
    plan: EntryPlan | None = Field(default=None, exclude_if=is_none)
    recalibrated: Recalibrated | None = Field(default=None, exclude_if=is_none)
    venue: VenueTerms | None = Field(default=None, exclude_if=is_none)


class Recalibration(Value):
    """How often came true what `provider` stated: the table that a decision was sized by.

    `happened` are parts at the stated confidences 0, 0.05, ... 1; between them it is a straight
    line. It is of so many `outcomes` of the account's own buys; the last was known on
    `known_until`. `left_out` more are of decisions with a fallback.
    """

    provider: Name
    outcomes: int = Field(ge=1)
    left_out: int = Field(default=0, ge=0, exclude_if=operator.not_)
    known_until: date
    happened: tuple[Confidence, ...] = Field(
        min_length=RECALIBRATION_POINTS, max_length=RECALIBRATION_POINTS
    )


class DecisionValidation(Contract):
    """The proposal as the rules left it. `passed` is whether anything is left to execute.

    `proposal_hash` is the SHA-256 of the decisions in canonical JSON; an approval is bound to it.
    `proposals`, `evidence`, `moves`, `limits`, `budget` and `constraints` (of the request and the
    plan) are all that the rules took, so that execution runs the same function again on the account
    as it is then. `synthetic` says that it was decided on prices that are made up. `figures` and
    `loose` are those of the decisions' reasoning, as the trader's picks have them. `recalibration`
    is the table that stated confidences were looked up in; None where too few outcomes were known.
    `plugins` are the answers of the user's own rules, which bind execution too.
    """

    passed: bool
    checks: tuple[Check, ...] = ()
    decisions: tuple[PortfolioDecision, ...] = ()
    adjustments: tuple[Text, ...] = ()
    vetoed_tickers: tuple[Ticker, ...] = ()
    proposal_hash: str
    proposals: tuple[StockPick, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    moves: Moves = Moves()
    limits: AccountLimits
    budget: Money | None = None
    constraints: Constraints = Constraints()
    synthetic: bool = False
    figures: tuple[Figure, ...] = Field(default=(), max_length=FIGURES_MAX)
    loose: tuple[Loose, ...] = Field(default=(), max_length=LOOSE_MAX)
    recalibration: Recalibration | None = Field(default=None, exclude_if=is_none)
    plugins: tuple[PluginVerdict, ...] = Field(
        default=(), max_length=PLUGINS_MAX * PICKS_MAX, exclude_if=operator.not_
    )


class UnreadableDecision(Value):
    """A decision on record, or a proposal that waits, which this release cannot read: a later one
    wrote it, or it is damaged. `at` is when it was made."""

    cycle_id: CycleId
    pipeline: Name
    account: Name
    as_of: date
    at: datetime


class ValidateExits(Command):
    """Apply the rules in code to the exits that a check proposed."""

    request: CycleRequest
    portfolio: Portfolio
    exit_report: ExitReport


class ReviewPicks(Command):
    """Ask the risk reviewer for its word."""

    STAGE: ClassVar[Stage | None] = "risk"

    request: CycleRequest
    plan: Plan
    daily_picks: DailyPicks
    quant_report: QuantReport
    research_report: ResearchReport
    portfolio: Portfolio


class ValidateDecision(Command):
    """Apply the rules in code and size what is left.

    From `recalibrated_from` known outcomes on stated confidences are recalibrated by those that
    the account's last memory carries; 0: never. `plugins` are the user's own rules for buys.
    """

    request: CycleRequest
    plan: Plan
    daily_picks: DailyPicks
    pick_review: PickReview
    quant_report: QuantReport
    research_report: ResearchReport
    portfolio: Portfolio
    agent_memory: AgentMemory | None = None
    recalibrated_from: int = Field(default=0, ge=0)
    plugins: PluginNames = Field(default=(), exclude_if=operator.not_)
