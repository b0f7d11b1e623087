"""The desk as a person's program reaches it: ask a question, send a request, listen to events."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import nats.aio.client
import nats.errors
import orjson
import structlog
from nats.aio.msg import Msg

from contracts.audit import Event
from contracts.subjects.subject import BACKBONE, PREFIX, SERVICES, Answered, Asked, Subject
from libs.bus.codec import MessageInvalid, decode, encode
from libs.bus.connection import BusConnection, BusNotReachable, NoConnectionLeft, connect, flush
from libs.bus.headers import (
    AGAIN_HEADER,
    CODE_HEADER,
    ERROR_HEADER,
    MISTYPED_HEADER,
    SUGGESTION_HEADER,
)
from libs.keys.credentials import nkey_seed_path
from libs.runtime.errors import DeskError, Unavailable

ASK_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 3.0
"""A person waits: less patience than a service has."""
FLUSH_TIMEOUT_S = 5.0
EVENTS_READY_MAX = 1_024
"""Events that are taken over from nats-py, whose own iterator costs three times as much CPU."""
EVENTS_PENDING_MAX = 65_536
"""Events that may wait for a slow reader; further ones are dropped, and seen as a gap."""

ANSWER_S_MAX = 1.0
"""Whoever looks for services waits so long for one that has not answered."""
FURTHER_S = 0.05
"""It waits so long for further instances, once every service has answered."""
INSTANCES_MAX = 2_000
PING = "$SRV.PING"
"""Who is there? Every service answers; all that the console asks."""

ALL_EVENTS = f"{PREFIX}.evt.>"

log = structlog.get_logger()


class DeskNotReachable(Unavailable):
    """The desk does not answer: it is not running, is starting, or a part of it is down."""

    code = "desk_not_reachable"


class QuestionRefused(DeskError):
    """Whoever was asked said why it cannot answer; `code` is its own, and so is what it suggests in
    place of what was given."""

    def __init__(
        self, code: str, message: str, mistyped: str | None = None, suggestion: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.mistyped = mistyped
        self.suggestion = suggestion


class Client:
    """One connection under one identity of `contracts.subjects.USERS`."""

    def __init__(
        self, connection: nats.aio.client.Client, identity: str, closed: asyncio.Event
    ) -> None:
        self._connection = connection
        self.identity = identity
        self._closed = closed

    @property
    def is_closed(self) -> bool:
        """Whether the connection is gone and does not come back."""
        return self._closed.is_set()

    async def ask(
        self, row: Subject[Asked, Answered], message: Asked, *, timeout_s: float = ASK_TIMEOUT_S
    ) -> Answered:
        """The answer to a request or question.

        Raises `DeskNotReachable` when nobody answers in time, `QuestionRefused` with the reason
        that came instead of an answer, `MessageTooLarge` before sending.
        """
        try:
            answer = await self._connection.request(
                row.by(self.identity), encode(message), timeout=timeout_s
            )
        except nats.errors.NoRespondersError as error:
            raise DeskNotReachable(
                f"no {row.owner} hears {row.address}: it is starting or down"
            ) from error
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise DeskNotReachable(
                f"{row.owner} did not answer {row.what!r} within {timeout_s:g} s; "
                "its log may say why"
            ) from error
        headers = answer.headers or {}
        if AGAIN_HEADER in headers:
            raise DeskNotReachable(headers.get(ERROR_HEADER, f"{row.owner} cannot answer now"))
        if CODE_HEADER in headers:
            raise QuestionRefused(
                headers[CODE_HEADER],
                headers.get(ERROR_HEADER, "no reason given"),
                headers.get(MISTYPED_HEADER),
                headers.get(SUGGESTION_HEADER),
            )
        return decode(row.reply, answer.data)

    async def services(self) -> Mapping[str, int]:
        """Count the processes of each service of the desk that answer now."""
        return await instances(self._connection)

    @asynccontextmanager
    async def events(
        self, cycle_id: UUID | None = None, *, pattern: str = ALL_EVENTS
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Live events from now on, of one cycle or of a subject pattern, while the block runs.

        The server has the subscription when the block begins, so what is asked for inside it is
        heard. An event may come twice; its `sequence` tells, and shows a gap too. They end with the
        connection.
        """
        subject = pattern if cycle_id is None else f"{PREFIX}.evt.*.*.{cycle_id}"
        ready: asyncio.Queue[Msg] = asyncio.Queue(EVENTS_READY_MAX)
        subscription = await self._connection.subscribe(
            subject, cb=ready.put, pending_msgs_limit=EVENTS_PENDING_MAX
        )
        await flush(self._connection, FLUSH_TIMEOUT_S)
        try:
            yield _decoded(ready, self._closed)
        finally:
            if not self._connection.is_closed:
                await subscription.unsubscribe()


