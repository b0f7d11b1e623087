"""One group of inputs, folded into rows: what changes, what is answered, what is sent after.

No I/O: `store.py` loads the rows before and writes them after, in one transaction.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, assert_never
from uuid import UUID

import orjson
from pydantic import ValidationError

from contracts.audit import EventType
from contracts.cycle import CycleStatus, RequestAnswer
from contracts.message import Message
from contracts.operation import (
    ClaimAnswer,
    RecordAnswer,
    Result,
    ResultAnswer,
)
from contracts.types import Failure
from libs.bus.codec import describe
from libs.runtime import ids
from libs.runtime.settings import Settings
from services.orchestrator.changes import (
    Loaded,
    NewEntry,
    NewEvent,
    NewOperation,
    Stop,
    new_event,
    step_event,
)
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
from services.orchestrator.leases import NO_USAGE, Leases
from services.orchestrator.logic import (
    SHARED,
    CancelAsked,
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
        self.starts: list[NewOperation] = []
        self.ends: dict[UUID, tuple[OperationRow | None, Ended]] = {}
        self.entries: list[NewEntry] = []
        self.events: list[NewEvent] = []
        self.stops: list[Stop] = []
        self._leases = Leases(settings, loaded, self.entries, self.events)

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
                return self._record(given)
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
        if given.request.approval_required:
            text = "approval_required: this release has no approvals yet; leave it out or set false"
            return rejection("not_supported", text, "approval_required")
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
        if not row.ended and given.claim.epoch is None and self._leases.is_poison(row):
            self._leases.forfeit(row)
            self._fail(row, Failure(code="poison", message=self._leases.poison(row)))
        return self._leases.claim(row, given.claim)

    def _record(self, given: Recorded) -> RecordAnswer:
        row = self._loaded.operations.get(given.record.op_id)
        if row is None:
            return RecordAnswer(outcome="unknown")
        if row.service != given.service:
            self._forged(row, given.service, "record")
            return RecordAnswer(outcome="forbidden")
        return self._leases.record(row, given.record)

    def _result(self, service: str, result: Result) -> ResultAnswer:
        row = self._loaded.operations.get(result.op_id)
        if row is None:
            return ResultAnswer(outcome="unknown")
        if row.service != service:
            self._forged(row, service, "result")
            return ResultAnswer(outcome="forbidden")
        if row.claimed and (row.epoch == 0 or result.epoch != row.epoch):
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
        self._leases.settle(row, NO_USAGE)
        cycle = self._loaded.cycles[row.cycle_id]
        self._apply(cycle, StepDone(row.pipeline, row.step, row.attempt, contract))

    # --- ends -------------------------------------------------------------------------------

    def _overdue(self, given: OperationOverdue) -> None:
        row = self._loaded.operations.get(given.op_id)
        if row is None or row.ended:
            return
        self._leases.forfeit(row)
        self._fail(row, given.failure)
        reason = given.failure.message[:400]
        self.stops.append(Stop(row.op_id, row.cycle_id, row.service, reason))

    def _fail(self, row: OperationRow, failure: Failure, *, wrong_answer: bool = False) -> None:
        row.status = "failed"
        self._leases.settle(row, NO_USAGE)
        self.ends[row.op_id] = (row, Ended("failed", failure=failure.model_dump_json().encode()))
        cycle = self._loaded.cycles[row.cycle_id]
        failed = StepFailed(row.pipeline, row.step, row.attempt, failure, wrong_answer)
        self._apply(cycle, failed)

    def _forged(self, row: OperationRow, service: str, what: str) -> None:
        cycle = self._loaded.cycles[row.cycle_id]
        node = ids.event_id(row.op_id, hash_of(service, what))
        data = {"service": service, "what": what, "owner": row.service}
        self.events.append(step_event(cycle, row, node, 0, EventType.MESSAGE_REFUSED, data))

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
        self.starts += [NewOperation(row, start) for start in after.starts]
        for op_id in after.stops:
            self._stop(row, op_id)
        self.events += [new_event(row, fact) for fact in after.facts]

    def _stop(self, row: CycleRow, op_id: UUID) -> None:
        known = self._loaded.operations.get(op_id)
        if known is not None:
            known.status = "cancelled"
            self._leases.forfeit(known)
        self.ends[op_id] = (known, Ended("cancelled"))
        self.starts = [new for new in self.starts if new.start.op_id != op_id]
        service = known.service if known else ""
        self.stops.append(Stop(op_id, row.cycle_id, service, row.state.reason or "cancelled"))

    def changed_cycles(self) -> Sequence[CycleRow]:
        """All cycles to write, with those whose purse alone has changed."""
        return [row for row in self._loaded.cycles.values() if row.changed]

    # --- after the commit ---------------------------------------------------------------------

    @property
    def cycles(self) -> Sequence[CycleRow]:
        """All cycles that were read or made."""
        return list(self._loaded.cycles.values())

    @property
    def live_operations(self) -> Sequence[OperationRow]:
        """The operations that run on, old and new."""
        old = [row for row in self._loaded.operations.values() if not row.ended]
        return [*old, *(new.row() for new in self.starts)]


def hash_of(*parts: str) -> int:
    """A small stable number for a refused message's kind, so that a flood makes one event."""
    return sum(map(ord, "/".join(parts))) + 1_000_000


def rejection(code: str, message: str, name: str | None = None) -> RequestAnswer:
    """A request's refusal."""
    return RequestAnswer(outcome="rejected", code=code, message=message, field=name)


def replace_answer(answer: RequestAnswer, row: CycleRow) -> RequestAnswer:
    """The answer with the cycle's present status in it."""
    return answer.model_copy(update={"cycle_id": row.cycle_id, "status": row.state.status})


def _accepted(row: CycleRow) -> RequestAnswer:
    return RequestAnswer(outcome="accepted", cycle_id=row.cycle_id, status=row.state.status)


def _repeated(row: CycleRow, given: CycleAsked) -> RequestAnswer:
    if row.body_sha256 == given.body_sha256:
        return _accepted(row)
    key = given.request.idempotency_key
    text = f"idempotency_key {key!r} was used for another request; take a new key or the same body"
    return replace_answer(rejection("key_reused", text, "idempotency_key"), row)


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
