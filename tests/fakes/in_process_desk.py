"""A desk in one process without a socket or a database: the shipped fold over dictionaries.

Every input goes through the orchestrator's own `InputBatch`; handlers are the shipped ones. What
stands in for Postgres is a dictionary, for the bus a list, for execution a function given by the
test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import orjson

from contracts.account import OpenBooks, Portfolio
from contracts.approval import AnswerProposal, Approval, AwaitApproval
from contracts.cycle import CycleRequest, RequestAnswer
from contracts.execution import ExecuteDecisions, ExecutionResult
from contracts.message import Message
from contracts.operation import (
    Claim,
    ClaimAnswer,
    JournalEntry,
    Progress,
    Record,
    RecordAnswer,
    Reserve,
    Result,
)
from contracts.subjects.commands import EXECUTE_DECISIONS, OPEN_BOOKS
from contracts.types import Failure, Money
from libs.bus.operation import BudgetExhausted, failure_of
from libs.bus.route import Route, on_command
from libs.runtime import ids
from libs.runtime.errors import DeskError
from libs.runtime.journal import Journal, OperationStopped
from libs.runtime.settings import Settings
from services.orchestrator.group import measured
from services.orchestrator.group.batch import InputBatch
from services.orchestrator.group.changes import Loaded, NewEvent, command_json
from services.orchestrator.group.inputs import (
    CallsRecorded,
    Claimed,
    CycleOverdue,
    CycleRequested,
    GroupInput,
    ProposalAnswered,
    Resulted,
)
from services.orchestrator.group.rate_limits import EndpointPace
from services.orchestrator.group.rows import CallBudget, CycleRow, OperationRow, Proposal
from services.orchestrator.machine.logic import Start
from services.orchestrator.machine.workflow import Workflow
from services.orchestrator.machine.workflows import workflows_of
from services.orchestrator.open_outcomes import PAST_DECISIONS, awaited

CASH = Money(amount=Decimal(100_000))


@dataclass
class Stored:
    """One operation as the tables would hold it."""

    row: OperationRow
    start: Start
    command: bytes
    result: bytes | None = None
    failure: Failure | None = None
    journal: list[JournalEntry] = field(default_factory=list)


class InProcessDesk:
    """Runs cycles over dictionaries. `routes` are those of all services that hear commands."""

    def __init__(
        self,
        routes: Sequence[Route],
        settings: Settings | None = None,
        workflow: Workflow | None = None,
    ) -> None:
        self.settings = settings or Settings()
        known = workflows_of(self.settings) if workflow is None else (workflow,)
        self._workflows = {(each.kind, each.version): each for each in known}
        self._routes = {route.hears: route for route in routes}
        self.cycles: dict[UUID, CycleRow] = {}
        self.operations: dict[UUID, Stored] = {}
        self.events: list[NewEvent] = []
        self.pending: list[UUID] = []
        self.now = datetime(2026, 11, 22, 1, tzinfo=UTC)
        self.too_late: set[UUID] = set()
        self.day = CallBudget(
            self.settings.budget.day_tokens_max, self.settings.budget.day_cost_usd_max
        )
        self.paces: dict[str, EndpointPace] = {}

    # --- the orchestrator's transaction -------------------------------------------------------

    def commit(self, given: GroupInput) -> Message | None:
        """One input, one group: what `Committer` does in a transaction."""
        for row in self.cycles.values():
            row.is_late = isinstance(given, CycleOverdue)
        loaded = Loaded(
            cycles=self.cycles,
            operations={op_id: each.row for op_id, each in self.operations.items()},
            journals={op_id: each.journal for op_id, each in self.operations.items()},
            recorded={
                (op_id, entry.index)
                for op_id, each in self.operations.items()
                for entry in each.journal
            },
            memories=self._last_memories(given),
            running=sum(row.state.status == "running" for row in self.cycles.values()),
            day=self.day,
            today=self.day,
            paces=self.paces,
            proposals=self._proposals(),
        )
        group = InputBatch(self._workflows, self.settings, loaded, datetime.now(UTC))
        answer = group.take(given)
        for op_id, (_, end) in group.ends.items():
            self.operations[op_id].result = end.result
            if end.failure is not None:
                self.operations[op_id].failure = Failure.model_validate_json(end.failure)
        for new in group.starts:
            results = {name: self.operations[op].result for name, op in new.start.takes.items()}
            takes = {name: body for name, body in results.items() if body is not None}
            if PAST_DECISIONS in new.start.step.serves.message.model_fields:
                account = new.cycle.pipelines[new.start.lane]["account"]
                past = self._memories_before(account, new.cycle.as_of)
                takes[PAST_DECISIONS] = awaited(body for _, body in past)
            command = command_json(new.cycle, new.start, takes, self.settings)
            self.operations[new.start.op_id] = Stored(new.row(), new.start, command)
            if not new.start.step.asks:
                self.pending.append(new.start.op_id)
        for new_entry in group.entries:
            self.operations[new_entry.operation.op_id].journal.append(new_entry.entry)
        self.events += group.events
        measured.count(group, [answer])
        return answer

    def _proposals(self) -> dict[UUID, list[Proposal]]:
        found: dict[UUID, list[Proposal]] = {}
        for op_id, each in self.operations.items():
            if each.start.step.asks:
                expires_at = self.now + timedelta(seconds=-1 if op_id in self.too_late else 3600)
                proposal = Proposal(
                    op_id=op_id,
                    pipeline=each.row.pipeline,
                    command=AwaitApproval.model_validate_json(each.command),
                    now=self.now,
                    expires_at=expires_at,
                    in_time=op_id not in self.too_late,
                    approval=Approval.model_validate_json(each.result) if each.result else None,
                )
                found.setdefault(each.row.cycle_id, []).append(proposal)
        return found

    def _memories_before(self, account: str, as_of: date) -> list[tuple[UUID, bytes]]:
        """The memories of an account from before a session, oldest first."""
        found = [
            (cycle.as_of, op_id, each.result)
            for op_id, each in self.operations.items()
            if each.row.step == "memorize"
            and each.result is not None
            and (cycle := self.cycles[each.row.cycle_id]).as_of < as_of
            and cycle.pipelines[each.row.pipeline]["account"] == account
        ]
        found.sort(key=lambda each: each[0])
        return [(op_id, result) for _, op_id, result in found]

    def _last_memories(self, given: GroupInput) -> dict[tuple[str, date], UUID]:
        if not isinstance(given, CycleRequested):
            return {}
        accounts = (pipeline.account for pipeline in given.request.pipelines)
        past = {name: self._memories_before(name, given.as_of) for name in accounts}
        return {(name, given.as_of): found[-1][0] for name, found in past.items() if found}

    # --- users --------------------------------------------------------------------------------

    def ask(
        self, request: CycleRequest, requester: str = "user", needs: Reserve | None = None
    ) -> RequestAnswer:
        """Request a cycle; `needs` is what a call of its models costs at least."""
        answer = self.commit(
            CycleRequested(
                cycle_id=ids.cycle_id(requester, request.idempotency_key),
                requester=requester,
                request=request,
                as_of=request.as_of or date(2012, 6, 29),
                body_sha256=request.model_dump_json().encode(),
                needs=needs,
            )
        )
        assert isinstance(answer, RequestAnswer)
        return answer

    async def run(self, request: CycleRequest) -> CycleRow:
        """Request a cycle and work until nothing is pending."""
        answer = self.ask(request)
        assert answer.cycle_id is not None, answer
        await self.work_on()
        return self.cycles[answer.cycle_id]

    async def work_on(self) -> None:
        """Work until nothing is pending but what waits for a person."""
        while self.pending:
            await self.work(self.pending.pop(0))

    def answer(self, answer: AnswerProposal, approver: str = "user") -> RequestAnswer:
        """Answer a proposal."""
        said = self.commit(ProposalAnswered(approver, answer))
        assert isinstance(said, RequestAnswer)
        return said

    # --- services -----------------------------------------------------------------------------

    async def work(self, op_id: UUID) -> None:
        """Do one operation as the service runtime would."""
        stored = self.operations[op_id]
        if stored.row.ended:
            return
        subject = stored.start.step.serves
        command = subject.message.model_validate_json(stored.command)
        epoch, journal = None, Journal((), _no_record)
        if subject.claimed:
            claim = self.claim(op_id)
            if claim.outcome != "granted":
                return
            epoch, journal = claim.epoch, self.journal(op_id, claim)
        try:
            contract = await self._routes[subject].handle(command, journal)
        except OperationStopped:
            return
        except DeskError as error:
            result = Result(
                op_id=op_id,
                epoch=epoch,
                failure=failure_of(error),
                corrections=tuple(getattr(error, "corrections", ())),
            )
        else:
            result = Result(op_id=op_id, epoch=epoch, contract=contract.model_dump(mode="json"))
        rest = await journal.rest()
        self.tell(result.model_copy(update={"entries": tuple(rest) if epoch else ()}))

    def claim(self, op_id: UUID, service: str | None = None) -> ClaimAnswer:
        """Ask for an operation, as its own service unless told otherwise."""
        owner = service or self.operations[op_id].row.service
        answer = self.commit(Claimed(owner, Claim(op_id=op_id, instance="test")))
        assert isinstance(answer, ClaimAnswer)
        return answer

    def record(self, record: Record, service: str | None = None) -> RecordAnswer:
        """Record calls."""
        owner = service or self.operations[record.op_id].row.service
        answer = self.commit(CallsRecorded(owner, record))
        assert isinstance(answer, RecordAnswer)
        return answer

    def tell(self, result: Result, service: str | None = None) -> Message | None:
        """Tell a result."""
        return self.commit(Resulted(service or self.operations[result.op_id].row.service, result))

    def journal(self, op_id: UUID, claim: ClaimAnswer) -> Journal:
        """The journal of a granted claim."""

        async def record(
            entries: Sequence[JournalEntry], reserve: Reserve | None, progress: Progress | None
        ) -> None:
            answer = self.record(
                Record(
                    op_id=op_id,
                    epoch=claim.epoch,
                    entries=tuple(entries),
                    reserve=reserve,
                    progress=progress,
                )
            )
            if answer.outcome == "budget_exhausted":
                raise BudgetExhausted(answer.message, answer.field)
            if answer.outcome != "ok":
                raise OperationStopped

        return Journal(claim.journal, record)

    # --- looking ------------------------------------------------------------------------------

    def named(self, step: str, lane: str | None = None) -> Stored:
        """The newest operation of a step."""
        found = [
            each
            for each in self.operations.values()
            if each.row.step == step and lane in {None, each.row.pipeline}
        ]
        return found[-1]

    def contract(self, step: str, lane: str | None = None) -> Mapping[str, object]:
        """What a step gave."""
        result = self.named(step, lane).result
        assert result is not None, (step, self.named(step, lane).failure)
        loaded: Mapping[str, object] = orjson.loads(result)
        return loaded


def broker_of_the_imagination() -> Sequence[Route]:
    """Execution without a ledger: books with cash and nothing else, and no fills."""

    async def books(command: OpenBooks, _: Journal) -> Portfolio:
        account = command.pipeline.account
        return Portfolio.of(command, account=account, cash=CASH, equity=CASH)

    async def execute(command: ExecuteDecisions, _: Journal) -> ExecutionResult:
        account = command.pipeline.account
        return ExecutionResult.of(command, account=account, cash_before=CASH, cash_after=CASH)

    return (
        on_command(OPEN_BOOKS, books),
        on_command(EXECUTE_DECISIONS, execute),
    )


async def _no_record(*_: object) -> None:
    """Plain commands keep no journal."""
