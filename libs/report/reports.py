"""The reports of one pipeline: the contracts that its stages have made. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

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
CONTRACTS: Mapping[str, tuple[str, type[Contract]]] = {
    "digest": ("signal_digest", SignalDigest),
    "sentiment": ("sentiment_report", SentimentReport),
    "portfolio": ("portfolio", Portfolio),
    "plan": ("plan", Plan),
    "quant": ("quant_report", QuantReport),
    "research": ("research_report", ResearchReport),
    "picks": ("daily_picks", DailyPicks),
    "review": ("pick_review", PickReview),
    "exits": ("exit_report", ExitReport),
    "validation": ("decision_validation", DecisionValidation),
    "approval": ("approval", Approval),
    "execution": ("execution_result", ExecutionResult),
    "memory": ("agent_memory", AgentMemory),
}
"""The fields below, each with its contract's name and kind."""
CANNOT_BE_READ = "on record, but not readable here: `deskbus operations show` has it whole"


@dataclass(frozen=True)
class Reports:
    """The contracts of one pipeline; None where it never came so far, or cannot be read here.

    `unreadable` names those that are on record and cannot be read: too long for the answer that
    brought them, or a later release's. Of them nobody may say that they are not there.
    """

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
    unreadable: frozenset[str] = frozenset()

    @classmethod
    def of(cls, pipeline: PipelineView) -> "Reports":
        """The pipeline's contracts, as far as they can be read here."""
        known: Mapping[str, JsonValue] = pipeline.contracts
        read: dict[str, Any] = {
            field: _read(kind, known.get(name)) for field, (name, kind) in CONTRACTS.items()
        }
        names = {field: name for field, (name, _) in CONTRACTS.items()}
        lost = {name for field, name in names.items() if known.get(name) and read[field] is None}
        return cls(**read, unreadable=frozenset(lost))

    def lost(self, *names: str) -> str:
        """Which of these contracts are on record and cannot be read here, as a sentence; empty
        where none is so."""
        lost = [name.replace("_", " ") for name in names if name in self.unreadable]
        return f"{' and '.join(lost)} {CANNOT_BE_READ}" if lost else ""

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
