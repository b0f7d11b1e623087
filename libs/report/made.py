"""What one pipeline has made, and all that its stages said of one ticker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from contracts.account import Portfolio
from contracts.approval import Approval, Verdict
from contracts.execution import ExecutionResult, Fill, Order
from contracts.exit_signal import ExitReport
from contracts.memory import AgentMemory
from contracts.message import Contract
from contracts.query import PipelineView
from contracts.research import AssetView, Plan, QuantReport, ResearchFinding, ResearchReport
from contracts.risk import (
    Check,
    DecisionAction,
    DecisionValidation,
    PickReview,
    PortfolioDecision,
    RuleOutcome,
)
from contracts.sentiment import Candidate, SentimentReport, SignalDigest, TickerSentiment
from contracts.trader import DailyPicks, StockPick
from libs.report.cited import Piece, pieces

C = TypeVar("C", bound=Contract)
SHARE_DECIMALS = 2
QUARTER = "momentum_3m_pct"
"""The indicator that there is once a ticker has traded for a quarter."""
FINDING_TEXTS = ("summary", "news_summary", "earnings_outlook")
MADE_UP = "made-up prices: nothing here says anything of a real market"
"""What is told of a decision on synthetic data."""


@dataclass(frozen=True)
class Made:
    """The contracts of one pipeline; None where it never came so far."""

    digest: SignalDigest | None
    sentiment: SentimentReport | None
    portfolio: Portfolio | None
    plan: Plan | None
    quant: QuantReport | None
    research: ResearchReport | None
    picks: DailyPicks | None
    review: PickReview | None
    exits: ExitReport | None
    validation: DecisionValidation | None
    approval: Approval | None
    execution: ExecutionResult | None
    memory: AgentMemory | None

    @classmethod
    def by(cls, pipeline: PipelineView) -> "Made":
        """What the pipeline has made, as far as it can be read here."""
        made = pipeline.contracts
        return cls(
            digest=_read(SignalDigest, made.get("signal_digest")),
            sentiment=_read(SentimentReport, made.get("sentiment_report")),
            portfolio=_read(Portfolio, made.get("portfolio")),
            plan=_read(Plan, made.get("plan")),
            quant=_read(QuantReport, made.get("quant_report")),
            research=_read(ResearchReport, made.get("research_report")),
            picks=_read(DailyPicks, made.get("daily_picks")),
            review=_read(PickReview, made.get("pick_review")),
            exits=_read(ExitReport, made.get("exit_report")),
            validation=_read(DecisionValidation, made.get("decision_validation")),
            approval=_read(Approval, made.get("approval")),
            execution=_read(ExecutionResult, made.get("execution_result")),
            memory=_read(AgentMemory, made.get("agent_memory")),
        )

    @property
    def synthetic(self) -> bool:
        """Whether it was decided on prices that are made up."""
        return self.portfolio is not None and self.portfolio.synthetic

    @property
    def wanted(self) -> Sequence[StockPick]:
        """The trader's picks, buys first."""
        return (*self.picks.picks, *self.picks.sell_recommendations) if self.picks else ()

    @property
    def validated(self) -> Mapping[str, PortfolioDecision]:
        """What the rules left, by asset."""
        return {each.asset: each for each in self.validation.decisions} if self.validation else {}

    @property
    def decisions(self) -> Mapping[str, PortfolioDecision]:
        """What the rules left and, where a person made it smaller, what that person left of it."""
        approval = self.approval
        if approval is None or approval.verdict is not Verdict.EDIT:
            return self.validated
        return {each.asset: _in_proportion(each, self.validated) for each in approval.decisions}


def _in_proportion(
    edited: PortfolioDecision, validated: Mapping[str, PortfolioDecision]
) -> PortfolioDecision:
    """The edited decision with its share of the budget, which an edit leaves as it was, cut too."""
    whole = validated.get(edited.asset)
    if whole is None or whole.quantity == edited.quantity:
        return edited
    share = whole.allocation_pct * edited.quantity / whole.quantity
    return edited.model_copy(update={"allocation_pct": round(share, SHARE_DECIMALS)})


def _read(kind: type[C], value: JsonValue) -> C | None:
    try:
        return None if value is None else kind.model_validate(value)
    except ValidationError:
        # Cut to fit into the answer, or a newer desk's: the rest of the story still stands.
        return None


def reasons(candidate: Candidate) -> str:
    """Why its sources named it: `screener: gainer 2 (+2.60%); news: headlines in 7 days: 3`."""
    said = ((name, candidate.reasons.get(name, "")) for name in candidate.sources)
    return "; ".join(f"{name}: {why}" if why else name for name, why in said)


