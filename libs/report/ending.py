"""How a pipeline or a decision ended, in one sentence. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from contracts.cycle import EXIT, CycleStatus
from contracts.operation import OperationStatus, OperationView
from contracts.query import DecisionView, PipelineView
from contracts.strategy_query import StrategyView
from libs.facts import amounts
from libs.report import exits, orders
from libs.report.reports import Reports
from libs.report.tones import Tone, tone

REASON_CHARS = 900
STRATEGY_ENDS = {
    "training_gate": "stopped by the training gate",
    "backtest_gate": "stopped by the backtest gate",
}
STEP = re.compile(r"[a-z_]+/[a-z_]+")
"""A step as a reason names it: `analyzing/quant failed: ...`."""
AWAITING_APPROVAL = "awaiting_approval"
BY_A_PERSON = frozenset({CycleStatus.REJECTED, CycleStatus.EXPIRED})
"""Ends that nothing went wrong in, so that no place is named."""


@dataclass(frozen=True)
class Ending:
    """The end of a pipeline: the trades, why there are none, or why it did not come so far.

    `place` says where it stopped, `failed in analyzing/quant`, as far as it did.
    """

    words: str
    tone: Tone
    place: str = ""
    asks: bool = False
    """Whether a person is asked."""

    @property
    def sentence(self) -> str:
        """All of it on one line."""
        return f"{self.place}: {self.words}" if self.place else self.words


def of(
    pipeline: PipelineView, reports: Reports, nodes: Sequence[OperationView], reason: str
) -> Ending:
    """How the pipeline ended, for `reason`; `nodes` are its cycle's operations."""
    status = pipeline.status
    if status is CycleStatus.RUNNING:
        state = pipeline.state or "waiting"
        return Ending(
            f"now {state.replace('_', ' ')}", tone(status), asks=state == AWAITING_APPROVAL
        )
    if status is CycleStatus.COMPLETED:
        ordered = reports.execution is not None and bool(reports.execution.orders)
        # What ordered nothing is no success, and no failure.
        return Ending(_achieved(reports, reason), Tone.GOOD if ordered else Tone.QUIET)
    where = "" if status in BY_A_PERSON else _where(pipeline, nodes, reason)
    words = amounts.cut(reason.removeprefix(f"{where} failed: "), REASON_CHARS)
    return Ending(words, tone(status), f"{status.value} in {where}" if where else "")


def of_decision(view: DecisionView) -> str:
    """The trades of a decision, or why there are none."""
    if view.execution is not None and view.execution.orders:
        return orders.in_short(view.execution)
    if not view.decision.decisions:
        return f"nothing to {'sell' if view.kind == EXIT else 'order'}"
    return "not executed" if view.execution is None else "no order"


def of_strategy(view: StrategyView) -> Ending:
    """How far a strategy came: its verdict, or the gate that stopped it."""
    word = view.assessment.verdict.value if view.assessment else view.ended
    return Ending(STRATEGY_ENDS.get(word, word), tone(word))


def _achieved(reports: Reports, reason: str) -> str:
    if reports.execution is not None and reports.execution.orders:
        return orders.in_short(reports.execution)
    if reports.exits is not None:
        return f"nothing ordered: {exits.nothing_sold(reports.exits)}"
    if reports.picks is not None and not reports.wanted:
        return "nothing ordered: the trader picked nothing"
    if reports.validation is not None and not reports.validation.decisions:
        count = amounts.count(len(reports.wanted), "pick")
        return f"nothing ordered: the rules vetoed {count}"
    return amounts.cut(reason, REASON_CHARS) or "completed"


def _where(pipeline: PipelineView, nodes: Sequence[OperationView], reason: str) -> str:
    """The step at which it stopped, as `state/step`; the state alone where no step is known.

    What failed after that, such as a memory that could not be paid either, is not where it stopped.
    """
    ends = {OperationStatus.FAILED, OperationStatus.CANCELLED}
    stopped = [
        f"{node.state}/{node.name}"
        for node in nodes
        if node.type == "operation"
        and node.status in ends
        and node.pipeline in {pipeline.name, "shared"}
    ]
    step, _, why = reason.partition(" failed: ")
    if why and STEP.fullmatch(step):
        return step
    return next(reversed(stopped), pipeline.state)
