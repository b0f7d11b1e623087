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
from services.orchestrator.group.changes import Loaded
from services.orchestrator.group.fold import Group
from services.orchestrator.group.inputs import CycleAsked, GroupInput, Resulted
from services.orchestrator.group.rows import CycleRow, OperationRow

REQUEST_BYTES_MAX = 65_536
"""Of a cycle that is kept: one with a larger request is read again, so that memory has a bound."""
PAUSE_S = 5.0
"""How long all is read again after another orchestrator was seen to write the same cycles."""


@dataclass(frozen=True)
class RecentCycle:
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
        self._cycles: OrderedDict[UUID, RecentCycle] = OrderedDict()
        self._cycle_of: dict[UUID, UUID] = {}
        self._paused_until = 0.0

    def take(self, items: Iterable[GroupInput]) -> Loaded | None:
        """The rows that the inputs speak of, taken out; None where any of them must be read."""
        if time.monotonic() < self._paused_until:
            return None
        cycle_ids = set()
        for item in items:
            if isinstance(item, Resulted) and item.result.op_id in self._cycle_of:
                cycle_ids.add(self._cycle_of[item.result.op_id])
            elif not isinstance(item, CycleAsked) or item.cycle_id in self._cycles:
                return None
        entries = [self._drop(cycle_id) for cycle_id in cycle_ids]
        return Loaded(
            cycles={entry.cycle.cycle_id: entry.cycle for entry in entries},
            operations={row.op_id: row for entry in entries for row in entry.operations},
        )

    def keep(self, group: Group) -> None:
        """Remember what a group has just written."""
        running: dict[UUID, list[OperationRow]] = {}
        for row in group.live_operations:
            running.setdefault(row.cycle_id, []).append(row)
        for cycle in group.cycles:
            cycle.stored()
            if cycle.cycle_id in self._cycles:
                self._drop(cycle.cycle_id)
            operations = running.get(cycle.cycle_id, [])
            entry = RecentCycle(cycle, operations)
            if entry.may_stay:
                self._put(entry)
        while len(self._cycles) > self._cycles_max:
            self._drop(next(iter(self._cycles)))

    def pause(self) -> None:
        """Another orchestrator is at work: what is here would be refused again."""
        self._paused_until = time.monotonic() + PAUSE_S
        self._cycles.clear()
        self._cycle_of.clear()

    def _put(self, entry: RecentCycle) -> None:
        self._cycles[entry.cycle.cycle_id] = entry
        self._cycle_of.update({row.op_id: entry.cycle.cycle_id for row in entry.operations})

    def _drop(self, cycle_id: UUID) -> RecentCycle:
        entry = self._cycles.pop(cycle_id)
        for row in entry.operations:
            del self._cycle_of[row.op_id]
        return entry