@dataclass(frozen=True)
class Row:
    """What each stage said of one ticker; None where it said nothing. `unscored` says why there is
    no `mood`.

    `validated` is what the rules left of a pick, `decision` what a person then left of that.
    """

    ticker: str
    candidate: Candidate | None
    mood: TickerSentiment | None
    unscored: str | None
    signal: AssetView | None
    finding: ResearchFinding | None
    pick: StockPick | None
    checks: Sequence[Check]
    validated: PortfolioDecision | None
    decision: PortfolioDecision | None
    approval: Approval | None
    order: Order | None
    fill: Fill | None
    judged: bool
    quant: QuantReport | None = None
    research: ResearchReport | None = None
    sentiment: SentimentReport | None = None
    picks: DailyPicks | None = None
    review: PickReview | None = None

    @property
    def mood_words(self) -> Sequence[Piece]:
        """Why it is spoken of so, in pieces: quoted headlines know where they are from."""
        if self.sentiment is None or self.mood is None:
            return ()
        place = [each.ticker for each in self.sentiment.tickers].index(self.ticker)
        return pieces(self.sentiment, f"tickers.{place}.rationale", self.mood.rationale)

    @property
    def signal_words(self) -> Sequence[Piece]:
        """The quant's reasoning in pieces: its figures know where they are from."""
        if self.quant is None or self.signal is None:
            return ()
        place = [each.ticker for each in self.quant.assets].index(self.ticker)
        return pieces(self.quant, f"assets.{place}.reasoning", self.signal.reasoning)

    @property
    def finding_words(self) -> Sequence[Sequence[Piece]]:
        """The analyst's summary, news and outlook in pieces, as far as there are any."""
        if self.research is None or self.finding is None:
            return ()
        place = [each.ticker for each in self.research.tickers].index(self.ticker)
        texts = {name: str(getattr(self.finding, name)) for name in FINDING_TEXTS}
        return [
            pieces(self.research, f"tickers.{place}.{name}", text)
            for name, text in texts.items()
            if text
        ]

    @property
    def pick_words(self) -> Sequence[Piece]:
        """The trader's reasoning in pieces."""
        if self.picks is None or self.pick is None:
            return ()
        fields = {
            f"{name}.{place}.reasoning": each
            for name in ("picks", "sell_recommendations")
            for place, each in enumerate(getattr(self.picks, name))
        }
        field = next((name for name, each in fields.items() if each is self.pick), "")
        return pieces(self.picks, field, self.pick.reasoning)

    @property
    def review_words(self) -> Sequence[Sequence[Piece]]:
        """What the reviewer changed of it and why, in pieces."""
        told = self.review.adjustments if self.review else ()
        return [
            pieces(self.review, f"adjustments.{place}", text)
            for place, text in enumerate(told)
            if self.review is not None and text.startswith(f"{self.ticker}: ")
        ]

    @property
    def fundamental(self) -> float | None:
        """The analyst's score; None where it knew no fundamentals, which it writes as 0."""
        return self.finding.fundamental_score or None if self.finding else None

    @property
    def technical(self) -> float | None:
        """The analyst's score; None where it is 0 for want of the quarter of prices that a trend
        and its momentum are scored by."""
        if self.finding is None:
            return None
        known = self.signal is not None and QUARTER in self.signal.technical_indicators
        return self.finding.technical_score if known else self.finding.technical_score or None

    @property
    def against(self) -> Sequence[Check]:
        """The rules that cut or vetoed it, vetoes first."""
        failed = [check for check in self.checks if not check.passed]
        return sorted(failed, key=lambda check: check.outcome is not RuleOutcome.VETOED)

    @property
    def is_edited(self) -> bool:
        """Whether a person made it smaller."""
        return self.decision != self.validated

    @property
    def is_vetoed(self) -> bool:
        """Whether the rules, or a person, left nothing of a pick."""
        nothing = self.decision is None or self.decision.action is DecisionAction.HOLD
        return self.pick is not None and self.judged and nothing


def rows(made: Made) -> Sequence[Row]:
    """One row a ticker that was looked into: what was decided on first, then as it was planned."""
    digest, mood, quant, research = made.digest, made.sentiment, made.quant, made.research
    validation, execution = made.validation, made.execution
    candidates = {each.ticker: each for each in digest.candidates} if digest else {}
    moods = {each.ticker: each for each in mood.tickers} if mood else {}
    unscored = {each.ticker: each.reason for each in mood.unscored} if mood else {}
    signals = {each.ticker: each for each in quant.assets} if quant else {}
    findings = {each.ticker: each for each in research.tickers} if research else {}
    picks = {each.ticker: each for each in made.wanted}
    validated, decisions = made.validated, made.decisions
    # The stop order that follows a sale comes after it, and is shown on its own line.
    placed = reversed(execution.orders) if execution else ()
    orders = {each.asset: each for each in placed}
    fills = {each.asset: each for each in execution.fills} if execution else {}
    assets = made.plan.assets if made.plan else ()
    names = dict.fromkeys((*validated, *picks, *assets, *signals, *findings))
    checks = validation.checks if validation else ()
    return [
        Row(
            ticker=name,
            candidate=candidates.get(name),
            mood=moods.get(name),
            unscored=unscored.get(name),
            signal=signals.get(name),
            finding=findings.get(name),
            pick=picks.get(name),
            checks=[check for check in checks if check.ticker == name],
            validated=validated.get(name),
            decision=decisions.get(name),
            approval=made.approval,
            order=orders.get(name),
            fill=fills.get(name),
            judged=validation is not None,
            quant=quant,
            research=research,
            sentiment=mood,
            picks=made.picks,
            review=made.review,
        )
        for name in names
    ]
