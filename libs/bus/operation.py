"""The service's side of an operation: ask the orchestrator, keep the lease, tell the result."""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from uuid import UUID

import nats.errors
import structlog
from nats.aio.client import Client

from contracts.operation import (
    GET_PORTFOLIO,
    WAITS,
    CallKind,
    Claim,
    ClaimAnswer,
    JournalEntry,
    Progress,
    Record,
    RecordAnswer,
    Reserve,
    Result,
    ResultAnswer,
)
from contracts.subjects.operations import CLAIM, RECORD, RESULT
from contracts.subjects.subject import Answered, AnySubject, Asked, Subject
from contracts.types import Failure, shortened
from libs.bus.codec import NotSendable, decode, encode
from libs.bus.local import LocalLine
from libs.runtime import recorded_call
from libs.runtime.errors import DeskError, is_outage
from libs.runtime.journal import (
    Journal,
    Known,
    NotStorable,
    OperationStopped,
    without_contents,
)

RETRY_AFTER_S = 0.1
RENEWALS_PER_LEASE = 3
FAILURE_CHARS_MAX = 4_000
STEP_CHARS_MAX = 400
SPREAD_SHARE = 0.1
SPREAD_S_MAX = 1.0
"""A call begins up to so much later than it may; below paces.LATE_S of the orchestrator."""

LOGGED = {
    CallKind.TOOL: (logging.INFO, "tool.called"),
    CallKind.READ: (logging.DEBUG, "data.read"),
}
"""By the kind of a recorded call: its event in the log, and from which level on it is there. The
calls of models are logged where they are made (libs/llm/turn.py), without a word of theirs."""

UNANSWERED = (nats.errors.Error, TimeoutError, OSError)

log = structlog.get_logger()


class BudgetExhausted(DeskError):
    """The next call would exceed the operation's, the cycle's or the day's budget.

    `field` names the limit: a setting, or a field of the request.
    """

    code = "budget_exhausted"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class Orchestrator:
    """The three questions of a service, under its own name.

    With a `line` an orchestrator of the same process is asked first; where that one has no answer,
    as with a cycle of a version that it does not know, whoever hears the question on the bus.
    """

    def __init__(
        self, client: Client, service: str, timeout_s: float, line: LocalLine | None = None
    ) -> None:
        self._client = client
        self._service = service
        self._timeout_s = timeout_s
        self._line = line

    async def claim(self, claim: Claim) -> ClaimAnswer:
        """Ask until somebody answers, then for the rest of a long journal."""
        granted = answer = await self._insist(CLAIM, claim)
        journal = list(granted.journal)
        while answer.more:
            page = claim.model_copy(update={"epoch": granted.epoch, "after": journal[-1].index + 1})
            answer = await self._insist(CLAIM, page)
            journal += answer.journal
        return answer.model_copy(update={"journal": tuple(journal)})

    async def record(self, record: Record) -> tuple[RecordAnswer, float]:
        """Ask until somebody answers: the entries are paid for. Returns the answer, and when the
        question was asked that it belongs to, by the monotonic clock."""
        while True:
            asked_at = time.monotonic()
            try:
                answer = await self._ask_once(RECORD, record)
            except NotSendable as error:
                return RecordAnswer(outcome="refused", message=error.message), asked_at
            if answer is not None:
                return answer, asked_at

    async def result(self, result: Result) -> ResultAnswer:
        """Send until somebody answers; the orchestrator takes a repeated result once."""
        try:
            return await self._insist(RESULT, result)
        except NotSendable as error:
            return ResultAnswer(outcome="refused", message=error.message)

    async def end(self, result: Result) -> Result:
        """Send a result; in the place of one that cannot be kept, the failure that says why.
        Returns what stands."""
        answer = await self.result(result)
        if answer.outcome != "refused":
            return result
        failed = failed_result(result, NotStorable(f"the result cannot be kept: {answer.message}"))
        log.error("operation.result_refused", op_id=str(result.op_id), why=answer.message)
        await self.result(failed)
        return failed

    async def _insist(self, row: Subject[Asked, Answered], message: Asked) -> Answered:
        while True:
            answer = await self._ask_once(row, message)
            if answer is not None:
                return answer

    async def _ask_once(self, row: Subject[Asked, Answered], message: Asked) -> Answered | None:
        """The answer; after a pause None, where there was none."""
        body = encode(message)
        if self._line is not None:
            answer_here = await self._line.ask(row, body)
            if answer_here is not None:
                return decode(row.reply, answer_here)
        try:
            subject = row.by(self._service)
            answer = await self._client.request(subject, body, timeout=self._timeout_s)
        except UNANSWERED as error:
            log.warning("bus.unanswered", what=row.what, error=type(error).__name__)
            await asyncio.sleep(RETRY_AFTER_S)
            return None
        return decode(row.reply, answer.data)


