"""The overview's lists, made short: decisions that did nothing folded, failures by their reason.
Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from contracts.cycle import EXIT
from contracts.query import CycleView, DecisionView
from libs.facts import amounts
from services.console import logic

Row = Mapping[str, Any]
STEP = re.compile(r"^[a-z_]+/[a-z_]+ failed: ")


@dataclass(frozen=True)
class Quiet:
    """Decisions in a row that ordered nothing and vetoed nothing; `at` is when the newest was."""

    checks: int
    decisions: int
    at: datetime

    @property
    def words(self) -> str:
        """`12 checks and 1 decision, nothing to do`."""
        of = [(self.checks, "check"), (self.decisions, "decision")]
        return " and ".join(amounts.count(n, what) for n, what in of if n) + ", nothing to do"


@dataclass(frozen=True)
class Failures:
    """Cycles that failed for the same reason; `newest` is one of them."""

    newest: CycleView
    count: int

    @property
    def words(self) -> str:
        """The reason, without the step that it is known by."""
        return STEP.sub("", self.newest.reason, count=1)


def folded(rows: Iterable[Row], lines_max: int) -> Sequence[DecisionView | Quiet]:
    """Decisions, newest first, those in a row that did nothing as one line. None is read that is
    not shown: its contracts are long."""
    lines: list[DecisionView | Quiet] = []
    for is_quiet, rows_alike in groupby(rows, key=lambda row: row["decision"] is None):
        alike = list(rows_alike)
        room = lines_max - len(lines)
        lines += [_quiet(alike)] if is_quiet else map(logic.decision_view, alike[:room])
        if len(lines) >= lines_max:
            break
    return lines


def _quiet(rows: Sequence[Row]) -> Quiet:
    checks = sum(row["kind"] == EXIT for row in rows)
    return Quiet(checks, len(rows) - checks, rows[0]["finished_at"])


def by_reason(failed: Iterable[CycleView], lines_max: int) -> Sequence[Failures]:
    """Failed cycles, newest first, those of one kind and reason as one line."""
    alike: dict[tuple[str, str], Failures] = {}
    for cycle in failed:
        known = alike.setdefault((cycle.kind, cycle.reason), Failures(cycle, 0))
        alike[cycle.kind, cycle.reason] = Failures(known.newest, known.count + 1)
    return list(alike.values())[:lines_max]
