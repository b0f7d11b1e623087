"""The memory by rules: what the cycle did, what it believes, what still waits, what came of it."""

from contracts.assessment import Memorize
from contracts.memory import MemoryDraft
from contracts.research import QuantSignal
from contracts.types import shortened
from libs.llm.rules.rule_set import EvidenceIndex, RuleSet, TaskData, labelled

SUMMARY_CHARS_MAX = 4_000
HYPOTHESES_MAX = 10
STEPS_MAX = 10


def answer(task: TaskData, evidence: EvidenceIndex) -> MemoryDraft:
    """A summary of the cycle; nothing that did not happen in it."""
    del evidence
    cycle = Memorize.model_validate(task["cycle"])
    return MemoryDraft(
        short_term_summary=labelled(
            shortened("; ".join([_summary(cycle), *_outcomes(task)]), SUMMARY_CHARS_MAX)
        ),
        active_hypotheses=tuple(labelled(line) for line in _hypotheses(cycle)),
        next_steps=tuple(labelled(line) for line in _next_steps(cycle)),
    )


def _summary(cycle: Memorize) -> str:
    parts = [f"{cycle.as_of}: the cycle ended {cycle.outcome.value}"]
    if cycle.reason:
        parts.append(f"because {cycle.reason[:400]}")
    if cycle.daily_picks is not None:
        picks = ", ".join(f"{p.ticker} {p.allocation_pct}%" for p in cycle.daily_picks.picks)
        parts.append(f"picked {picks or 'nothing'}")
    validation = cycle.decision_validation
    if validation is not None:
        bought = ", ".join(f"{d.action.value} {d.quantity} {d.asset}" for d in validation.decisions)
        parts.append(f"the rules left {bought or 'nothing'}")
        if validation.vetoed_tickers:
            parts.append(f"vetoed {', '.join(validation.vetoed_tickers)}")
    if cycle.execution_result is not None:
        result = cycle.execution_result
        parts.append(f"{len(result.orders)} orders, cash {result.cash_after.amount}")
    return shortened("; ".join(parts), SUMMARY_CHARS_MAX)


def _outcomes(task: TaskData) -> list[str]:
    """Past decisions of which this cycle has learned how they fared, in a sentence each."""
    outcomes = task.get("outcomes")
    return [f"now known: {outcome}" for outcome in outcomes] if isinstance(outcomes, list) else []


def _hypotheses(cycle: Memorize) -> list[str]:
    if cycle.quant_report is None:
        return []
    directed = [
        view
        for view in cycle.quant_report.assets
        if view.signal in (QuantSignal.BULLISH, QuantSignal.BEARISH)
    ]
    lines = [
        f"{view.ticker} is {view.signal.value} at {cycle.as_of} (confidence {view.confidence})"
        for view in directed
    ]
    return lines[:HYPOTHESES_MAX]


def _next_steps(cycle: Memorize) -> list[str]:
    steps = []
    if cycle.execution_result is not None and cycle.execution_result.orders:
        names = sorted({order.asset for order in cycle.execution_result.orders})
        steps.append(f"see how {', '.join(names)} filled, and whether the trend holds")
    if cycle.decision_validation is not None and cycle.decision_validation.vetoed_tickers:
        vetoed = ", ".join(cycle.decision_validation.vetoed_tickers)
        steps.append(f"look again at {vetoed} only with new evidence")
    if cycle.reason and cycle.execution_result is None:
        steps.append(f"mend first: {cycle.reason[:300]}")
    return steps[:STEPS_MAX]


RULES = RuleSet(answer=answer)
