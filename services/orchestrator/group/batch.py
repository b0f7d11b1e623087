"""One group of inputs, folded into rows: what changes, what is answered, what is sent after.

No I/O: `store.py` loads the rows before and writes them after, in one transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal, assert_never
from uuid import UUID

import orjson
from pydantic import ValidationError

from contracts.audit import EventType
from contracts.cycle import STRATEGY, CycleStatus, RequestAnswer
from contracts.message import Message
from contracts.operation import ClaimAnswer, RecordAnswer, Result, ResultAnswer
from contracts.subjects.subject import STUDY
from contracts.types import Failure
from libs.runtime import ids
from libs.runtime.settings import Settings
from libs.runtime.wording import describe
from services.orchestrator.group import answers, approvals, inputs
from services.orchestrator.group.budgets import refused_cycle
from services.orchestrator.group.changes import (
    Loaded,
    NewEntry,
    NewEvent,
    NewOperation,
    Proposed,
    Stop,
    new_event,
    refused_event,
    step_event,
)
from services.orchestrator.group.leases import NO_USAGE, FreeWorkers, Leases
from services.orchestrator.group.rows import CallBudget, CycleRow, EndedOperation, OperationRow
from services.orchestrator.machine.logic import (
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
from services.orchestrator.machine.stages import staged
from services.orchestrator.machine.workflow import Step, Workflow


class WorkflowUnknown(Exception):
    """The cycle follows a workflow of another version of this program."""

    def __init__(self, row: CycleRow) -> None:
        super().__init__(
            f"cycle {row.cycle_id} follows version {row.workflow_version} of {row.kind}, which "
            "this orchestrator does not know: one that does has to run"
        )


class InputBatch:
    """The fold. Give it inputs by `take`, then read what has gathered."""

    def __init__(
        self,
        workflows: Mapping[tuple[str, int], Workflow],
        settings: Settings,
        loaded: Loaded,
        now: datetime,
    ) -> None:
        self._workflows = workflows
        self._newest = dict(sorted(workflows))
        self._settings = settings
        self._loaded = loaded
        self._now = now
        self.at = now
        self.starts: list[NewOperation] = []
        self.ends: dict[UUID, tuple[OperationRow | None, EndedOperation]] = {}
        self.entries: list[NewEntry] = []
        self.events: list[NewEvent] = []
        self.stops: list[Stop] = []
        self._leases = Leases(settings, loaded, self.entries, self.events)
        self.used = self._leases.used
        self.answered = self._leases.answered

    @property
    def day(self) -> CallBudget | None:
        """The day's budget, where an input touches it."""
        return self._loaded.day

    @property
    def touched(self) -> Sequence[OperationRow]:
        """Operations that go on: claimed, recorded or renewed."""
        rows = self._loaded.operations.values()
        return [row for row in rows if row.touched and not row.ended]

    def take(self, item: inputs.GroupInput) -> Message | None:
        """Take one input; returns its answer, which counts once the batch has committed."""
        answer: Message | None = None
        match item:
            case inputs.CycleRequested():
                answer = self._cycle_requested(item)
            case inputs.CancelRequested():
                answer = self._cancel(item)
            case inputs.ProposalAnswered():
                answer = self._answered(item)
            case inputs.Claimed():
                answer = self._claim(item)
            case inputs.CallsRecorded():
                answer = self._record(item)
            case inputs.Resulted():
                answer = self._result(item.service, item.result)
            case inputs.OperationOverdue():
                self._overdue(item)
            case inputs.CycleOverdue():
                self._end_late(item.cycle_id)
            case inputs.UnreadableRequest():
                self._refused(item)
            case _:
                assert_never(item)
        return answer

    # --- requests ---------------------------------------------------------------------------

    def _cycle_requested(self, asked: inputs.CycleRequested) -> RequestAnswer:
        running = self._loaded.cycles.get(asked.cycle_id)
        if running is not None:
            return answers.repeated(running, asked)
        if asked.request.kind not in self._newest:
            return answers.unknown_kind(asked.request.kind, sorted(self._newest))
        if asked.rejection is not None:
            return asked.rejection
        workflow = self._workflows[asked.request.kind, self._newest[asked.request.kind]]
        passes = approvals.asked_for(asked.request, workflow, self._settings)
        if passes is None:
            text = f"approval_required: a cycle of kind {asked.request.kind!r} has no approval"
            return answers.rejection("not_supported", text, "approval_required")
        # A study's cells have a class and a budget of their own, and nobody is asked about them.
        of_study = asked.requester == STUDY
        if not of_study and (later := self._not_now(asked)):
            return later
        row = self._new_cycle(asked, {} if of_study else passes)
        self._loaded.running += not of_study
        if asked.per_hour_max is not None:
            self._proposed(asked).lately += 1
            self._proposed(asked).open += 1
        self._loaded.strategies_running += asked.request.kind == STRATEGY
        self._loaded.cycles[row.cycle_id] = row
        self._apply(row, Started(self._memories(asked)))
        return answers.accepted(row)

    def _not_now(self, asked: inputs.CycleRequested) -> RequestAnswer | None:
        full = answers.too_many(asked.request.kind, self._loaded, self._settings.cycles.running_max)
        if asked.per_hour_max is not None:
            full = answers.too_often(self._proposed(asked), asked.per_hour_max) or full
        return full or refused_cycle(asked.needs, self._loaded.today, self._now)

    def _proposed(self, asked: inputs.CycleRequested) -> Proposed:
        return self._loaded.proposed.setdefault(asked.requester, Proposed())

    def _new_cycle(self, asked: inputs.CycleRequested, passes: approvals.Passes) -> CycleRow:
        limit_s = asked.request.timeout_s or self._settings.cycles.limit_s(asked.request.kind)
        limited = asked.request.model_copy(update={"timeout_s": limit_s})
        asked = replace(asked, request=staged(limited, self._settings.providers))
        request = asked.request
        names = tuple(pipeline.name for pipeline in request.pipelines)
        fallbacks = {pipeline.name: {**pipeline.fallback} for pipeline in request.pipelines}
        budgets = request.budgets
        return CycleRow(
            cycle_id=asked.cycle_id,
            kind=request.kind,
            workflow_version=self._newest[request.kind],
            requester=asked.requester,
            idempotency_key=request.idempotency_key,
            body_sha256=asked.body_sha256,
            request=asked.settled(self._settings.model.trader_samples),
            as_of=asked.as_of,
            started_on=self._now.date(),
            accepted_at=self._now,
            data_version=asked.data_version,
            state=begin(
                asked.cycle_id,
                names,
                request.main_pipeline,
                passes,
                request.attempts,
                fallbacks=fallbacks,
            ),
            purse=CallBudget(budgets.tokens, budgets.cost_usd),
            timeout_s=limit_s,
            new=True,
        )

    def _memories(self, asked: inputs.CycleRequested) -> dict[str, UUID]:
        memories = {
            pipeline.name: self._loaded.memories.get((pipeline.account, asked.as_of))
            for pipeline in asked.request.pipelines
        }
        return {name: op_id for name, op_id in memories.items() if op_id is not None}

    def _cancel(self, cancel: inputs.CancelRequested) -> RequestAnswer:
        row = self._loaded.cycles.get(cancel.cycle_id)
        if row is None:
            return answers.rejection(
                "not_found", f"there is no cycle {cancel.cycle_id}", "cycle_id"
            )
        if row.state.status is CycleStatus.CANCELLED:
            return answers.accepted(row)
        if not may_cancel(self._workflow(row), row.state):
            text = "it is executing or has ended, and orders are not called back by a cancel"
            return answers.with_status(answers.rejection("too_late", text), row)
        self._apply(row, CancelAsked(cancel.reason))
        return answers.accepted(row)

    def _answered(self, answered: inputs.ProposalAnswered) -> RequestAnswer:
        row = self._loaded.cycles.get(answered.cycle_id)
        if row is None:
            return answers.rejection(
                "not_found", f"there is no cycle {answered.cycle_id}", "cycle_id"
            )
        waiting = {
            op_id for op_id, operation in self._loaded.operations.items() if not operation.ended
        }
        proposals = self._loaded.proposals.get(answered.cycle_id, ())
        try:
            proposal, approval = approvals.judge(
                answered, proposals, waiting, self._settings.approval.valid_s
            )
        except approvals.AnswerRefused as refused:
            return answers.with_status(refused.answer, row)
        if proposal.approval is None:
            proposal.approval = approval
            contract = approval.model_dump(mode="json")
            result = Result(op_id=proposal.op_id, contract=contract)
            self._complete(self._loaded.operations[proposal.op_id], result)
        return answers.accepted(row)

    def _end_late(self, cycle_id: UUID) -> None:
        """End a cycle whose time is up; a result may come before the sweep has looked."""
        row = self._loaded.cycles.get(cycle_id)
        if row is not None and row.is_late:
            self._apply(row, TimeIsUp(row.timeout_s))

    def _refused(self, refused: inputs.UnreadableRequest) -> None:
        data = {**refused.failure.model_dump(), "requester": refused.requester}
        self.events.append(refused_event(refused.cycle_id, self._now.date(), data))

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

    def _claim(self, claimed: inputs.Claimed) -> ClaimAnswer:
        row = self._owned(claimed.claim.op_id, claimed.service, "claim")
        if isinstance(row, str):
            return ClaimAnswer(outcome=row)
        if not row.ended and claimed.claim.epoch is None and self._leases.is_poison(row):
            self._leases.charge_reservation(row)
            self._fail(row, Failure(code="poison", message=self._leases.poison(row)))
        return self._leases.claim(row, claimed.claim)

    def _record(self, recorded: inputs.CallsRecorded) -> RecordAnswer:
        row = self._owned(recorded.record.op_id, recorded.service, "record")
        if isinstance(row, str):
            return RecordAnswer(outcome=row)
        return self._leases.record(row, recorded.record)

    def _result(self, service: str, result: Result) -> ResultAnswer:
        row = self._owned(result.op_id, service, "result")
        if isinstance(row, str):
            return ResultAnswer(outcome=row)
        if row.claimed and (row.epoch == 0 or result.epoch != row.epoch):
            return ResultAnswer(outcome="fenced")
        if not row.ended:
            # A plain command keeps no journal.
            self._leases.keep(row, result.entries if row.claimed else ())
            self._end_late(row.cycle_id)
        if not row.ended:
            self._end(row, result)
        return ResultAnswer(outcome="ok")

    def _end(self, row: OperationRow, result: Result) -> None:
        invalid = None if result.failure else self._invalid(row, result)
        if result.failure is not None:
            self._fail(row, result.failure, result.corrections)
        elif invalid is not None:
            self._fail(row, invalid, (invalid.message,))
        else:
            self._complete(row, result)

    def _invalid(self, row: OperationRow, result: Result) -> Failure | None:
        """Why the contract is not the one that the operation owes; None where it is."""
        reply = self._step(row).serves.reply
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
        self.ends[row.op_id] = (row, EndedOperation("completed", result=orjson.dumps(contract)))
        self._leases.settle(row, NO_USAGE)
        cycle = self._loaded.cycles[row.cycle_id]
        self._apply(cycle, StepDone(row.pipeline, row.step, row.attempt, contract))

    # --- ends -------------------------------------------------------------------------------

    def _overdue(self, overdue: inputs.OperationOverdue) -> None:
        row = self._loaded.operations.get(overdue.op_id)
        if row is None or row.ended:
            return
        if self._step(row).asks:
            self._fail(row, approvals.nobody_answered(self._settings.approval.timeout_s))
            return
        self._leases.charge_reservation(row)
        self._fail(row, overdue.failure)
        reason = overdue.failure.message[:400]
        self.stops.append(Stop(row.op_id, row.cycle_id, row.service, reason))

    def _fail(self, row: OperationRow, failure: Failure, corrections: tuple[str, ...] = ()) -> None:
        row.status = "failed"
        self._leases.settle(row, NO_USAGE)
        self.ends[row.op_id] = (
            row,
            EndedOperation("failed", failure=failure.model_dump_json().encode()),
        )
        cycle = self._loaded.cycles[row.cycle_id]
        failed = StepFailed(row.pipeline, row.step, row.attempt, failure, corrections)
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

    def _apply(self, row: CycleRow, cause: Input) -> None:
        after = advance(self._workflow(row), row.state, cause)
        if not after.changed:
            return
        row.state, row.changed = after.cycle, True
        row.waiting = is_waiting(self._workflow(row), after.cycle)
        self.starts += [NewOperation(row, start) for start in after.starts]
        for stopped in after.stops:
            self._stop(row, stopped.op_id, stopped.reason)
        limit_s = self._settings.approval.timeout_s
        self.events += [new_event(row, approvals.timed(fact, limit_s)) for fact in after.facts]

    def _stop(self, row: CycleRow, op_id: UUID, reason: str) -> None:
        operation = self._loaded.operations.get(op_id)
        if operation is not None:
            operation.status = "cancelled"
            self._leases.charge_reservation(operation)
        failure = Failure(code="cancelled", message=reason)
        ended = EndedOperation("cancelled", failure=failure.model_dump_json().encode())
        self.ends[op_id] = (operation, ended)
        self.starts = [new for new in self.starts if new.start.op_id != op_id]
        service = operation.service if operation else ""
        self.stops.append(Stop(op_id, row.cycle_id, service, reason[:400] or "cancelled"))

    def cycle(self, cycle_id: UUID) -> CycleRow:
        """A cycle that was read or has begun."""
        return self._loaded.cycles[cycle_id]

    def written(self, at: datetime) -> None:
        """Take Postgres' time of the write: a cycle's seconds are between two times of its clock,
        whichever orchestrators wrote them."""
        self.at = at
        for row in self.changed_cycles():
            if row.new:
                row.accepted_at = at

    def changed_cycles(self) -> Sequence[CycleRow]:
        """All cycles to write, with those whose purse alone has changed."""
        return [row for row in self._loaded.cycles.values() if row.changed]

    def claim_starts(self, free_workers: FreeWorkers) -> None:
        """Claim what services of this process will begin at once."""
        self.starts = self._leases.claim_starts(self.starts, free_workers)

    # --- after the commit ---------------------------------------------------------------------

    @property
    def cycles(self) -> Sequence[CycleRow]:
        """All cycles that were read or have begun."""
        return list(self._loaded.cycles.values())


def hash_of(*parts: str) -> int:
    """A small stable number for a refused message's kind, so that a flood makes one event."""
    return sum(map(ord, "/".join(parts))) + 1_000_000
