"""Answer questions: request and reply over core NATS, shared by all instances of a service.

Who asks names the subject of the answer, and this process may publish where the asker may not: so
an answer goes into the asker's own inbox or nowhere. And each caller has a lane of its own, so that
one who floods fills its own and nobody else's.
"""

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from contracts.message import Message
from contracts.subjects.subject import (
    AGENTS,
    REQUESTERS,
    Answered,
    AnySubject,
    Asked,
    Subject,
    is_proposer,
)
from libs.bus.codec import MessageInvalid, decode, encode
from libs.bus.discovery import BusEndpoint
from libs.bus.dropped import drop_message, replies_to
from libs.bus.headers import AGAIN_HEADER, refusal
from libs.runtime.errors import DeskError, is_outage
from libs.telemetry import metrics

PROGRAMS_OF_PEOPLE = frozenset((*REQUESTERS, *AGENTS))
IN_FLIGHT_MAX = 4_096
"""Questions being answered at once."""
CALLERS_SHARE = 4
"""One caller may take up this part of them; its further ones wait in its lane."""
LANE_BYTES_MAX = 32 * 1024 * 1024
"""What is held of one caller's questions, those being answered and those waiting; more are not
taken, and whoever asked hears nothing and asks again."""
MESSAGE_OVERHEAD_BYTES = 4 * 1024
"""What a waiting question takes besides its body."""
UNREADABLE_BYTES_KEPT = 16 * 1024
"""Of the body of a message that cannot be read: enough to see what it was."""
PENDING_MESSAGES_MAX = 65_536
PENDING_BYTES_MAX = 32 * 1024 * 1024
"""What the connection holds of one subject until its turn comes, which is at once."""
STOP_GRACE_S = 3.0


# Takes the caller's name and the message; None leaves the question without an answer.
Answer = Callable[[str, Asked], Awaitable[Answered | None]]
# Takes the caller's name and what could not be read.
Refuse = Callable[[str, "UnreadableMessage"], Awaitable[Answered | None]]

log = structlog.get_logger()


@dataclass(frozen=True)
class UnreadableMessage:
    """A message that is none: the first UNREADABLE_BYTES_KEPT of it, how many it had, and why."""

    body: bytes
    size_bytes: int
    error: MessageInvalid


@dataclass
class _Lane:
    """The questions of one caller that are not answered yet."""

    slots: asyncio.Semaphore
    bytes_held: int = 0


@dataclass(frozen=True)
class _Served:
    """A row that is answered: how, and what is made of a question that cannot be read."""

    row: AnySubject
    answer: Answer[Any, Any]
    refuse: Refuse[Any] | None


@dataclass(frozen=True)
class _Question(Generic[Asked]):
    """A question as it is held, with the bytes that it takes."""

    caller: str
    reply: str
    held: int
    read: Asked | UnreadableMessage


