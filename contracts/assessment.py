"""Assessment: look back on a cycle and keep what the next one should know."""

from typing import ClassVar

from pydantic import Field

from contracts.cycle import CycleStatus
from contracts.execution import ExecutionResult
from contracts.memory import AWAITED_MAX, AgentMemory, AwaitedDecision
from contracts.message import Command
from contracts.research import Plan, QuantReport, ResearchReport
from contracts.risk import DecisionValidation, PickReview
from contracts.sentiment import SignalDigest
from contracts.stages import Stage
from contracts.trader import DailyPicks
from contracts.types import Text


class Memorize(Command):
    """Write the cycle's memory. Parts that the cycle did not reach are None.

    `past_decisions` are the account's earlier ones whose outcomes are not all told, oldest first.
    """

    STAGE: ClassVar[Stage | None] = "memory"

    outcome: CycleStatus
    reason: Text = ""
    signal_digest: SignalDigest | None = None
    plan: Plan | None = None
    quant_report: QuantReport | None = None
    research_report: ResearchReport | None = None
    daily_picks: DailyPicks | None = None
    pick_review: PickReview | None = None
    decision_validation: DecisionValidation | None = None
    execution_result: ExecutionResult | None = None
    agent_memory: AgentMemory | None = None
    past_decisions: tuple[AwaitedDecision, ...] = Field(default=(), max_length=AWAITED_MAX)
