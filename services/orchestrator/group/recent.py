"""Cycles as this orchestrator last wrote them, so that it need not read them again.

Rows may be out of date: the write says at which revision a cycle, and at which epoch an operation,
was read, and fails where another orchestrator has been faster (`store.write`).

What needs no reading: new requests, first claims, records and results of the epoch that has the
work. Whatever looks at a lease, at the time a person is waited for or at money is read under the
cycle's lock, by the database's clock: a second claim, a record that pays, cycles that hold money
back. So is what would be refused without a write, which nothing would guard.
"""

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from contracts.cycle import STRATEGY, CycleStatus
from services.orchestrator.group.batch import InputBatch
from services.orchestrator.group.changes import Loaded
from services.orchestrator.group.inputs import (
    CallsRecorded,
    Claimed,
    CycleRequested,
    GroupInput,
    Resulted,
    is_paid,
    operation_of,
)
from services.orchestrator.group.leases import NOTHING
from services.orchestrator.group.rows import CycleRow, OperationRow

REQUEST_BYTES_MAX = 65_536
"""Of a cycle that is kept: one with a larger request is read again, so that memory has a bound."""
PAUSE_S = 5.0
"""How long all is read again after another orchestrator was seen to write the same cycles."""
NOBODY = UUID(int=0)


@dataclass(frozen=True)
class RecentCycle:
    """A running cycle and its running operations."""

    cycle: CycleRow
    operations: Sequence[OperationRow]

    @property
    def may_stay(self) -> bool:
        """Whether it need not be read again."""
        running = self.cycle.state.status is CycleStatus.RUNNING
        # What a strategy's steps have made is written beside the group's one statement.
        plain = self.cycle.kind != STRATEGY and not self.cycle.waiting
        free = all(row.reserved == NOTHING for row in self.operations)
        return running and plain and free and len(self.cycle.request) <= REQUEST_BYTES_MAX


class Recent:
    """At most `cycles_max` cycles, the longest untouched dropped first.

    Rows are taken out to be folded, which changes them, and come back once they are written: a
    write that fails leaves nothing here that the database does not have.
    """

    def __init__(self, cycles_max: int) -> None:
        self._cycles_max = cycles_max
        self._cycles: OrderedDict[UUID, RecentCycle] = OrderedDict()
        self._operations: dict[UUID, OperationRow] = {}
        self._paused_until = 0.0

    def take(self, items: Iterable[GroupInput]) -> Loaded | None:
        """The rows that the inputs speak of, taken out; None where any of them must be read."""
        if time.monotonic() < self._paused_until:
            return None
        cycle_ids = set()
        for item in items:
            row = self._operations.get(operation_of(item) or NOBODY)
            if row is not None and _is_enough(row, item):
                cycle_ids.add(row.cycle_id)
            elif not isinstance(item, CycleRequested) or item.cycle_id in self._cycles:
                return None
        entries = [self._drop(cycle_id) for cycle_id in cycle_ids]
        return Loaded(
            cycles={entry.cycle.cycle_id: entry.cycle for entry in entries},
            operations={row.op_id: row for entry in entries for row in entry.operations},
        )

    def keep(self, group: InputBatch) -> None:
        """Remember what a group has just written."""
        running: dict[UUID, list[OperationRow]] = {}
        for row in group.live_operations:
            row.stored()
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
        self._operations.clear()

    def _put(self, entry: RecentCycle) -> None:
        self._cycles[entry.cycle.cycle_id] = entry
        self._operations.update({row.op_id: row for row in entry.operations})

    def _drop(self, cycle_id: UUID) -> RecentCycle:
        entry = self._cycles.pop(cycle_id)
        for row in entry.operations:
            del self._operations[row.op_id]
        return entry


def _is_enough(row: OperationRow, item: GroupInput) -> bool:
    """Whether the input can be folded on the operation as it was written last."""
    match item:
        case Claimed():
            return row.status == "pending" and row.epoch == 0 and item.claim.epoch is None
        case CallsRecorded():
            return row.epoch == item.record.epoch and not is_paid(item)
        case Resulted():
            return not row.claimed or (0 < row.epoch == item.result.epoch and not is_paid(item))
        case _:
            return False
