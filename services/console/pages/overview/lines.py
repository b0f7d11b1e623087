"""The overview's failures, made short: those of one reason on one line. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contracts.cycle_query import CycleView
from libs.report import ending

STEP = re.compile(r"^[a-z_]+/[a-z_]+ failed: ")


@dataclass(frozen=True)
class Failures:
    """Cycles that failed for the same reason; `newest` is one of them."""

    newest: CycleView
    count: int

    @property
    def words(self) -> str:
        """The reason, without the step that it is known by."""
        return ending.in_words(STEP.sub("", self.newest.reason, count=1))


def by_reason(failed: Iterable[CycleView], lines_max: int) -> Sequence[Failures]:
    """Failed cycles, newest first, those of one kind and reason as one line."""
    alike: dict[tuple[str, str], Failures] = {}
    for cycle in failed:
        known = alike.setdefault((cycle.kind, cycle.reason), Failures(cycle, 0))
        alike[cycle.kind, cycle.reason] = Failures(known.newest, known.count + 1)
    return list(alike.values())[:lines_max]
