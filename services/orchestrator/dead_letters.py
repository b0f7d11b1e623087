"""Dead letters, dealt with by a person: the operation's command sent again, or the letter deleted.

A letter's own body is never sent. It only names an operation, and the operation's row is what is
true: while it is open its stored command goes out once more, and else the answer says why not.
What was done is told as an event, in the transaction that does it or before it is done.
"""

from collections.abc import Awaitable, Mapping
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import orjson
import structlog

from contracts.audit import EventType
from contracts.event_data import LetterEvent
from contracts.message import MESSAGE_BYTES_MAX
from contracts.subjects.approvals import APPROVAL
from contracts.subjects.subject import ORCHESTRATOR, PREFIX
from contracts.subjects.upkeep import DISCARD_LETTER, RETRY_LETTER
from contracts.upkeep import DeadLetter, DiscardLetter, LetterAnswer, RetryLetter
from libs.bus.dead_letters import DeadLetters
from libs.bus.publisher import UNPUBLISHED, Publisher
from libs.bus.server import Server
from libs.postgres.pool import Pool, PoolConnection, Record
from libs.runtime import ids
from libs.runtime.errors import Unavailable
from libs.runtime.settings import Settings
from services.orchestrator.commit import OnCommit
from services.orchestrator.store import sql

DISCARDED_SEQ = 0
"""A discard's number among a letter's events; a retry's is the number of its sending, from 2 on."""
OWN_LETTERS = f"{PREFIX}.dlq.{ORCHESTRATOR}."
ADVICE: Mapping[str, str] = {
    "request": (
        "it is an unreadable request, which only its sender can send: correct it there and send "
        "it again; then discard the letter"
    ),
}
ADVICE_ON_ANSWERS = (
    "it is a report of a service, which has sent it again or lost its claim: nothing to send; "
    "discard the letter"
)

log = structlog.get_logger()


class LettersUnavailable(Unavailable):
    """Postgres or the stream of dead letters does not answer."""

    code = "unavailable"


class Letters:
    """Answers the two requests about a dead letter."""

    def __init__(
        self,
        pool: Pool,
        publisher: Publisher,
        letters: DeadLetters,
        settings: Settings,
        on_commit: OnCommit,
    ) -> None:
        self._pool = pool
        self._publisher = publisher
        self._letters = letters
        self._settings = settings
        self._on_commit = on_commit

    async def serve(self, server: Server) -> None:
        """Begin to answer."""
        await server.serve(RETRY_LETTER, lambda by, letter: _reached(self._retry(by, letter)))
        await server.serve(DISCARD_LETTER, lambda by, letter: _reached(self._discard(by, letter)))

    async def _retry(self, caller: str, request: RetryLetter) -> LetterAnswer:
        stored = await self._letters.stored(request.sequence)
        if stored is None:
            return _not_found(request.sequence)
        letter, body = stored
        if letter.subject.startswith(OWN_LETTERS):
            what, _, _sender = letter.subject.removeprefix(OWN_LETTERS).partition(".")
            return _rejected("not_a_command", ADVICE.get(what, ADVICE_ON_ANSWERS))
        op_id = operation_named_in(body)
        if op_id is None:
            gone = "its body is no longer in the command stream" if body is None else "unreadable"
            text = f"the letter names no operation ({gone}): nothing can be sent; discard it"
            return _rejected("no_operation", text)
        return await self._send_again(caller, letter, op_id)

    async def _send_again(self, caller: str, letter: DeadLetter, op_id: UUID) -> LetterAnswer:
        settings = self._settings
        async with self._pool.acquire() as db, db.transaction():
            row = await db.fetchrow(
                sql.send_again,
                op_id,
                settings.orchestrator.resend_after_s,
                max(settings.orchestrator.epochs_max - 1, 1),
                MESSAGE_BYTES_MAX,
            )
            if row is None:
                return why_not(op_id, await db.fetchrow(sql.operation_of_letter, op_id))
            event = _letter_event(letter, caller, "", op_id)
            await _write_event(db, letter, EventType.LETTER_RETRIED, row["sends"], row, event)
        self._on_commit(hurry=True)
        await self._publisher.command(
            row["service"], row["step"], row["cycle_id"], op_id, row["command"], row["sends"]
        )
        log.info("letters.sent_again", sequence=letter.sequence, op_id=str(op_id), by=caller)
        text = f"the command of {row['step']} was sent to {row['service']} again"
        return LetterAnswer(outcome="accepted", message=text, op_id=op_id, cycle_id=row["cycle_id"])

    async def _discard(self, caller: str, request: DiscardLetter) -> LetterAnswer:
        stored = await self._letters.stored(request.sequence)
        if stored is None:
            return _not_found(request.sequence)
        letter, body = stored
        op_id = operation_named_in(body)
        # First the record, then the deed: a letter never vanishes without a word.
        async with self._pool.acquire() as db, db.transaction():
            row = await db.fetchrow(sql.operation_of_letter, op_id) if op_id else None
            event = _letter_event(letter, caller, request.reason, row["op_id"] if row else None)
            await _write_event(db, letter, EventType.LETTER_DISCARDED, DISCARDED_SEQ, row, event)
        self._on_commit(hurry=True)
        await self._letters.discard(request.sequence)
        log.info("letters.discarded", sequence=request.sequence, by=caller)
        return LetterAnswer(
            outcome="accepted",
            message=f"dead letter {request.sequence} is deleted",
            op_id=row["op_id"] if row else None,
            cycle_id=row["cycle_id"] if row else None,
        )


