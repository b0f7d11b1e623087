"""The reports of one pipeline: the contracts that its stages have made. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from contracts.account import Portfolio
from contracts.approval import Approval, Verdict
from contracts.cycle_query import PipelineView
from contracts.execution import ExecutionResult
from contracts.exit_signal import ExitReport
from contracts.memory import AgentMemory
from contracts.message import Contract
from contracts.reasons import Reasoned
from contracts.research import Plan, QuantReport, ResearchReport
from contracts.risk import DecisionValidation, PickReview, PortfolioDecision
from contracts.sentiment import SentimentReport, SignalDigest
from contracts.trader import DailyPicks, StockPick

C = TypeVar("C", bound=Contract)
SHARE_DECIMALS = 2


@dataclass(frozen=True)
class Reports:
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
    def of(cls, pipeline: PipelineView) -> "Reports":
        """The pipeline's contracts, as far as they can be read here."""
        contracts = pipeline.contracts
        return cls(
            digest=_read(SignalDigest, contracts.get("signal_digest")),
            sentiment=_read(SentimentReport, contracts.get("sentiment_report")),
            portfolio=_read(Portfolio, contracts.get("portfolio")),
            plan=_read(Plan, contracts.get("plan")),
            quant=_read(QuantReport, contracts.get("quant_report")),
            research=_read(ResearchReport, contracts.get("research_report")),
            picks=_read(DailyPicks, contracts.get("daily_picks")),
            review=_read(PickReview, contracts.get("pick_review")),
            exits=_read(ExitReport, contracts.get("exit_report")),
            validation=_read(DecisionValidation, contracts.get("decision_validation")),
            approval=_read(Approval, contracts.get("approval")),
            execution=_read(ExecutionResult, contracts.get("execution_result")),
            memory=_read(AgentMemory, contracts.get("agent_memory")),
        )

    @property
    def reasoned(self) -> Mapping[str, Reasoned]:
        """The reports with reasons and marks in their texts, by the stage that wrote them."""
        reports: Mapping[str, Reasoned | None] = {
            "sentiment": self.sentiment,
            "quant": self.quant,
            "analyst": self.research,
            "picks": self.picks,
            "review": self.review,
        }
        return {stage: report for stage, report in reports.items() if report is not None}

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
        """The quantities that the rules left, by asset."""
        return (
            {decision.asset: decision for decision in self.validation.decisions}
            if self.validation
            else {}
        )

    @property
    def decisions(self) -> Mapping[str, PortfolioDecision]:
        """The rest that the rules left and, where a person made it smaller, that person left."""
        approval = self.approval
        if approval is None or approval.verdict is not Verdict.EDIT:
            return self.validated
        return {
            decision.asset: _in_proportion(decision, self.validated)
            for decision in approval.decisions
        }


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
