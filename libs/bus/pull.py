"""Hear a durable consumer: keep one pull request open for as many messages as may still be taken.

nats-py's own `fetch` asks anew for every few messages and waits for the server's word that there
are no more, which costs as much as a message. Here a request stays open until it is used up or
expires.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import nats.errors
import orjson
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from libs.bus.doorkeeper import refused_at_the_door
from libs.bus.streams import ACK_WAIT_S

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
RETRY_AFTER_S = 0.1
"""Pause where the server has no such consumer, or too many unacknowledged messages."""
EXPIRED = "408"

log = structlog.get_logger()


class Pull:
    """Hands each message of a consumer to `handle`, in a task of its own, `at_once_max` at a time.

    `start`, `run` in one task until cancelled, then `drain`. What `handle` raises is logged; the
    message, unacknowledged, comes again.
    """

    def __init__(
        self,
        client: Client,
        stream: str,
        durable: str,
        handle: Callable[[Msg], Coroutine[Any, Any, None]],
        at_once_max: int,
    ) -> None:
        self._client = client
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"
        self._acks = f"$JS.ACK.{stream}.{durable}."
        self._durable = durable
        self._handle = handle
        self._at_once_max = at_once_max
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked_for = 0
        self._turn = asyncio.Event()
        self._refused = False
        self._leaving = False
        self._number = 0

    async def start(self) -> None:
        """Make ready to hear."""
        self._inbox = self._client.new_inbox()
        self._subscription: Subscription = await self._client.subscribe(
            f"{self._inbox}.*", cb=self._on_message
        )

    async def run(self) -> None:
        """Ask for messages until cancelled."""
        while True:
            await self._ask()
            try:
                # Not `wait_for`: up to Python 3.11 it may swallow a cancellation.
                async with asyncio.timeout(EXPIRES_S + ANSWER_S):
                    await self._turn.wait()
            except TimeoutError:
                log.info("pull.unanswered", consumer=self._durable)
            if self._refused:
                await asyncio.sleep(RETRY_AFTER_S)

    async def drain(self, grace_s: float) -> None:
        """Take no more, let what was taken end for `grace_s`, then leave it to others.

        The server forgets an open request with its subscription, but for one that it has not taken
        up by then: that one would swallow messages, which come again only after ACK_WAIT_S. So it
        has SETTLED_S to take it up, and what it sends meanwhile is given back at once.
        """
        self._leaving = True
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
        self._asked_for = min(BATCH_MAX, self._at_once_max - len(self._tasks))
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
            refused_at_the_door("no_command", "", self._durable)
            return
        if self._leaving:
            await message.nak()
            return
        self._asked_for -= 1
        if self._asked_for <= 0:
            self._turn.set()
        task = asyncio.create_task(self._handle(message))
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


@contextlib.asynccontextmanager
async def in_progress(message: Msg) -> AsyncIterator[None]:
    """While the block runs, the message is not delivered again: deliveries are counted, and neither
    long work nor an outage may use them up."""

    async def keep() -> None:
        while True:
            await asyncio.sleep(ACK_WAIT_S / 3)
            with contextlib.suppress(nats.errors.Error):
                await message.in_progress()

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()


async def acknowledge(message: Msg) -> None:
    """Say that a command is dealt with; one that is delivered again is found to be so."""
    try:
        await message.ack()
    except nats.errors.Error as error:
        log.warning("pull.unacknowledged", error=type(error).__name__)
