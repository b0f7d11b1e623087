"""Hear a durable consumer: keep one pull request open for as many messages as may still be taken.

nats-py's own `fetch` asks anew for every few messages and waits for the server's word that there
are no more, which costs as much as a message. Here a request stays open until it is used up or
expires.
"""

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import nats.errors
import orjson
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from contracts.operation import ClaimAnswer
from libs.bus.dropped import drop_message
from libs.bus.streams import ACK_WAIT_S
from libs.runtime.background import event_within

BATCH_MAX = 32
"""Messages that one request asks for."""
EXPIRES_S = 1.0
"""How long a request stays open: after NATS was killed, nothing is heard until then."""
ANSWER_S = 0.5
"""How much later the server says that a request has expired; then it is taken for lost."""
SETTLED_S = 0.05
"""In it the server takes up a request that it has got."""
LEAVE_S_MAX = 2.0
"""How long it may take to tell the server that no more are wanted."""
GIVEN_BACK_S = 0.25
"""How long nobody is sent what came to one who leaves: at once it would come back to it, and use up
all of its deliveries."""
RETRY_AFTER_S = 0.1
"""Pause where the server has no such consumer, or too many unacknowledged messages."""
EXPIRED = "408"

log = structlog.get_logger()


class Pull:
    """Hands each message of a consumer to `handle`, in a task of its own, `at_once_max` at a time.

    `start`, `run` in one task until cancelled, then `drain`. What `handle` raises is logged; the
    message, unacknowledged, comes again. One request asks for at most `batch_max` messages.
    """

    def __init__(
        self,
        client: Client,
        stream: str,
        durable: str,
        handle: Callable[[Msg], Coroutine[Any, Any, None]],
        at_once_max: int,
        batch_max: int = BATCH_MAX,
    ) -> None:
        self._client = client
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"
        self._acks = f"$JS.ACK.{stream}.{durable}."
        self._durable = durable
        self._handle = handle
        self._at_once_max = at_once_max
        self._batch_max = batch_max
        self._context = contextvars.copy_context()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked_for = 0
        self._turn = asyncio.Event()
        self._refused = False
        self._leaving = False
        self._subscription: Subscription | None = None
        self._number = 0

    async def start(self) -> None:
        """Make ready to hear."""
        self._inbox = self._client.new_inbox()
        self._subscription = await self._client.subscribe(f"{self._inbox}.*", cb=self._on_message)

    async def run(self) -> None:
        """Ask for messages until cancelled."""
        while True:
            await self._ask()
            if not await event_within(self._turn, EXPIRES_S + ANSWER_S):
                log.info("pull.unanswered", consumer=self._durable)
            if self._refused:
                await asyncio.sleep(RETRY_AFTER_S)

    async def drain(self, grace_s: float) -> None:
        """Take no more, let what was taken end for `grace_s`, then leave it to others.

        The server forgets an open request with its subscription, but for one that it has not taken
        up by then: that one would swallow messages, which come again only after ACK_WAIT_S. So it
        has SETTLED_S to take it up, and what it sends meanwhile is given back.
        """
        self._leaving = True
        if self._subscription is None:
            return
        with contextlib.suppress(nats.errors.Error, TimeoutError):
            async with asyncio.timeout(LEAVE_S_MAX):
                await self._client.flush()
                await asyncio.sleep(SETTLED_S)
                await self._subscription.drain()  # type: ignore[no-untyped-call]
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for task in list(self._tasks):
            task.cancel()

    async def _ask(self) -> None:
        self._turn.clear()
        self._refused = False
        self._asked_for = min(self._batch_max, self._at_once_max - len(self._tasks))
        if self._asked_for <= 0:
            return
        if not self._client.is_connected:
            # Requests would gather in the client, and all be open at once when it is back.
            self._over(refused=True)
            return
        self._number += 1
        request = {"batch": self._asked_for, "expires": int(EXPIRES_S * 1e9)}
        try:
            await self._client.publish(self._next, orjson.dumps(request), reply=self._reply)
        except nats.errors.Error as error:
            log.warning("pull.unsent", consumer=self._durable, error=type(error).__name__)
            self._over(refused=True)

    @property
    def _reply(self) -> str:
        """The inbox of the present request; answers to older ones arrive elsewhere."""
        return f"{self._inbox}.{self._number}"

    def _over(self, *, refused: bool) -> None:
        """The open request is over; after a refusal the next one waits a little."""
        self._refused = refused
        self._turn.set()

    async def _on_message(self, message: Msg) -> None:
        status = message.headers.get("Status") if message.headers and not message.reply else None
        if status is not None:
            if message.subject == self._reply:
                self._over(refused=status != EXPIRED)
            return
        if not message.reply.startswith(self._acks):
            # Whoever handles it acknowledges there: never where a stranger chose.
            drop_message("no_command", "", self._durable)
            return
        if self._leaving:
            await message.nak(delay=GIVEN_BACK_S)
            return
        self._asked_for -= 1
        if self._asked_for <= 0:
            self._turn.set()
        self._begin(self._handle(message))

    @property
    def free(self) -> int:
        """How many workers are free for other work of the same sort."""
        open_for = max(self._asked_for, 0)
        return 0 if self._leaving else self._at_once_max - len(self._tasks) - open_for

    def take(
        self, work: Callable[[], Coroutine[Any, Any, None]], *, promised: bool = False
    ) -> bool:
        """Do other work of the same sort, where a worker is free; False where none is. What was
        promised one is done even so: it was counted as free a commit ago.

        Whoever calls this has a context of its own, which is not the work's.
        """
        if self._leaving or (self.free <= 0 and not promised):
            return False
        self._begin(work())
        return True

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, context=self._context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._asked_for <= 0:
            self._turn.set()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            what = f"{type(error).__name__}: {error}"[:400]
            log.error("pull.message_failed", consumer=self._durable, error=what)


