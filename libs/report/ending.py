"""How a pipeline or a decision ended, in one sentence. Pure."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from contracts.cycle import EXIT, CycleStatus
from contracts.cycle_query import CycleView, PipelineView
from contracts.execution import DecisionView, ExecutionResult
from contracts.operation import OperationStatus, OperationView
from contracts.plugins import rule_words
from contracts.risk import RuleOutcome
from contracts.stages import Substitute, in_short
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
DONE = {"report": "report written", "snapshot": "accounts valued"}
"""The words for kinds of cycles that end with nothing else to say."""
STEP = re.compile(r"[a-z_]+/[a-z_]+")
"""A step as a reason names it: `analyzing/quant failed: ...`."""
AFTER_THE_END = "memorizing/memorize failed: "
GATE_RULE = re.compile(r"\b[a-z_]+_(?:(?:below|above)_threshold|not_defined)(?= \()")
OUTCOME_CHARS = 400
COMPLETED = "completed"
RULES_NAMED_MAX = 3
AWAITING_APPROVAL = "awaiting_approval"
BY_A_PERSON = frozenset({CycleStatus.REJECTED, CycleStatus.EXPIRED})
"""Ends that nothing went wrong in, so that no place is named."""


@dataclass(frozen=True)
class ReportEnding:
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

    @property
    def step(self) -> str:
        """The step of `place`, such as `quant`; no name of one where it names none."""
        return self.place.rpartition("/")[2]


@dataclass(frozen=True)
class Achieved:
    """The deeds of a pipeline, as far as its end is told by them; None where it never came so far.

    `checked` positions of which `exits` were to be sold; `picks` of the trader, of which the rules
    `left` some; `vetoes` are the rules that vetoed; a `strategy` has its `verdict`. `findings` are
    those of the analyst, None where research never ended.
    """

    execution: ExecutionResult | None = None
    checked: int | None = None
    exits: int = 0
    findings: int | None = None
    picks: int | None = None
    left: int | None = None
    vetoes: Sequence[str] = ()
    strategy: str = ""
    verdict: str = ""

    @property
    def unplaced(self) -> int:
        """Trades that the rules left and execution placed none of."""
        return self.left or 0 if self.execution is not None else 0

    @classmethod
    def of(cls, reports: Reports, contracts: Mapping[str, JsonValue]) -> "Achieved":
        """By the pipeline's whole contracts."""
        checks = reports.exits.checks if reports.exits else ()
        validation = reports.validation
        judged = validation.checks if validation else ()
        return cls(
            execution=reports.execution,
            checked=len(checks) if reports.exits else None,
            exits=sum(check.quantity is not None for check in checks),
            findings=len(reports.research.tickers) if reports.research else None,
            picks=len(reports.wanted) if reports.picks else None,
            left=len(validation.decisions) if validation else None,
            vetoes=[check.rule for check in judged if check.outcome is RuleOutcome.VETOED],
            strategy=_word(contracts.get("strategy_design"), "spec", "name"),
            verdict=_word(contracts.get("strategy_assessment"), "verdict"),
        )


def of(
    pipeline: PipelineView, reports: Reports, nodes: Sequence[OperationView], reason: str
) -> ReportEnding:
    """How the pipeline ended, for `reason`; `nodes` are its cycle's operations."""
    return of_achieved(pipeline, Achieved.of(reports, pipeline.contracts), nodes, reason)


def of_achieved(
    pipeline: PipelineView, achieved: Achieved, nodes: Sequence[OperationView], reason: str
) -> ReportEnding:
    """The same where the contracts are not at hand."""
    status = pipeline.status
    if status is CycleStatus.RUNNING:
        return _so_far(pipeline.state)
    if status is CycleStatus.COMPLETED:
        ordered = achieved.execution is not None and bool(achieved.execution.orders)
        # What ordered nothing is no success, and no failure.
        unfounded = achieved.findings == 0 and not ordered
        tone_of_end = Tone.GOOD if ordered else Tone.WARN if unfounded else Tone.QUIET
        return ReportEnding(_achieved(achieved, reason), tone_of_end)
    where = "" if status in BY_A_PERSON else _where(pipeline, nodes, reason)
    words = amounts.cut(in_words(reason.removeprefix(f"{where} failed: ")), REASON_CHARS)
    return ReportEnding(words, tone(status), f"{status.value} in {where}" if where else "")


