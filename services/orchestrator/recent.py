"""Cycles as this orchestrator last wrote them, so that it need not read them again.

Rows may be out of date: the write says at which revision they were read and fails where another
orchestrator has been faster (`store.write`). Only cycles whose running work is all plain are kept:
a claim's lease, and how long a person is waited for, are measured by the database's clock and read
under the cycle's lock.
"""

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from contracts.cycle import CycleStatus
from services.orchestrator.changes import Loaded
from services.orchestrator.group import Group
from services.orchestrator.inputs import CycleAsked, Given, Resulted
from services.orchestrator.rows import CycleRow, OperationRow

REQUEST_BYTES_MAX = 65_536
"""Of a cycle that is kept: one with a larger request is read again, so that memory has a bound."""
PAUSE_S = 5.0
"""How long all is read again after another orchestrator was seen to write the same cycles."""


@dataclass(frozen=True)
class Kept:
    """A running cycle and its running operations."""

    cycle: CycleRow
    operations: Sequence[OperationRow]

    @property
    def may_stay(self) -> bool:
        """Whether it need not be read again."""
        running = self.cycle.state.status is CycleStatus.RUNNING
        plain = not any(row.claimed for row in self.operations)
        small = len(self.cycle.request) <= REQUEST_BYTES_MAX
        return running and plain and small and not self.cycle.waiting


class Recent:
    """At most `cycles_max` cycles, the longest untouched dropped first.

    Rows are taken out to be folded, which changes them, and come back once they are written: a
    write that fails leaves nothing here that the database does not have.
    """

    def __init__(self, cycles_max: int) -> None:
        self._cycles_max = cycles_max
        self._kept: OrderedDict[UUID, Kept] = OrderedDict()
        self._cycle_of: dict[UUID, UUID] = {}
        self._paused_until = 0.0

    def take(self, given: Iterable[Given]) -> Loaded | None:
        """The rows that the inputs speak of, taken out; None where any of them must be read."""
        if time.monotonic() < self._paused_until:
            return None
        wanted = set()
        for each in given:
            if isinstance(each, Resulted) and each.result.op_id in self._cycle_of:
                wanted.add(self._cycle_of[each.result.op_id])
            elif not isinstance(each, CycleAsked) or each.cycle_id in self._kept:
                return None
        taken = [self._drop(cycle_id) for cycle_id in wanted]
        return Loaded(
            cycles={kept.cycle.cycle_id: kept.cycle for kept in taken},
            operations={row.op_id: row for kept in taken for row in kept.operations},
        )

    def keep(self, group: Group) -> None:
        """Remember what a group has just written."""
        running: dict[UUID, list[OperationRow]] = {}
        for row in group.live_operations:
            running.setdefault(row.cycle_id, []).append(row)
        for cycle in group.cycles:
            cycle.stored()
            if cycle.cycle_id in self._kept:
                self._drop(cycle.cycle_id)
            operations = running.get(cycle.cycle_id, [])
            kept = Kept(cycle, operations)
            if kept.may_stay:
                self._put(kept)
        while len(self._kept) > self._cycles_max:
            self._drop(next(iter(self._kept)))

    def pause(self) -> None:
        """Another orchestrator is at work: what is here would be refused again."""
        self._paused_until = time.monotonic() + PAUSE_S
        self._kept.clear()
        self._cycle_of.clear()

    def _put(self, kept: Kept) -> None:
        self._kept[kept.cycle.cycle_id] = kept
        self._cycle_of.update({row.op_id: kept.cycle.cycle_id for row in kept.operations})

    def _drop(self, cycle_id: UUID) -> Kept:
        kept = self._kept.pop(cycle_id)
        for row in kept.operations:
            del self._cycle_of[row.op_id]
        return kept