async def _reached(answer: Awaitable[LetterAnswer]) -> LetterAnswer:
    """The answer. Raises LettersUnavailable where Postgres or NATS gives none."""
    try:
        return await answer
    except (Unavailable, *UNPUBLISHED) as error:
        why = f"{type(error).__name__}: {error}"[:300]
        raise LettersUnavailable(f"try again: {why}") from error


def operation_named_in(body: bytes | None) -> UUID | None:
    """The op_id in a command's body, whatever else is wrong with it; None where there is none."""
    try:
        command: Any = orjson.loads(body or b"")
        return UUID(command["op_id"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def why_not(op_id: UUID, row: Mapping[str, Any] | Record | None) -> LetterAnswer:
    """Why the operation's command is not sent: `row` is as it stands, None where there is none."""
    if row is None:
        text = f"operation {op_id} does not exist: nothing to send; discard the letter"
        return _rejected("no_operation", text)
    name = f"{row['service']}'s {row['step']}"
    if row["status"] not in {"pending", "running"}:
        code, text = "ended", f"{name} is {row['status']} and stays so; discard the letter"
    elif row["step"] == APPROVAL.what:
        code = "waits_for_person"
        text = (
            "it names a proposal that waits for a person, and no service hears its command: see "
            "`deskbus approvals list`; discard the letter"
        )
    elif row["bytes"] > MESSAGE_BYTES_MAX:
        code, text = "too_large", f"{name} has a command that is too large to be sent at all"
    elif row["status"] == "running":
        code, text = "at_work", f"an instance works on {name}; it is sent again if that one is lost"
    else:
        code = "suspect"
        text = (
            f"{name} was claimed {row['epoch']} times and never ended: it may crash the service "
            "that takes it, so only the sweep sends such work, one at a time"
        )
    return LetterAnswer(
        outcome="rejected", code=code, message=text, op_id=op_id, cycle_id=row["cycle_id"]
    )


def _rejected(code: str, message: str) -> LetterAnswer:
    return LetterAnswer(outcome="rejected", code=code, message=message)


def _not_found(sequence: int) -> LetterAnswer:
    return _rejected("not_found", f"dead letter {sequence} does not exist; see `deskbus dlq list`")


def _letter_event(letter: DeadLetter, by: str, reason: str, op_id: UUID | None) -> LetterEvent:
    return LetterEvent(
        sequence=letter.sequence,
        subject=letter.subject,
        code=letter.failure.code,
        by=by,
        reason=reason,
        operation=op_id,
    )


async def _write_event(
    db: PoolConnection,
    letter: DeadLetter,
    what: EventType,
    seq: int,
    operation: Record | None,
    event: LetterEvent,
) -> None:
    """Write the event: among its cycle's where the operation is known, else under an own id."""
    node = ids.letter_id(letter.sequence, letter.at)
    started_on: date = operation["started_on"] if operation else datetime.now(UTC).date()
    cycle_id: UUID = operation["cycle_id"] if operation else node
    data = event.model_dump_json()
    await db.execute(sql.tell_of_letter, started_on, node, seq, cycle_id, what, data)
