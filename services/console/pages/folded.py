"""Decisions as people look through them: those that did nothing are folded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any

from contracts.cycle import EXIT
from contracts.execution import DecisionView
from contracts.risk import UnreadableDecision
from libs.facts import amounts
from services.console import logic
from services.console.store import Store
from services.console.views.results import of_decisions

Row = Mapping[str, Any]


@dataclass(frozen=True)
class QuietDecisions:
    """Decisions in a row that ordered nothing and vetoed nothing: as of `first` to `last`; `at` is
    when the newest was made."""

    checks: int
    decisions: int
    at: datetime
    first: date
    last: date

    @property
    def words(self) -> str:
        """`12 checks and 1 decision, nothing to do`."""
        of = [(self.checks, "check"), (self.decisions, "decision")]
        return " and ".join(amounts.count(n, what) for n, what in of if n) + ", nothing to do"


Shown = DecisionView | QuietDecisions | UnreadableDecision
"""A line of a list of decisions."""


def folded(rows: Iterable[Row], lines_max: int) -> Sequence[Shown]:
    """Decisions, newest first, those in a row that did nothing as one line. None is read that is
    not shown: its contracts are long."""
    lines: list[Shown] = []
    for is_quiet, rows_alike in groupby(rows, key=lambda row: row["decision"] is None):
        alike = list(rows_alike)
        room = lines_max - len(lines)
        lines += [_quiet(alike)] if is_quiet else map(logic.decision_view, alike[:room])
        if len(lines) >= lines_max:
            break
    return lines


async def with_results(lines: Sequence[Shown], *, store: Store) -> Sequence[Shown]:
    """The lines, the decisions among them with what came of them."""
    views = [line for line in lines if isinstance(line, DecisionView)]
    filled = iter(await of_decisions(views, store=store))
    return [next(filled) if isinstance(line, DecisionView) else line for line in lines]


def _quiet(rows: Sequence[Row]) -> QuietDecisions:
    checks = sum(row["kind"] == EXIT for row in rows)
    days = [row["as_of"] for row in rows]
    return QuietDecisions(checks, len(rows) - checks, rows[0]["finished_at"], min(days), max(days))