class Server:
    """Answers one row of the subject table after another; each question in a task of its own."""

    def __init__(self, client: Client, queue: str, in_flight_max: int = IN_FLIGHT_MAX) -> None:
        self._client = client
        self._queue = queue
        self._in_flight_max = max(in_flight_max // CALLERS_SHARE, 1)
        self._lanes: dict[str, _Lane] = {}
        self._tasks: set[asyncio.Task[bytes | None]] = set()
        self._subscriptions: list[Subscription] = []
        self._served: dict[str, _Served] = {}
        self._context = contextvars.copy_context()
        self.endpoints: list[BusEndpoint] = []

    async def serve(
        self,
        row: Subject[Asked, Answered],
        answer: Answer[Asked, Answered],
        refuse: Refuse[Answered] | None = None,
    ) -> None:
        """Begin to answer `row`; what cannot be read goes to `refuse`."""

        async def on_message(message: Msg) -> None:
            caller = message.subject.rpartition(".")[2]
            self._begin(row, caller, message.data, message.reply)

        self._served[row.address] = _Served(row, answer, refuse)
        self.endpoints.append(BusEndpoint(row.what, row.by("*"), self._queue))
        self._subscriptions.append(
            await self._client.subscribe(
                row.by("*"),
                queue=self._queue,
                cb=on_message,
                pending_msgs_limit=PENDING_MESSAGES_MAX,
                pending_bytes_limit=PENDING_BYTES_MAX,
            )
        )

    async def ask(self, row: Subject[Asked, Answered], caller: str, body: bytes) -> bytes | None:
        """Answer a question of this process like one of the bus; None where there is no answer.

        It is answered in a task of its own: whoever asked may be stopped, and what was said counts.
        """
        task = self._begin(row, caller, body)
        if task is None:
            return None
        await asyncio.wait({task})
        return None if task.cancelled() or task.exception() else task.result()

    def _begin(
        self, row: Subject[Asked, Answered], caller: str, body: bytes, reply: str = ""
    ) -> "asyncio.Task[bytes | None] | None":
        """Begin to answer a question; None where it is not taken."""
        question = self._let_in(row, caller, body, reply) if row.address in self._served else None
        if question is None:
            return None
        answering = self._one(self._served[row.address], question)
        # Whoever asks in this process has a context of its own, which is not the answer's.
        task = asyncio.create_task(answering, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def stop(self) -> None:
        """Take no more questions, and answer those taken, for STOP_GRACE_S."""
        self._served.clear()
        for subscription in self._subscriptions:
            if not self._client.is_closed:
                await subscription.unsubscribe()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_GRACE_S)
        # Where what answers has itself failed, an answer never comes: the asker will ask again.
        for task in list(self._tasks):
            task.cancel()

    def _let_in(
        self, row: Subject[Asked, Answered], caller: str, body: bytes, reply: str
    ) -> _Question[Asked] | None:
        """The question, where its answer may be given and there is room for it."""
        if reply and not replies_to(reply, (caller,)):
            drop_message("foreign_inbox", caller, row.address)
            return None
        question = _read(row, caller, body, reply)
        lane = self._lane(caller)
        if lane.bytes_held + question.held > LANE_BYTES_MAX:
            drop_message("overflow", caller, row.address)
            return None
        lane.bytes_held += question.held
        return question

    def _lane(self, caller: str) -> _Lane:
        # As many as there are identities: the last token of a subject is who NATS let publish it.
        if caller not in self._lanes:
            self._lanes[caller] = _Lane(asyncio.Semaphore(self._in_flight_max))
        return self._lanes[caller]

    def _done(self, task: asyncio.Task[bytes | None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("bus.answer_failed", error=f"{type(error).__name__}: {error}"[:400])

    async def _one(self, served: _Served, question: _Question[Any]) -> bytes | None:
        """Answer a question, over NATS where it came from there; returns the answer's bytes."""
        lane, subject = self._lane(question.caller), served.row.by("*")
        outcome, began = "failed", time.perf_counter()
        try:
            async with lane.slots:
                outcome, body = await self._settle(served, question)
            return body
        finally:
            lane.bytes_held -= question.held
            metrics.QUESTIONS.add(subject, outcome)
            metrics.QUESTION_SECONDS.observe(time.perf_counter() - began, subject)

    async def _settle(self, served: _Served, question: _Question[Any]) -> tuple[str, bytes | None]:
        """Answer a question; returns how that ended, as it is counted, and the answer."""
        try:
            reply = await self._reply(served, question)
            body = None if reply is None else encode(reply)
        except DeskError as error:
            log.warning(
                "bus.no_answer", subject=served.row.address, code=error.code, why=error.message
            )
            if question.reply:
                why = refusal(error)
                if is_outage(error):
                    why[AGAIN_HEADER] = "yes"
                await self._client.publish(question.reply, headers=why)
            return "refused", None
        if body is not None and question.reply:
            await self._client.publish(question.reply, body)
        return "answered", body

    async def _reply(self, served: _Served, question: _Question[Any]) -> Message | None:
        if not isinstance(question.read, UnreadableMessage):
            return await served.answer(question.caller, question.read)
        why = question.read.error
        if served.refuse is None:
            raise why
        log.warning(
            "bus.question_refused", subject=served.row.address, caller=question.caller, why=str(why)
        )
        return await served.refuse(question.caller, question.read)


def _read(row: Subject[Asked, Answered], caller: str, body: bytes, reply: str) -> _Question[Asked]:
    """Read the question; of one that cannot be read only the beginning is held."""
    size = len(body)
    read: Asked | UnreadableMessage
    try:
        of_people = caller in PROGRAMS_OF_PEOPLE or is_proposer(caller)
        read = decode(row.message, body, by_people=of_people)
    except MessageInvalid as error:
        # Of the traceback's frames the last ones hold the whole body.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        read = UnreadableMessage(body[:UNREADABLE_BYTES_KEPT], len(body), error)
        size = len(read.body)
    return _Question(caller, reply, size + MESSAGE_OVERHEAD_BYTES, read)