@dataclass(frozen=True)
class Streamed:
    """A command from its stream, which delivers it again where nobody acknowledges it."""

    message: Msg

    @property
    def body(self) -> bytes:
        """The command as JSON."""
        return self.message.data

    @property
    def sent_at(self) -> datetime:
        """When the stream got it."""
        return self.message.metadata.timestamp

    @property
    def number(self) -> int:
        """Which delivery of this sending it is, from 1 on."""
        return self.message.metadata.num_delivered

    @property
    def traceparent(self) -> str | None:
        """The operation's place in the traces, as a W3C header."""
        return (self.message.headers or {}).get("traceparent")

    @property
    def granted(self) -> None:
        """Whoever hears it first asks for the claim."""
        return None

    @contextlib.asynccontextmanager
    async def in_progress(self) -> AsyncIterator[None]:
        """While the block runs, it is not delivered again: its time is renewed, as neither long
        work nor an outage may use up its deliveries."""

        async def keep() -> None:
            while True:
                await asyncio.sleep(ACK_WAIT_S / 3)
                with contextlib.suppress(nats.errors.Error):
                    await self.message.in_progress()

        keeping = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeping.cancel()

    async def acknowledge(self) -> None:
        """Acknowledge it, if NATS can be reached."""
        try:
            await self.message.ack()
        except nats.errors.Error as error:
            log.warning("pull.unacknowledged", error=type(error).__name__)

    async def give_back(self, delay_s: float) -> None:
        """Have it delivered again, no earlier than `delay_s` from now."""
        await self.message.nak(delay=delay_s)

    async def end(self) -> None:
        """Have it never delivered again."""
        await self.message.term()


@dataclass(frozen=True)
class LocalDelivery:
    """A command from the orchestrator of the same process.

    Nothing is to be said of it: its operation's row tells whether it is answered, and the sweep
    sends what is not.
    """

    body: bytes
    traceparent: str
    granted: ClaimAnswer | None = None
    sent_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    number: int = 1

    def in_progress(self) -> AbstractAsyncContextManager[None]:
        """Nobody delivers it again but the sweep, whose copy is found to be one."""
        return contextlib.nullcontext()

    async def acknowledge(self) -> None:
        """There is nobody to tell."""

    async def give_back(self, delay_s: float) -> None:
        """It is left to the sweep, which comes no earlier."""

    async def end(self) -> None:
        """There is nobody to tell."""


Delivery = Streamed | LocalDelivery
"""A command's bytes, and what is to be said of them to whoever delivered them."""
