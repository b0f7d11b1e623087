"""One group of inputs, folded into rows: what changes, what is answered, what is sent after.

No I/O: `store.py` loads the rows before and writes them after, in one transaction.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, assert_never
from uuid import UUID

import orjson
from pydantic import ValidationError

from contracts.audit import EventType
from contracts.cycle import STRATEGY, CycleStatus, RequestAnswer
from contracts.message import Message
from contracts.operation import (
    ClaimAnswer,
    RecordAnswer,
    Result,
    ResultAnswer,
)
from contracts.types import Failure
from libs.runtime import ids
from libs.runtime.settings import Settings
from libs.runtime.wording import describe
from services.orchestrator import approvals
from services.orchestrator.answers import (
    accepted,
    rejection,
    repeated,
    too_many,
    unknown_kind,
    with_status,
)
from services.orchestrator.budgets import refused_cycle
from services.orchestrator.changes import (
    Loaded,
    NewEntry,
    NewEvent,
    NewOperation,
    Stop,
    new_event,
    refused_event,
    step_event,
)
from services.orchestrator.inputs import (
    CancelAskedFor,
    Claimed,
    CycleAsked,
    CycleOverdue,
    Given,
    OperationOverdue,
    ProposalAnswered,
    Recorded,
    RequestRefused,
    Resulted,
)
from services.orchestrator.leases import NO_USAGE, Leases
from services.orchestrator.logic import (
    SHARED,
    CancelAsked,
    Input,
    Started,
    StepDone,
    StepFailed,
    TimeIsUp,
    advance,
    begin,
    is_waiting,
    may_cancel,
)
from services.orchestrator.rows import CycleRow, Ended, OperationRow, Purse
from services.orchestrator.workflow import Step, Workflow


class WorkflowUnknown(Exception):
    """The cycle follows a workflow of another version of this program."""

    def __init__(self, row: CycleRow) -> None:
        super().__init__(
            f"cycle {row.cycle_id} follows version {row.workflow_version} of {row.kind}, which "
            "this orchestrator does not know: one that does has to run"
        )


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
        self.used = self._leases.used

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
            case CycleAsked() | CancelAskedFor() | ProposalAnswered():
                return self._request(given)
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

    def _request(self, given: CycleAsked | CancelAskedFor | ProposalAnswered) -> RequestAnswer:
        match given:
            case CycleAsked():
                return self._cycle_asked(given)
            case CancelAskedFor():
                return self._cancel(given)
            case ProposalAnswered():
                return self._answered(given)

    def _cycle_asked(self, given: CycleAsked) -> RequestAnswer:
        known = self._loaded.cycles.get(given.cycle_id)
        if known is not None:
            return repeated(known, given)
        if given.request.kind not in self._newest:
            return unknown_kind(given.request.kind, sorted(self._newest))
        if given.hindrance is not None:
            return given.hindrance
        workflow = self._workflows[given.request.kind, self._newest[given.request.kind]]
        passes = approvals.asked_for(given.request, workflow, self._settings)
        if passes is None:
            text = f"approval_required: a cycle of kind {given.request.kind!r} has no such state"
            return rejection("not_supported", text, "approval_required")
        if later := self._not_now(given):
            return later
        row = self._new_cycle(given, passes)
        self._loaded.running += 1
        self._loaded.strategies_running += given.request.kind == STRATEGY
        self._loaded.cycles[row.cycle_id] = row
        self._apply(row, Started(self._memories(given)))
        return accepted(row)

    def _not_now(self, given: CycleAsked) -> RequestAnswer | None:
        full = too_many(given.request.kind, self._loaded, self._settings.cycles_running_max)
        return full or refused_cycle(given.needs, self._loaded.today, self._now)

    def _new_cycle(self, given: CycleAsked, passes: approvals.Passes) -> CycleRow:
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
            state=begin(given.cycle_id, names, request.main_pipeline, passes, request.attempts),
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
            return accepted(row)
        if not may_cancel(self._workflow(row), row.state):
            text = "it is executing or has ended, and orders are not called back by a cancel"
            return with_status(rejection("too_late", text), row)
        self._apply(row, CancelAsked(given.reason))
        return accepted(row)

    def _answered(self, given: ProposalAnswered) -> RequestAnswer:
        row = self._loaded.cycles.get(given.cycle_id)
        if row is None:
            return rejection("not_found", f"there is no cycle {given.cycle_id}", "cycle_id")
        waiting = {op_id for op_id, each in self._loaded.operations.items() if not each.ended}
        known = self._loaded.proposals.get(given.cycle_id, ())
        try:
            asked, approval = approvals.judge(
                given, known, waiting, self._settings.approval_valid_s
            )
        except approvals.Refused as refused:
            return with_status(refused.answer, row)
        if asked.approval is None:
            asked.approval = approval
            contract = approval.model_dump(mode="json")
            result = Result(op_id=asked.op_id, contract=contract)
            self._complete(self._loaded.operations[asked.op_id], result)
        return accepted(row)

    def _cycle_overdue(self, given: CycleOverdue) -> None:
        row = self._loaded.cycles.get(given.cycle_id)
        if row is not None and row.is_late:
            self._apply(row, TimeIsUp(row.timeout_s))

    def _refused(self, given: RequestRefused) -> None:
        data = {**given.failure.model_dump(), "requester": given.requester}
        self.events.append(refused_event(given.cycle_id, self._now.date(), data))

    # --- what services ask --------------------------------------------------------------------

    def _owned(
        self, op_id: UUID, service: str, what: str
    ) -> OperationRow | Literal["unknown", "forbidden"]:
        """The operation that a service speaks of; why it may not, where that is so."""
        row = self._loaded.operations.get(op_id)
        if row is None:
            return "unknown"
        if row.service != service:
            cycle = self._loaded.cycles[row.cycle_id]
            node = ids.event_id(row.op_id, hash_of(service, what))
            data = {"service": service, "what": what, "owner": row.service}
            kind = EventType.MESSAGE_REFUSED
            self.events.append(step_event(cycle, row, node, 0, kind, data))
            return "forbidden"
        return row

    def _claim(self, given: Claimed) -> ClaimAnswer:
        row = self._owned(given.claim.op_id, given.service, "claim")
        if isinstance(row, str):
            return ClaimAnswer(outcome=row)
        if not row.ended and given.claim.epoch is None and self._leases.is_poison(row):
            self._leases.forfeit(row)
            self._fail(row, Failure(code="poison", message=self._leases.poison(row)))
        return self._leases.claim(row, given.claim)

    def _record(self, given: Recorded) -> RecordAnswer:
        row = self._owned(given.record.op_id, given.service, "record")
        if isinstance(row, str):
            return RecordAnswer(outcome=row)
        return self._leases.record(row, given.record)

    def _result(self, service: str, result: Result) -> ResultAnswer:
        row = self._owned(result.op_id, service, "result")
        if isinstance(row, str):
            return ResultAnswer(outcome=row)
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
            # A later service may say more; parts that refuse unknown fields do so in requests only.
            contract = reply.model_validate(result.contract, extra="ignore")
        except ValidationError as error:
            return Failure(code="contract_invalid", message=describe(error, reply))
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
        if self._step(row).asks:
            self._fail(row, approvals.nobody_answered(self._settings.approval_timeout_s))
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

    # --- the state machine --------------------------------------------------------------------

    def _workflow(self, row: CycleRow) -> Workflow:
        try:
            return self._workflows[row.kind, row.workflow_version]
        except KeyError:
            raise WorkflowUnknown(row) from None

    def _step(self, row: OperationRow) -> Step:
        workflow = self._workflow(self._loaded.cycles[row.cycle_id])
        states = (*workflow.of(shared=row.pipeline == SHARED), *filter(None, (workflow.closing,)))
        return next(state for state in states if state.name == row.state).step(row.step)

    def _apply(self, row: CycleRow, given: Input) -> None:
        after = advance(self._workflow(row), row.state, given)
        if not after.changed:
            return
        row.state, row.changed = after.cycle, True
        row.waiting = is_waiting(self._workflow(row), after.cycle)
        self.starts += [NewOperation(row, start) for start in after.starts]
        for op_id in after.stops:
            self._stop(row, op_id)
        limit_s = self._settings.approval_timeout_s
        self.events += [new_event(row, approvals.timed(fact, limit_s)) for fact in after.facts]

    def _stop(self, row: CycleRow, op_id: UUID) -> None:
        known = self._loaded.operations.get(op_id)
        if known is not None:
            known.status = "cancelled"
            self._leases.forfeit(known)
        self.ends[op_id] = (known, Ended("cancelled"))
        self.starts = [new for new in self.starts if new.start.op_id != op_id]
        service = known.service if known else ""
        self.stops.append(Stop(op_id, row.cycle_id, service, row.state.reason or "cancelled"))

    def cycle(self, cycle_id: UUID) -> CycleRow:
        """A cycle that was read or made."""
        return self._loaded.cycles[cycle_id]

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