class Lease:
    """A claimed operation while it runs: renews itself, records calls, ends when it is lost."""

    def __init__(self, orchestrator: Orchestrator, op_id: UUID, granted: ClaimAnswer) -> None:
        self._orchestrator = orchestrator
        self._op_id = op_id
        self.epoch = granted.epoch
        self._lease_s = granted.lease_s
        self._until = time.monotonic() + granted.lease_s
        self._kept = True
        self._held: Reserve | None = None
        self._refused: NotStorable | None = None

    def check(self) -> None:
        """Raise `OperationStopped` where the lease has run out."""
        if time.monotonic() > self._until:
            raise OperationStopped

    async def record(
        self,
        entries: Sequence[JournalEntry],
        reserve: Reserve | None,
        progress: Progress | None,
    ) -> Known:
        """Commit entries and renew; returns when the reserved calls may begin, with the answers to
        those of them that need not.

        Raises `BudgetExhausted`, `OperationStopped`, and `NotStorable` where a call cannot be kept:
        then it is on record without its contents, and the operation ends with that failure.
        """
        record = Record(
            op_id=self._op_id,
            epoch=self.epoch,
            entries=tuple(entries),
            reserve=reserve,
            progress=progress,
        )
        try:
            answer = await self._recorded(record)
        except NotStorable as error:
            self._refused = error
            await self._keep_one_by_one(entries)
            raise
        self._held = reserve or self._held
        self._log(entries)
        known = {answered.address: answered.reply for answered in answer.known}
        while answer.more and reserve is not None:
            others = tuple(one for one in reserve.addresses if one not in known)
            rest = reserve.model_copy(update={"addresses": others})
            answer = await self._recorded(Record(op_id=self._op_id, epoch=self.epoch, reserve=rest))
            known |= {answered.address: answered.reply for answered in answer.known}
        if answer.wait_s:
            log.info("operation.paced", op_id=str(self._op_id), wait_s=round(answer.wait_s, 3))
            # All who wait for a closed endpoint would come back at once.
            spread_s = min(SPREAD_SHARE * answer.wait_s, SPREAD_S_MAX)
            await asyncio.sleep(answer.wait_s + random.uniform(0, spread_s))  # noqa: S311
        return known

    async def _recorded(self, record: Record) -> RecordAnswer:
        """The answer that renews the lease. Raises as `record`."""
        answer, asked_at = await self._orchestrator.record(record)
        if answer.outcome == "budget_exhausted":
            raise BudgetExhausted(answer.message, answer.field)
        if answer.outcome == "refused":
            raise NotStorable(f"a call cannot be put on record: {answer.message}")
        if answer.outcome != "ok":
            log.info("operation.stopped", op_id=str(self._op_id), why=answer.outcome)
            raise OperationStopped
        self._until = asked_at + answer.lease_s
        return answer

    async def _keep_one_by_one(self, entries: Sequence[JournalEntry]) -> None:
        """Put calls on record after they were refused together; those that are refused by
        themselves without their contents."""
        held = self._held
        for entry in entries:
            try:
                await self._recorded(self._record_of(entry))
            except NotStorable as error:
                log.error(  # noqa: TRY400 - the reason is the orchestrator's
                    "operation.call_refused",
                    op_id=str(self._op_id),
                    name=entry.name,
                    why=str(error),
                )
                bare = without_contents(entry, held, error.message)
                with contextlib.suppress(NotStorable):
                    await self._recorded(self._record_of(bare))

    def _record_of(self, entry: JournalEntry) -> Record:
        return Record(op_id=self._op_id, epoch=self.epoch, entries=(entry,))

    async def end(self, result: Result, journal: Journal) -> Result:
        """Send the result, and with it the calls that are not on record. Returns what stands: the
        failure, where a call or the result cannot be kept.

        Raises `OperationStopped`.
        """
        rest: Sequence[JournalEntry] = ()
        with contextlib.suppress(NotStorable):
            rest = await journal.rest()
        if self._refused is None:
            whole = result.model_copy(update={"entries": tuple(rest)})
            answer = await self._orchestrator.result(whole)
            if answer.outcome != "refused":
                self._log(rest)
                return result
        # Together they are too large, or one of them cannot be kept: the calls first.
        if rest:
            with contextlib.suppress(NotStorable):
                await self.record(rest, None, None)
        if self._refused is not None:
            result = failed_result(result, self._refused)
        return await self._orchestrator.end(result)

    def _log(self, entries: Sequence[JournalEntry]) -> None:
        """Log calls of tools for people who follow; reads are for a closer look."""
        for entry in entries:
            level, event = LOGGED.get(entry.kind, (logging.NOTSET, ""))
            # An outline that nobody reads is not made.
            if not event or not log.is_enabled_for(level):
                continue
            outline = recorded_call.outline(entry)
            if entry.name == GET_PORTFOLIO:
                # Cash and positions do not leave the desk with its log.
                del outline["result"]
            log.log(
                level,
                event,
                op_id=str(self._op_id),
                name=entry.name,
                index=entry.index,
                duration_ms=entry.duration_ms,
                **outline,
            )

    @contextlib.asynccontextmanager
    async def renewing(self, on_lost: Callable[[], object]) -> AsyncIterator[None]:
        """Renew while the block runs; call `on_lost` when the work is no longer ours."""
        renewal = asyncio.create_task(self._renew(on_lost))
        try:
            yield
        finally:
            # Up to Python 3.11 `wait_for` may swallow a cancellation; a renewal that outlived its
            # work would hold the operation for ever.
            self._kept = False
            renewal.cancel()

    async def _renew(self, on_lost: Callable[[], object]) -> None:
        while self._kept:
            await asyncio.sleep(self._lease_s / RENEWALS_PER_LEASE)
            try:
                await self.record((), None, None)
            except (OperationStopped, DeskError):
                on_lost()
                return


def is_unreachable(error: Exception) -> bool:
    """True where a handler could not answer because something cannot be reached."""
    return is_outage(error) or isinstance(error, nats.errors.Error)


def failure_of(error: DeskError) -> Failure:
    """The failure that a handler's "no" is reported as."""
    return Failure(
        code=error.code,
        message=shortened(error.message, FAILURE_CHARS_MAX),
        field=error.field,
        of_model=error.of_model,
    )


def failed_result(result: Result, error: DeskError) -> Result:
    """The failure of the same operation in a result's place."""
    return Result(op_id=result.op_id, epoch=result.epoch, failure=failure_of(error))


async def tell_wait(journal: Journal, why: str) -> None:
    """Let people see what a claimed operation waits for, and its end say so."""
    try:
        await journal.progress(0.0, shortened(f"{WAITS}{why}", STEP_CHARS_MAX))
    except OperationStopped:
        raise asyncio.CancelledError from None


def unexplained(row: AnySubject, tries: int) -> Failure:
    """The failure of a command that a service could not answer, for no reason that it knows."""
    return Failure(
        code="internal_error",
        message=(
            f"{row.owner} could not answer {row.what} (try {tries}); "
            "its log has the traceback under this operation's id"
        ),
    )