def discovered_as(identity: str) -> str:
    """The name by which NATS' tools find a service."""
    return f"deskbus-{identity}"


async def instances(
    connection: nats.aio.client.Client,
    identities: Sequence[str] = (*BACKBONE, *SERVICES),
    within_s: float = ANSWER_S_MAX,
) -> Mapping[str, int]:
    """Count the processes of each of these services that answer now; 0 where none did in time.

    It takes `within_s` where one is missing, and a part of that else.
    """
    instance_ids: dict[str, set[str]] = {discovered_as(identity): set() for identity in identities}
    inbox = connection.new_inbox()
    answers = await connection.subscribe(inbox)
    try:
        await connection.publish(PING, reply=inbox)
        until = asyncio.get_running_loop().time() + within_s
        for _ in range(INSTANCES_MAX):
            left = until - asyncio.get_running_loop().time()
            everyone = all(instance_ids.values())
            try:
                answer = await answers.next_msg(min(left, FURTHER_S) if everyone else left)
            except nats.errors.TimeoutError:
                break
            name, instance = _pinged(answer.data)
            if name in instance_ids:
                instance_ids[name].add(instance)
    finally:
        await answers.unsubscribe()
    return {identity: len(instance_ids[discovered_as(identity)]) for identity in identities}


def _pinged(body: bytes) -> tuple[str, str]:
    """The name and instance that answer; empty where nobody is there, or it cannot be read."""
    try:
        pong = orjson.loads(body)
        return str(pong["name"]), str(pong["id"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "", ""


async def _decoded(ready: asyncio.Queue[Msg], closed: asyncio.Event) -> AsyncIterator[Event]:
    while True:
        message = await _next(ready, closed) if ready.empty() else ready.get_nowait()
        if message is None:
            return
        try:
            yield decode(Event, message.data)
        except MessageInvalid as error:
            # A newer desk may say what this program does not know; the rest is still worth hearing.
            log.warning("client.event_unreadable", subject=message.subject, why=error.message)


async def _next(ready: asyncio.Queue[Msg], closed: asyncio.Event) -> Msg | None:
    """Wait for a message; None where the connection has been closed."""
    coming = asyncio.ensure_future(ready.get())
    ending = asyncio.ensure_future(closed.wait())
    try:
        await asyncio.wait({coming, ending}, return_when=asyncio.FIRST_COMPLETED)
        return coming.result() if coming.done() else None
    finally:
        coming.cancel()
        ending.cancel()


@asynccontextmanager
async def open_client(
    url: str,
    secrets_dir: Path,
    identity: str = "cli",
    *,
    spare: str | None = None,
    timeout_s: float = CONNECT_TIMEOUT_S,
    reconnects: bool = True,
) -> AsyncIterator[Client]:
    """A client while the block runs, which `reconnects` or not. Raises `DeskNotReachable`.

    `spare` is the identity to use instead, where its key is here, when programs with the key of
    `identity` hold every connection that one key may have.
    """
    closed = asyncio.Event()

    async def on_closed() -> None:
        closed.set()

    async def connected() -> BusConnection:
        return await connect(
            url,
            identity,
            secrets_dir,
            on_closed=on_closed,
            timeout_s=timeout_s,
            reconnects=reconnects,
        )

    try:
        try:
            connection = await connected()
        except NoConnectionLeft as error:
            if spare is None or not nkey_seed_path(secrets_dir, spare).exists():
                raise
            log.warning("client.spare_key", identity=spare, why=error.message)
            identity = spare
            connection = await connected()
    except BusNotReachable as error:
        raise DeskNotReachable(error.message) from error
    try:
        yield Client(connection, identity, closed)
    finally:
        await connection.close()