def of_cycle(view: CycleView, achieved: Callable[[PipelineView], Achieved]) -> str:
    """A cycle's outcome on one line: of each pipeline, with its name where there are several."""
    ends = {
        pipeline.name: marked(
            of_achieved(pipeline, achieved(pipeline), (), view.reason_of(pipeline)).sentence,
            pipeline.substitutes,
        )
        for pipeline in view.pipelines
    }
    outcome = next(iter(ends.values()), "")
    if len(set(ends.values())) > 1:
        outcome = "; ".join(f"{name}: {end}" for name, end in ends.items())
    elif outcome == COMPLETED:
        outcome = DONE.get(view.kind, outcome)
    return amounts.cut(outcome, OUTCOME_CHARS)


def of_contracts(pipeline: PipelineView) -> Achieved:
    """The deeds of a pipeline that is there with its contracts."""
    return Achieved.of(Reports.of(pipeline), pipeline.contracts)


def marked(sentence: str, substitutes: Collection[Substitute]) -> str:
    """The sentence with who answered in place of the pipeline's own model, if anybody did."""
    return f"{sentence} [{in_short(substitutes)}]" if substitutes else sentence


def of_decision(view: DecisionView) -> str:
    """The trades of a decision, or why there are none, and who answered in a model's place."""
    return marked(_traded(view), view.decision.substitutes)


def _traded(view: DecisionView) -> str:
    if view.execution is not None and view.execution.orders:
        return orders.in_short(view.execution)
    if not view.decision.decisions:
        return f"nothing to {'sell' if view.kind == EXIT else 'order'}"
    return "not executed" if view.execution is None else "no order"


def of_strategy(view: StrategyView) -> ReportEnding:
    """How far a strategy came: its verdict, or the gate that stopped it."""
    word = view.assessment.verdict.value if view.assessment else view.ended
    return ReportEnding(STRATEGY_ENDS.get(word, word), tone(word))


def after_the_end(reason: str) -> str:
    """The failure of a step after the end, such as the memory; empty where none failed."""
    at = reason.find(AFTER_THE_END)
    return reason[at:] if at >= 0 else ""


def in_words(reason: str) -> str:
    """A reason with a gate's rules in words: `max drawdown above threshold (41.0% > 40.0%)`."""
    return GATE_RULE.sub(lambda rule: rule[0].replace("_", " "), reason)


def _word(contract: JsonValue, *path: str) -> str:
    """A word of a contract that is not read whole; empty where it has none there."""
    for name in path:
        contract = contract.get(name) if isinstance(contract, dict) else None
    return contract if isinstance(contract, str) else ""


def _so_far(state: str) -> ReportEnding:
    asks = state == AWAITING_APPROVAL
    words = "waits for approval" if asks else f"now {(state or 'waiting').replace('_', ' ')}"
    return ReportEnding(words, tone(CycleStatus.RUNNING), asks=asks)


def _achieved(achieved: Achieved, reason: str) -> str:  # noqa: PLR0911 - one line an end
    if achieved.execution is not None and achieved.execution.orders:
        return orders.in_short(achieved.execution)
    if achieved.checked is not None:
        return exits.nothing_sold(achieved.checked, achieved.exits, achieved.unplaced)
    if achieved.picks == 0:
        if achieved.findings == 0:
            return "no trade: the analyst gave no finding, so nothing could be bought"
        return "nothing ordered: the trader picked nothing"
    if achieved.picks and achieved.left == 0:
        vetoed = f"the rules vetoed {amounts.count(achieved.picks, 'pick')}"
        return f"nothing ordered: {vetoed}{_by(achieved.vetoes)}"
    if achieved.unplaced:
        allowed = amounts.count(achieved.unplaced, "trade")
        return f"nothing ordered: of {allowed} that the rules allowed none was placed"
    if achieved.verdict:
        return f"{achieved.strategy or 'the strategy'} is {achieved.verdict}"
    return amounts.cut(reason, REASON_CHARS) or COMPLETED


def _by(rules: Sequence[str]) -> str:
    """` (cash, no doubling down)`: each rule once; empty where none is known."""
    names = [rule_words(rule) for rule in dict.fromkeys(rules)]
    more = [f"{len(names) - RULES_NAMED_MAX} more"] if len(names) > RULES_NAMED_MAX else []
    return f" ({', '.join([*names[:RULES_NAMED_MAX], *more])})" if names else ""


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
