"""How an orchestrator's cycles are split between its commit loops.

Each cycle has one loop, by its id, so that loops seldom meet. This is a matter of speed alone: a
group is folded under its cycles' locks or at their revisions, whichever loop of whichever
orchestrator folds it. So what is not known here, such as an operation from before a restart, may go
anywhere.
"""

from collections.abc import Iterable
from uuid import UUID

from services.orchestrator.group.inputs import CycleAsked, GroupInput, cycle_of, operation_of
from services.orchestrator.group.rows import OperationRow

OPERATIONS_KNOWN_MAX = 20_000
"""Operations whose cycle is remembered, ended ones too: their results may come twice."""
NOBODY = UUID(int=0)


class Split:
    """Says which of `parts` loops takes an input."""

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self._part_of: dict[UUID, int] = {}

    def part_of(self, item: GroupInput) -> int:
        """The loop of the cycle that the input speaks of."""
        # One after the other: two that are accepted at once would not count one another.
        if isinstance(item, CycleAsked):
            return 0
        named = cycle_of(item) or operation_of(item) or NOBODY
        return self._part_of.get(named, named.int % self._parts)

    def keep(self, operations: Iterable[OperationRow]) -> None:
        """Remember whose these are."""
        for row in operations:
            if row.op_id not in self._part_of:
                self._part_of[row.op_id] = row.cycle_id.int % self._parts
        while len(self._part_of) > OPERATIONS_KNOWN_MAX:
            del self._part_of[next(iter(self._part_of))]
