"""The commit loop: takes inputs in groups, one transaction a group, and answers after the commit.

Order after a commit: answer, then publish commands, then tell the relay. A publish that fails is
left to the sweep; an answer that does not arrive is asked for again.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, overload
from uuid import UUID

import structlog

from contracts.audit import DECISION_EVENTS
from contracts.cycle import RequestAnswer
from contracts.message import MESSAGE_BYTES_MAX, Message
from contracts.operation import ClaimAnswer, RecordAnswer, ResultAnswer
from libs.postgres.pool import (
    Pool,
    PoolConnection,
    PostgresError,
    UniqueViolationError,
    is_not_storable,
    is_outage,
)
from libs.runtime.errors import Unavailable
from libs.runtime.settings import Settings
from libs.telemetry import metrics
from services.orchestrator import store
from services.orchestrator.group import inputs, measured
from services.orchestrator.group.batch import InputBatch, WorkflowUnknown
from services.orchestrator.group.changes import NewOperation, Stop
from services.orchestrator.machine.workflow import Workflow

GROUP_MAX = 64
"""Inputs that are committed in one transaction."""
INPUTS_MAX = 4096
"""Inputs that may wait in an orchestrator; a caller may take up a quarter of them."""
RACES_MAX = 3
"""How often a group is folded again on rows that another orchestrator has just inserted."""
RETRY_AFTER_S = 0.2
"""Pause before a group is tried again when Postgres does not answer."""

Answers = Sequence[Message | None]

log = structlog.get_logger()


@dataclass(frozen=True)
class OutgoingCommand:
    """An operation's command on its way to the service that owns the step."""

    service: str
    step: str
    cycle_id: UUID
    op_id: UUID
    body: bytes
    granted: ClaimAnswer | None = None
    """The claim, where it was committed with the operation."""


class Outbox(Protocol):
    """The way out of the orchestrator after a commit. Nothing here may raise: the sweep heals."""

    def free_workers(self, service: str, step: str) -> int:
        """How many of the step's commands a service of this process would begin at once."""

    async def send(self, command: OutgoingCommand) -> None:
        """Send a command for the first time."""

    async def stop(self, stop: Stop) -> None:
        """Tell a service that an operation no longer counts."""


class OnCommit(Protocol):
    """Hears that events were committed."""

    def __call__(self, *, hurry: bool) -> None:
        """`hurry`: there is an event that somebody waits for, and little else to do."""


@dataclass(frozen=True)
class Committed:
    """The work that a committed group leaves: `commands` are those to be sent now."""

    group: InputBatch
    answers: Answers
    commands: Mapping[UUID, bytes]


def _nobody() -> None:
    """Nobody wants to hear it."""


