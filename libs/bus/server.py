"""Answer questions: request and reply over core NATS, shared by all instances of a service."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from contracts.message import Message
from contracts.subjects import Subject
from libs.bus.codec import MessageInvalid, decode, encode
from libs.bus.discovery import Endpoint
from libs.bus.headers import reason
from libs.runtime import metrics
from libs.runtime.errors import DeskError

IN_FLIGHT_MAX = 1_024
"""Questions being answered at once; further ones wait in the connection's own queue."""

PENDING_MESSAGES_MAX = 65_536
STOP_GRACE_S = 3.0

# Takes the caller's name and the message; None leaves the question without an answer.
Answer = Callable[[str, Message], Awaitable[Message | None]]
# Takes the caller's name, the body and what was wrong with it.
Refuse = Callable[[str, bytes, MessageInvalid], Awaitable[Message | None]]

log = structlog.get_logger()


class Server:
    """Answers one row of the subject table after another; each question in a task of its own."""

    def __init__(self, client: Client, queue: str, in_flight_max: int = IN_FLIGHT_MAX) -> None:
        self._client = client
        self._queue = queue
        self._slots = asyncio.Semaphore(in_flight_max)
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscriptions: list[Subscription] = []
        self.endpoints: list[Endpoint] = []

    async def serve(self, row: Subject, answer: Answer, refuse: Refuse | None = None) -> None:
        """Begin to answer `row`; what cannot be read goes to `refuse`."""

        async def on_message(message: Msg) -> None:
            await self._slots.acquire()
            task = asyncio.create_task(self._one(row, answer, refuse, message))
            self._tasks.add(task)
            task.add_done_callback(self._done)

        self.endpoints.append(Endpoint(row.what, row.by("*"), self._queue))
        self._subscriptions.append(
            await self._client.subscribe(
                row.by("*"),
                queue=self._queue,
                cb=on_message,
                pending_msgs_limit=PENDING_MESSAGES_MAX,
            )
        )

    async def stop(self) -> None:
        """Take no more questions, and answer those taken, for STOP_GRACE_S."""
        for subscription in self._subscriptions:
            if not self._client.is_closed:
                await subscription.unsubscribe()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_GRACE_S)
        # Where what answers has itself failed, an answer never comes: the asker will ask again.
        for task in list(self._tasks):
            task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._slots.release()
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("bus.answer_failed", error=f"{type(error).__name__}: {error}"[:400])

    async def _one(self, row: Subject, answer: Answer, refuse: Refuse | None, message: Msg) -> None:
        caller = message.subject.rpartition(".")[2]
        subject = row.by("*")
        outcome, began = "failed", time.perf_counter()
        try:
            outcome = await self._settle(row, answer, refuse, message, caller)
        finally:
            metrics.QUESTIONS.add(subject, outcome)
            metrics.QUESTION_SECONDS.observe(time.perf_counter() - began, subject)

    async def _settle(
        self, row: Subject, answer: Answer, refuse: Refuse | None, message: Msg, caller: str
    ) -> str:
        """Answer a question; returns how that ended, as it is counted."""
        try:
            reply = await self._reply(row, answer, refuse, message, caller)
            body = None if reply is None else encode(reply)
        except DeskError as error:
            log.warning("bus.no_answer", subject=row.address, code=error.code, why=error.message)
            if message.reply:
                why = reason(error.code, error.message)
                await self._client.publish(message.reply, headers=why)
            return "refused"
        if body is not None and message.reply:
            await message.respond(body)
        return "answered"

    async def _reply(
        self, row: Subject, answer: Answer, refuse: Refuse | None, message: Msg, caller: str
    ) -> Message | None:
        try:
            asked = decode(row.message, message.data)
        except MessageInvalid as error:
            if refuse is None:
                raise
            log.warning("bus.question_refused", subject=row.address, caller=caller, why=str(error))
            return await refuse(caller, message.data, error)
        return await answer(caller, asked)
