"""What tests of the orchestrator drive by hand: a cycle of a workflow, and rows of the tables."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from contracts.audit import EventType
from contracts.cycle import CycleStatus
from contracts.operation import Reserve
from contracts.types import Failure
from services.orchestrator.group.rows import (
    CallBudget,
    CycleRow,
    OperationRow,
    dump_state,
    load_state,
)
from services.orchestrator.machine.logic import (
    Advance,
    Cycle,
    EventDraft,
    Input,
    Start,
    Started,
    StepDone,
    StepFailed,
    advance,
    begin,
)
from services.orchestrator.machine.workflow import Workflow

CYCLE_ID = UUID("11111111-2222-3333-4444-555555555555")
BROKEN = Failure(code="provider_fault", message="the model answered with an error")
DAY = date(2012, 6, 29)


class Run:
    """One cycle: what is open, all that was started, told and stopped, in order."""

    def __init__(self, workflow: Workflow, *pipelines: str, rounds_max: int = 1) -> None:
        names = pipelines or ("rules",)
        self.workflow = workflow
        self.cycle: Cycle = begin(CYCLE_ID, names, names[0], None, rounds_max)
        self.open: dict[UUID, Start] = {}
        self.started: list[Start] = []
        self.facts: list[EventDraft] = []
        self.stopped: list[UUID] = []
        self.feed(Started())

    def feed(self, given: Input) -> Advance:
        after = advance(self.workflow, self.cycle, given)
        # Through the row and back, as it is stored between any two inputs.
        stored = dump_state(after.cycle)
        self.cycle = load_state(CYCLE_ID, stored, after.cycle.status, after.cycle.reason)
        self.open |= {start.op_id: start for start in after.starts}
        stopped = [each.op_id for each in after.stops]
        for op_id in stopped:
            self.open.pop(op_id, None)
        self.started += after.starts
        self.stopped += stopped
        self.facts += after.facts
        return after

    def waiting(self) -> list[str]:
        return sorted(start.step.name for start in self.open.values())

    def take(self, step: str, lane: str | None = None) -> Start:
        for op_id, start in self.open.items():
            if start.step.name == step and lane in {None, start.lane}:
                return self.open.pop(op_id)
        raise AssertionError(f"{step} is not waiting; {self.waiting()} are")

    def done(self, step: str, contract: Mapping[str, Any], lane: str | None = None) -> Advance:
        start = self.take(step, lane)
        return self.feed(StepDone(start.lane, step, start.attempt, contract))

    def answer(self, *contracts: Mapping[str, Any]) -> None:
        """Answer what was started last, once for each contract."""
        for contract in contracts:
            self.done(self.started[-1].step.name, contract)

    def failed(
        self,
        step: str,
        failure: Failure = BROKEN,
        *,
        corrections: tuple[str, ...] = (),
        lane: str | None = None,
    ) -> Advance:
        start = self.take(step, lane)
        return self.feed(StepFailed(start.lane, step, start.attempt, failure, corrections))

    @property
    def status(self) -> CycleStatus:
        return self.cycle.status

    @property
    def steps(self) -> list[str]:
        """All that was started, by step."""
        return [start.step.name for start in self.started]

    def told(self, what: EventType) -> list[EventDraft]:
        return [fact for fact in self.facts if fact.type is what]


def cycle_row(**changes: Any) -> CycleRow:
    """A running cycle of one pipeline."""
    cycle_id = changes.get("cycle_id") or uuid4()
    given: dict[str, Any] = {
        "cycle_id": cycle_id,
        "kind": "decision",
        "workflow_version": 1,
        "requester": "user",
        "idempotency_key": "k",
        "body_sha256": b"",
        "request": b'{"pipelines": [{"name": "alpha", "account": "main"}]}',
        "as_of": DAY,
        "started_on": DAY,
        "accepted_at": datetime(2012, 6, 29, tzinfo=UTC),
        "state": begin(cycle_id, ("alpha",), "alpha"),
        "purse": CallBudget(1_000, Decimal(1)),
        "timeout_s": 600.0,
    }
    return CycleRow(**{**given, **changes})


def operation_row(**changes: Any) -> OperationRow:
    """An operation of that pipeline which nobody has claimed."""
    given: dict[str, Any] = {
        "op_id": uuid4(),
        "cycle_id": CYCLE_ID,
        "started_on": DAY,
        "pipeline": "alpha",
        "state": "planning",
        "step": "plan",
        "service": "research",
        "attempt": 1,
        "status": "pending",
        "claimed": False,
        "must_answer": False,
        "epoch": 0,
        "lease_live": False,
        "tokens": 0,
        "cost_usd": Decimal(0),
        "reserved": Reserve(),
    }
    return OperationRow(**{**given, **changes})