class Committer:
    """Commits inputs, one group after the other. `ask` from any task; `run` in one. `on_freed`
    hears of commits after which a cycle is no longer at work."""

    def __init__(
        self,
        pool: Pool,
        workflows: Sequence[Workflow],
        settings: Settings,
        outbox: Outbox,
        on_commit: OnCommit,
        on_freed: Callable[[], None] = _nobody,
    ) -> None:
        self._pool = pool
        self._workflows = {(workflow.kind, workflow.version): workflow for workflow in workflows}
        self._settings = settings
        self._outbox = outbox
        self._on_commit = on_commit
        self._on_freed = on_freed
        self._queue: asyncio.Queue[inputs.PendingInput] = asyncio.Queue(INPUTS_MAX)
        self._waiting = 0
        self._loaded = False
        self.refused = ""
        """Why Postgres did not commit the newest group, which is tried again; else empty."""

    # Which answer `InputBatch.take` gives to which input.
    @overload
    async def ask(
        self, item: inputs.CycleRequested | inputs.CancelRequested | inputs.ProposalAnswered
    ) -> RequestAnswer: ...
    @overload
    async def ask(self, item: inputs.Claimed) -> ClaimAnswer: ...
    @overload
    async def ask(self, item: inputs.CallsRecorded) -> RecordAnswer: ...
    @overload
    async def ask(self, item: inputs.Resulted) -> ResultAnswer: ...
    @overload
    async def ask(
        self, item: inputs.OperationOverdue | inputs.CycleOverdue | inputs.UnreadableRequest
    ) -> None: ...
    async def ask(self, item: inputs.GroupInput) -> Message | None:
        """Queue an input for `run`; returns its answer once it is committed.

        Raises `InputRefused`, `NotCommitted` where it is to be asked again, and `WorkflowUnknown`
        where another orchestrator is to be asked.
        """
        ask = inputs.PendingInput(item)
        await self._queue.put(ask)
        return await ask.answer

    async def run(self) -> None:
        """Commit what `ask` queued, in groups, until cancelled, on one connection for as long as it
        lasts."""
        waiting: Sequence[inputs.PendingInput] = ()
        while True:
            try:
                # Held, not taken for each group: a pool resets a connection at every release.
                async with self._pool.acquire() as db:
                    while True:
                        waiting = waiting or await self._group()
                        await self._settle(db, waiting)
                        waiting, self.refused = (), ""
            except Unavailable as error:
                self.refused = str(error)[:400] if waiting else ""
                log.warning("orchestrator.postgres_lost", error=str(error)[:400])
                metrics.COMMIT_RETRIES.add("postgres_lost")
                await asyncio.sleep(RETRY_AFTER_S)

    async def _group(self) -> Sequence[inputs.PendingInput]:
        group = [await self._queue.get()]
        while len(group) < GROUP_MAX and not self._queue.empty():
            group.append(self._queue.get_nowait())
        self._loaded = len(group) > 1
        metrics.INPUTS_WAITING.add(self._queue.qsize() - self._waiting)
        self._waiting = self._queue.qsize()
        return group

    async def _settle(self, db: PoolConnection, asks: Sequence[inputs.PendingInput]) -> None:
        """Commit a group; raises an error of an outage, and the group is to be tried again."""
        asks = [ask for ask in asks if not ask.answer.done()]
        if not asks:
            return  # whoever asked has given up, and asks again
        try:
            await self._commit_in_turn(db, asks)
        except Exception as error:
            if is_outage(error):
                raise
            # One bad input must not stop the desk.
            await self._one_by_one(db, asks, error)

    async def _commit_in_turn(
        self, db: PoolConnection, asks: Sequence[inputs.PendingInput]
    ) -> None:
        """Commit; again where another orchestrator was first to insert the same cycle."""
        for _ in range(RACES_MAX):
            try:
                return await self._commit(db, asks)
            except UniqueViolationError:
                log.info("orchestrator.raced", inputs=len(asks))
                metrics.COMMIT_RETRIES.add("raced")
        return await self._commit(db, asks)

    async def _one_by_one(
        self, db: PoolConnection, asks: Sequence[inputs.PendingInput], error: Exception
    ) -> None:
        """A group failed on one of its inputs: the others must not suffer for the one that offends.

        It ends its operation, and what ends is committed like all else; a record is refused, and
        its service then keeps the call without its contents and ends the operation. Where nothing
        can be committed nothing is answered: whoever asked asks again.
        """
        if len(asks) > 1:
            for ask in asks:
                await self._settle(db, [ask])
            return
        item = asks[0].item
        if isinstance(error, WorkflowUnknown):
            log.warning("orchestrator.not_its_cycle", kind=type(item).__name__, why=str(error))
            asks[0].answer.set_exception(error)
            return
        metrics.INPUTS_REFUSED.add()
        log.error("orchestrator.input_refused", kind=type(item).__name__, error=str(error)[:400])
        refused: Exception = InputRefused(str(error))
        op_id = inputs.operation_of(item)
        if isinstance(item, inputs.OperationOverdue) or not _is_its_own_fault(error):
            refused = NotCommitted(str(error))
        elif op_id is not None and not isinstance(item, inputs.CallsRecorded):
            end = inputs.PendingInput(inputs.OperationOverdue(op_id, store.failure_of(error)))
            await self._settle(db, [end])
            if end.answer.exception() is not None:
                refused = NotCommitted(str(error))
        if not asks[0].answer.done():
            asks[0].answer.set_exception(refused)

    async def _commit(self, db: PoolConnection, asks: Sequence[inputs.PendingInput]) -> None:
        """Commit a group, answer those who asked, and send what follows."""
        began = time.perf_counter()
        committed = await self._transaction(db, [ask.item for ask in asks])
        for ask, answer in zip(asks, committed.answers, strict=True):
            if not ask.answer.done():
                ask.answer.set_result(answer)
        metrics.COMMIT_SECONDS.observe(time.perf_counter() - began)
        # Lets the answers leave before the commands that follow from them.
        await asyncio.sleep(0)
        await self._publish(committed)
        # By itself: a fault in counting must not touch what is committed.
        asyncio.get_running_loop().call_soon(measured.count, committed.group, committed.answers)

    async def _transaction(
        self, db: PoolConnection, items: Sequence[inputs.GroupInput]
    ) -> Committed:
        """Lock and read the cycles, take one input after the other, write what follows."""
        async with db.transaction():
            loaded = await store.load(db, items, self._settings)
            group = InputBatch(self._workflows, self._settings, loaded, datetime.now(UTC))
            answers = [group.take(item) for item in items]
            group.claim_starts(self._outbox.free_workers)
            await store.write_paces(db, loaded)
            commands = await store.write(db, group, self._settings)
        return Committed(group, answers, commands)

    async def _publish(self, committed: Committed) -> None:
        for new in committed.group.starts:
            body = committed.commands.get(new.start.op_id)
            step = new.start.step
            # A person is asked by an event. What no service could read is left to the sweep, which
            # fails its operation.
            if body is not None and not step.asks and len(body) <= MESSAGE_BYTES_MAX:
                owner, cycle_id = step.serves.owner, new.cycle.cycle_id
                granted = self._granted(new)
                command = OutgoingCommand(
                    owner, step.name, cycle_id, new.start.op_id, body, granted
                )
                await self._outbox.send(command)
        for stop in committed.group.stops:
            await self._outbox.stop(stop)
        if committed.group.events:
            awaited = any(event.type in DECISION_EVENTS for event in committed.group.events)
            self._on_commit(hurry=awaited and not self._loaded)
        if not all(row.at_work for row in committed.group.cycles):
            self._on_freed()

    def _granted(self, new: NewOperation) -> ClaimAnswer | None:
        if not new.epoch:
            return None
        return ClaimAnswer(
            outcome="granted", epoch=new.epoch, lease_s=self._settings.orchestrator.lease_s
        )


def _is_its_own_fault(error: Exception) -> bool:
    """Whether an input cannot be committed for what it holds; else the database is not in order."""
    return is_not_storable(error) or not isinstance(error, PostgresError)


class InputRefused(Exception):
    """An input could not be stored, for what it holds, and is not tried again."""


class NotCommitted(Exception):
    """An input could not be committed, for no fault of its own: there is no answer to it."""
