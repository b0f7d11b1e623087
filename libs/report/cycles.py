"""Cycles as a list. Pure."""

from collections.abc import Sequence

from contracts.cycle import CycleStatus
from contracts.cycle_query import CycleView
from contracts.performance import OrderResult
from libs.facts import amounts
from libs.report import results, view
from libs.report.tones import Tone
from libs.report.view import BLANK, Cell, Column, NoRows, Table

FAILURE_CHARS = 80


def listed(cycles: Sequence[CycleView], empty: NoRows) -> Table:
    """A row a cycle with what came of it, in the order of the cycles."""
    return view.table(
        (
            "Cycle",
            "Kind",
            "As of",
            "Status",
            Column("Took", right=True, spare=4),
            Column("Tokens", right=True, spare=2),
            Column("USD", right=True, spare=3),
            "P&L",
            Column("Pipelines", spare=1),
            Column("Outcome", wraps=True),
        ),
        (
            (
                amounts.short(of.cycle_id),
                of.kind,
                str(of.as_of),
                view.status((of.status or CycleStatus.RUNNING).value),
                amounts.between(of.accepted_at, of.ended_at),
                *_spent(of),
                results.cell(_results(of)),
                ", ".join(f"{it.name}@{it.account}" for it in of.pipelines),
                _outcome(of),
            )
            for of in cycles
        ),
        notes=view.notes(
            results.IN_BOTH if any(results.gain(_results(of)) for of in cycles) else ""
        ),
        empty=empty,
    )


def _outcome(of: CycleView) -> Cell:
    words = of.outcome or of.reason or _now(of)
    if of.status is CycleStatus.FAILED:
        return view.say(amounts.cut(words, FAILURE_CHARS), Tone.BAD)
    return view.say(words)


def _spent(of: CycleView) -> Sequence[Cell]:
    if not of.tokens:
        return (BLANK, BLANK)
    return tuple(map(view.say, amounts.spent(of.tokens, of.cost_usd)))


def _results(of: CycleView) -> Sequence[OrderResult]:
    return [result for pipeline in of.pipelines for result in pipeline.results]


def _now(of: CycleView) -> str:
    """Where the pipelines of a running cycle are."""
    states = (it.state for it in of.pipelines if it.status is CycleStatus.RUNNING)
    return ", ".join(dict.fromkeys(f"now {state}" for state in states if state))
