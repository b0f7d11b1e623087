"""One group of inputs, folded into rows: what changes, what is answered, what is sent after.

No I/O: `store.py` loads the rows before and writes them after, in one transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, assert_never
from uuid import UUID

import orjson
from pydantic import ValidationError

from contracts.audit import EventType
from contracts.cycle import CycleStatus, RequestAnswer
from contracts.message import Message
from contracts.operation import (
    CallKind,
    ClaimAnswer,
    JournalEntry,
    Record,
    RecordAnswer,
    Reserve,
    Result,
    ResultAnswer,
)
from contracts.types import Failure, Usage
from libs.runtime import ids
from libs.runtime.settings import Settings
from services.orchestrator.inputs import (
    CancelAskedFor,
    Claimed,
    CycleAsked,
    CycleOverdue,
    Given,
    OperationOverdue,
    Recorded,
    RequestRefused,
    Resulted,
)
from services.orchestrator.logic import (
    SEQ_CALLS,
    SEQ_STARTED,
    SHARED,
    CancelAsked,
    Fact,
    Input,
    Start,
    Started,
    StepDone,
    StepFailed,
    TimeIsUp,
    advance,
    begin,
    may_cancel,
)
from services.orchestrator.rows import CycleRow, Ended, OperationRow, Purse
from services.orchestrator.workflow import Step, Workflow

ERROR_CHARS_MAX = 2_000
CALL_EVENTS = {
    CallKind.MODEL: EventType.LLM_CALLED,
    CallKind.TOOL: EventType.TOOL_CALLED,
    CallKind.READ: EventType.DATA_READ,
}
NO_USAGE = Usage()


@dataclass(frozen=True)
class NewOperation:
    """An operation to insert, in the cycle that it belongs to."""

    cycle: CycleRow
    start: Start


@dataclass(frozen=True)
class NewEntry:
    """A journal entry to insert."""

    operation: OperationRow
    entry: JournalEntry


@dataclass(frozen=True)
class NewEvent:
    """A row of state_events to insert. `account` gives the session id."""

    started_on: date
    node: UUID
    seq: int
    cycle_id: UUID
    type: EventType
    pipeline: str | None
    state: str | None
    session_id: str | None
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Stop:
    """An operation that no longer counts: its service is told."""

    op_id: UUID
    cycle_id: UUID
    service: str
    reason: str


@dataclass
class Loaded:
    """What a group needs to know, locked and read at its begin."""

    cycles: dict[UUID, CycleRow] = field(default_factory=dict)
    operations: dict[UUID, OperationRow] = field(default_factory=dict)
    journals: dict[UUID, list[JournalEntry]] = field(default_factory=dict)
    recorded: set[tuple[UUID, int]] = field(default_factory=set)
    memories: dict[tuple[str, date], UUID] = field(default_factory=dict)
    running: int = 0
    day: Purse | None = None


class Group:
    """The fold. Give it inputs by `take`, then read what has gathered."""

    def __init__(
        self, workflows: Mapping[tuple[str, int], Workflow], settings: Settings, loaded: Loaded
    ) -> None:
        self._workflows = workflows
        self._newest = dict(sorted(workflows))
        self._settings = settings
        self._loaded = loaded
        self._now = datetime.now(UTC)
        self.cycles: dict[UUID, CycleRow] = {}
        self.starts: list[NewOperation] = []
        self.ends: dict[UUID, tuple[OperationRow | None, Ended]] = {}
        self.entries: list[NewEntry] = []
        self.events: list[NewEvent] = []
        self.stops: list[Stop] = []

    @property
    def day(self) -> Purse | None:
        """The day's budget, where an input touches it."""
        return self._loaded.day

    @property
    def touched(self) -> Sequence[OperationRow]:
        """Operations that go on: claimed, recorded or renewed."""
        rows = self._loaded.operations.values()
        return [row for row in rows if row.touched and not row.ended]

    def take(self, given: Given) -> Message | None:
        """Fold one input; returns its answer, which counts once the group has committed."""
        match given:
            case CycleAsked():
                return self._cycle_asked(given)
            case CancelAskedFor():
                return self._cancel(given)
            case Claimed():
                return self._claim(given)
            case Recorded():
                return self._record(given.service, given.record)
            case Resulted():
                return self._result(given.service, given.result)
            case OperationOverdue():
                self._overdue(given)
            case CycleOverdue():
                self._cycle_overdue(given)
            case RequestRefused():
                self._refused(given)
            case _:
                assert_never(given)
        return None

    # --- requests ---------------------------------------------------------------------------

    def _cycle_asked(self, given: CycleAsked) -> RequestAnswer:
        known = self._loaded.cycles.get(given.cycle_id)
        if known is not None:
            return _repeated(known, given)
        if given.request.kind not in self._newest:
            known_kinds = ", ".join(sorted(self._newest))
            text = f"kind: there is no cycle of kind {given.request.kind!r}; known: {known_kinds}"
            return rejection("invalid", text, "kind")
        if self._loaded.running >= self._settings.cycles_running_max:
            text = f"{self._loaded.running} cycles are running; try again when some have ended"
            return rejection("busy", text)
        row = self._new_cycle(given)
        self._loaded.running += 1
        self._loaded.cycles[row.cycle_id] = row
        self._apply(row, Started(self._memories(given)))
        return _accepted(row)

    def _new_cycle(self, given: CycleAsked) -> CycleRow:
        request = given.request
        names = tuple(pipeline.name for pipeline in request.pipelines)
        budgets = request.budgets
        return CycleRow(
            cycle_id=given.cycle_id,
            kind=request.kind,
            workflow_version=self._newest[request.kind],
            requester=given.requester,
            idempotency_key=request.idempotency_key,
            body_sha256=given.body_sha256,
            request=request.model_copy(update={"as_of": given.as_of}).model_dump_json().encode(),
            as_of=given.as_of,
            started_on=self._now.date(),
            accepted_at=self._now,
            state=begin(given.cycle_id, names, request.main_pipeline),
            purse=Purse(budgets.tokens, budgets.cost_usd),
            timeout_s=request.timeout_s,
            new=True,
        )

    def _memories(self, given: CycleAsked) -> dict[str, UUID]:
        found = {
            pipeline.name: self._loaded.memories.get((pipeline.account, given.as_of))
            for pipeline in given.request.pipelines
        }
        return {name: op_id for name, op_id in found.items() if op_id is not None}

    def _cancel(self, given: CancelAskedFor) -> RequestAnswer:
        row = self._loaded.cycles.get(given.cycle_id)
        if row is None:
            return rejection("not_found", f"there is no cycle {given.cycle_id}", "cycle_id")
        if row.state.status is CycleStatus.CANCELLED:
            return _accepted(row)
        if not may_cancel(self._workflow(row), row.state):
            text = "it is executing or has ended, and orders are not called back by a cancel"
            return replace_answer(rejection("too_late", text), row)
        self._apply(row, CancelAsked(given.reason))
        return _accepted(row)

    def _cycle_overdue(self, given: CycleOverdue) -> None:
        row = self._loaded.cycles.get(given.cycle_id)
        if row is not None:
            self._apply(row, TimeIsUp(row.timeout_s))

    def _refused(self, given: RequestRefused) -> None:
        self.events.append(
            NewEvent(
                started_on=self._now.date(),
                node=given.cycle_id,
                seq=0,
                cycle_id=given.cycle_id,
                type=EventType.REQUEST_REJECTED,
                pipeline=None,
                state=None,
                session_id=None,
                data={**given.failure.model_dump(), "requester": given.requester},
            )
        )

    # --- what services ask --------------------------------------------------------------------

    def _claim(self, given: Claimed) -> ClaimAnswer:
        row = self._loaded.operations.get(given.claim.op_id)
        if row is None:
            return ClaimAnswer(outcome="unknown")
        if row.service != given.service:
            self._forged(row, given.service, "claim")
            return ClaimAnswer(outcome="forbidden")
        if row.ended:
            return ClaimAnswer(outcome="done")
        if row.status == "running" and row.lease_live:
            return ClaimAnswer(outcome="busy")
        if row.epoch >= self._settings.epochs_max:
            self._fail(row, Failure(code="poison", message=self._poison(row)))
            return ClaimAnswer(outcome="done")
        return self._grant(row)

    def _grant(self, row: OperationRow) -> ClaimAnswer:
        if row.epoch == 0:
            cycle = self._loaded.cycles[row.cycle_id]
            self._event(cycle, row.op_id, SEQ_STARTED, EventType.OPERATION_STARTED, row)
        # Whoever had it may have paid for a call that was not recorded: that money stays spent.
        self._settle(row, Usage(output_tokens=row.reserved.tokens, cost_usd=row.reserved.cost_usd))
        row.epoch += 1
        row.status, row.lease_live, row.touched = "running", True, True
        return ClaimAnswer(
            outcome="granted",
            epoch=row.epoch,
            lease_s=self._settings.lease_s,
            journal=tuple(self._loaded.journals.get(row.op_id, ())),
        )

    def _poison(self, row: OperationRow) -> str:
        return (
            f"{row.step} was begun {row.epoch} times and never ended: it stops its process or "
            f"outlives its lease of {self._settings.lease_s:g} s; see the log of {row.service}"
        )

    def _record(self, service: str, record: Record) -> RecordAnswer:
        row = self._loaded.operations.get(record.op_id)
        if row is None:
            return RecordAnswer(outcome="unknown")
        if row.service != service:
            self._forged(row, service, "record")
            return RecordAnswer(outcome="forbidden")
        if row.ended:
            return RecordAnswer(outcome="cancelled", message=f"the operation is {row.status}")
        if row.epoch != record.epoch:
            return RecordAnswer(outcome="fenced", message=f"epoch {row.epoch} has the work")
        fresh = [e for e in record.entries if (row.op_id, e.index) not in self._loaded.recorded]
        self._keep(row, fresh)
        row.touched = True
        if record.progress is not None:
            row.progress = record.progress.model_dump_json().encode()
        return self._reserve(row, record.reserve)

    def _keep(self, row: OperationRow, entries: Sequence[JournalEntry]) -> None:
        cycle = self._loaded.cycles[row.cycle_id]
        if any(entry.kind is CallKind.MODEL for entry in entries):
            self._settle(row, sum((entry.usage for entry in entries), start=NO_USAGE))
        for entry in entries:
            self._loaded.recorded.add((row.op_id, entry.index))
            self.entries.append(NewEntry(row, entry))
            data = {"name": entry.name, "index": entry.index, "duration_ms": entry.duration_ms}
            if entry.kind is CallKind.MODEL:
                data["usage"] = entry.usage.model_dump(mode="json")
            seq = SEQ_CALLS + entry.index
            self._event(cycle, row.op_id, seq, CALL_EVENTS[entry.kind], row, data)

    def _settle(self, row: OperationRow, usage: Usage) -> None:
        """Turn what was held back for the calls in flight into what they used."""
        held, row.reserved = row.reserved, Reserve()
        if held == Reserve() and usage == NO_USAGE:
            return
        cycle = self._loaded.cycles[row.cycle_id]
        cycle.changed = True
        for purse in (cycle.purse, self._loaded.day):
            if purse is not None:
                purse.release(held)
                purse.spend(usage.tokens, usage.cost_usd)
        row.spend(usage)

    def _reserve(self, row: OperationRow, reserve: Reserve | None) -> RecordAnswer:
        lease_s = self._settings.lease_s
        if reserve is None or reserve == Reserve():
            return RecordAnswer(outcome="ok", lease_s=lease_s)
        cycle = self._loaded.cycles[row.cycle_id]
        for name, purse in (("cycle", cycle.purse), ("day", self._loaded.day)):
            if purse is not None and not purse.affords(reserve):
                return RecordAnswer(outcome="budget_exhausted", message=_exhausted(name, purse))
        for purse in (cycle.purse, self._loaded.day):
            if purse is not None:
                purse.hold(reserve)
        cycle.changed = True
        row.reserved = Reserve(
            tokens=row.reserved.tokens + reserve.tokens,
            cost_usd=row.reserved.cost_usd + reserve.cost_usd,
        )
        return RecordAnswer(outcome="ok", lease_s=lease_s)

    def _result(self, service: str, result: Result) -> ResultAnswer:
        row = self._loaded.operations.get(result.op_id)
        if row is None:
            return ResultAnswer(outcome="unknown")
        if row.service != service:
            self._forged(row, service, "result")
            return ResultAnswer(outcome="forbidden")
        if row.claimed and result.epoch != row.epoch:
            return ResultAnswer(outcome="fenced")
        if not row.ended:
            self._end(row, result)
        return ResultAnswer(outcome="ok")

    def _end(self, row: OperationRow, result: Result) -> None:
        invalid = None if result.failure else self._invalid(row, result)
        if result.failure is not None:
            self._fail(row, result.failure, wrong_answer=result.wrong_answer)
        elif invalid is not None:
            self._fail(row, invalid, wrong_answer=True)
        else:
            self._complete(row, result)

    def _invalid(self, row: OperationRow, result: Result) -> Failure | None:
        """Why the contract is not the one that the operation owes; None where it is."""
        reply = self._step(row).serves.reply
        if reply is None:
            return None
        try:
            contract = reply.model_validate(result.contract)
        except ValidationError as error:
            return Failure(code="contract_invalid", message=describe(error))
        owed = (row.cycle_id, row.op_id)
        if (getattr(contract, "cycle_id", None), getattr(contract, "op_id", None)) != owed:
            return Failure(code="contract_invalid", message="the contract has other ids")
        return None

    def _complete(self, row: OperationRow, result: Result) -> None:
        contract = result.contract if isinstance(result.contract, dict) else {}
        row.status = "completed"
        self.ends[row.op_id] = (row, Ended("completed", result=orjson.dumps(contract)))
        self._settle(row, NO_USAGE)
        cycle = self._loaded.cycles[row.cycle_id]
        self._apply(cycle, StepDone(row.pipeline, row.step, row.attempt, contract))

    # --- ends -------------------------------------------------------------------------------

    def _overdue(self, given: OperationOverdue) -> None:
        row = self._loaded.operations.get(given.op_id)
        if row is None or row.ended:
            return
        self._fail(row, given.failure)
        reason = given.failure.message[:400]
        self.stops.append(Stop(row.op_id, row.cycle_id, row.service, reason))

    def _fail(self, row: OperationRow, failure: Failure, *, wrong_answer: bool = False) -> None:
        row.status = "failed"
        self._settle(row, NO_USAGE)
        self.ends[row.op_id] = (row, Ended("failed", failure=failure.model_dump_json().encode()))
        cycle = self._loaded.cycles[row.cycle_id]
        failed = StepFailed(row.pipeline, row.step, row.attempt, failure, wrong_answer)
        self._apply(cycle, failed)

    def _forged(self, row: OperationRow, service: str, what: str) -> None:
        cycle = self._loaded.cycles[row.cycle_id]
        node = ids.event_id(row.op_id, hash_of(service, what))
        data = {"service": service, "what": what, "owner": row.service}
        self._event(cycle, node, 0, EventType.MESSAGE_REFUSED, row, data)

    # --- the state machine --------------------------------------------------------------------

    def _workflow(self, row: CycleRow) -> Workflow:
        return self._workflows[row.kind, row.workflow_version]

    def _step(self, row: OperationRow) -> Step:
        workflow = self._workflow(self._loaded.cycles[row.cycle_id])
        states = (*workflow.of(shared=row.pipeline == SHARED), *filter(None, (workflow.closing,)))
        return next(state for state in states if state.name == row.state).step(row.step)

    def _apply(self, row: CycleRow, given: Input) -> None:
        after = advance(self._workflow(row), row.state, given)
        if not after.changed:
            return
        row.state, row.changed = after.cycle, True
        self.cycles[row.cycle_id] = row
        self.starts += [NewOperation(row, start) for start in after.starts]
        for op_id in after.stops:
            self._stop(row, op_id)
        self.events += [self._fact(row, fact) for fact in after.facts]

    def _stop(self, row: CycleRow, op_id: UUID) -> None:
        known = self._loaded.operations.get(op_id)
        if known is not None:
            known.status = "cancelled"
            self._settle(known, Usage(cost_usd=known.reserved.cost_usd))
        self.ends[op_id] = (known, Ended("cancelled"))
        self.starts = [new for new in self.starts if new.start.op_id != op_id]
        service = known.service if known else ""
        self.stops.append(Stop(op_id, row.cycle_id, service, row.state.reason or "cancelled"))

    def _fact(self, row: CycleRow, fact: Fact) -> NewEvent:
        return NewEvent(
            started_on=row.started_on,
            node=fact.node,
            seq=fact.seq,
            cycle_id=row.cycle_id,
            type=fact.type,
            pipeline=fact.lane,
            state=fact.state,
            session_id=session_id(row, fact.lane),
            data=fact.data,
        )

    def _event(
        self,
        cycle: CycleRow,
        node: UUID,
        seq: int,
        what: EventType,
        row: OperationRow,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        fact = Fact(node, seq, what, row.pipeline, row.state, {"step": row.step, **(data or {})})
        self.events.append(self._fact(cycle, fact))

    def changed_cycles(self) -> Sequence[CycleRow]:
        """All cycles to write, with those whose purse alone has changed."""
        spent = {i: row for i, row in self._loaded.cycles.items() if row.changed}
        return list({**spent, **self.cycles}.values())


def session_id(row: CycleRow, lane: str | None) -> str:
    """One exchange session of one account: what an auditor asks for."""
    return f"{row.pipelines[lane or row.state.main]['account']}/{row.as_of}"


def hash_of(*parts: str) -> int:
    """A small stable number for a refused message's kind, so that a flood makes one event."""
    return sum(map(ord, "/".join(parts))) + 1_000_000


def rejection(code: str, message: str, name: str | None = None) -> RequestAnswer:
    """A request's refusal."""
    return RequestAnswer(outcome="rejected", code=code, message=message, field=name)


def replace_answer(answer: RequestAnswer, row: CycleRow) -> RequestAnswer:
    """The answer with the cycle's present status in it."""
    return answer.model_copy(update={"cycle_id": row.cycle_id, "status": row.state.status})


def describe(error: ValidationError) -> str:
    """What is wrong, field by field, without quoting the input."""
    parts = [
        f"{'.'.join(str(part) for part in each['loc']) or 'body'}: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return "; ".join(parts)[:ERROR_CHARS_MAX]


def _accepted(row: CycleRow) -> RequestAnswer:
    return RequestAnswer(outcome="accepted", cycle_id=row.cycle_id, status=row.state.status)


def _repeated(row: CycleRow, given: CycleAsked) -> RequestAnswer:
    if row.body_sha256 == given.body_sha256:
        return _accepted(row)
    key = given.request.idempotency_key
    text = f"idempotency_key {key!r} was used for another request; take a new key or the same body"
    return replace_answer(rejection("key_reused", text, "idempotency_key"), row)


def _exhausted(name: str, purse: Purse) -> str:
    return (
        f"the {name}'s budget is used up: {purse.tokens_spent} of {purse.tokens_max} tokens, "
        f"{purse.cost_usd_spent:.4f} of {purse.cost_usd_max:.2f} USD, and the next call does not "
        "fit into the rest"
    )


def command_json(row: CycleRow, start: Start, contracts: Mapping[str, bytes]) -> bytes:
    """The command as it is stored and sent: the contracts are put in as they were written."""
    outcome = start.outcome
    given: dict[str, Any] = {name: orjson.Fragment(body) for name, body in contracts.items()}
    if outcome is not None:
        given |= {"outcome": outcome.status, "reason": outcome.reason}
    fields = start.step.serves.message.model_fields
    if "request" in fields:
        given["request"] = orjson.Fragment(row.request)
    return orjson.dumps(
        {
            "version": 1,
            "cycle_id": row.cycle_id,
            "op_id": start.op_id,
            "as_of": row.as_of,
            "now": row.accepted_at,
            "pipeline": row.pipelines[start.lane],
            "state": start.state,
            "step": start.step.name,
            "attempt": start.attempt,
            "workflow_version": row.workflow_version,
            "seed": row.cycle_id.int & 0xFFFF_FFFF,
            "deadline": None if start.step.must_answer else row.deadline_at,
            "errors": start.errors,
            **given,
        },
        default=str,
    )
