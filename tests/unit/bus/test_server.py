"""Answering questions: what happens to those that are open when the service stops."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from contracts.cycle_query import CyclesPage, CyclesQuery
from contracts.message import MESSAGE_BYTES_MAX, Message
from contracts.subjects.cycles import CYCLES
from libs.bus import server as server_module
from libs.bus.codec import encode
from libs.bus.server import LANE_BYTES_MAX, UNREADABLE_BYTES_KEPT, Server, UnreadableMessage
from libs.runtime.errors import DeskError
from libs.telemetry import metrics


class Question:
    """A message as nats-py hands it over."""

    def __init__(
        self, caller: str = "cli", reply: str | None = None, data: bytes = encode(CyclesQuery())
    ) -> None:
        self.subject = CYCLES.by(caller)
        self.reply = f"_INBOX_{caller}.1" if reply is None else reply
        self.data = data


class Connection:
    """As much of a client as a server needs: subscriptions that a test feeds."""

    def __init__(self) -> None:
        self.said: list[tuple[str, bytes]] = []
        self.spoke = asyncio.Event()
        self.hear: Callable[[Any], Awaitable[None]] | None = None
        self.listening = True
        self.is_closed = False

    async def subscribe(
        self, *_: object, cb: Callable[[Any], Awaitable[None]], **__: object
    ) -> Any:
        self.hear = cb
        return self

    async def publish(self, subject: str, body: bytes = b"", **_: object) -> None:
        self.said.append((subject, body))
        self.spoke.set()

    async def unsubscribe(self) -> None:
        self.listening = False


async def asked(answer: Callable[[str, Message], Awaitable[Message]]) -> tuple[Server, Connection]:
    """A server that has just been asked one question."""
    connection = Connection()
    server = Server(connection, "queue")  # type: ignore[arg-type]
    await server.serve(CYCLES, answer)
    assert connection.hear is not None
    await connection.hear(Question())
    return server, connection


async def test_a_question_that_is_being_answered_gets_its_answer_before_the_stop() -> None:
    async def answer(_caller: str, _message: Message) -> Message:
        await asyncio.sleep(0.01)
        return CyclesPage()

    server, connection = await asked(answer)
    await server.stop()

    assert connection.said == [(Question().reply, encode(CyclesPage()))]


async def test_an_answer_that_never_comes_does_not_hold_up_the_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_module, "STOP_GRACE_S", 0.05)
    cancelled = asyncio.Event()

    async def answer(_caller: str, _message: Message) -> Message:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return CyclesPage()

    server, connection = await asked(answer)
    await asyncio.wait_for(server.stop(), 2)

    await asyncio.wait_for(cancelled.wait(), 2)
    assert connection.said == []


class Refused(DeskError):
    """What is answered with headers only."""

    code = "refused"


FOREIGN = (
    "desk.v1.cmd.execution.execute",
    "$JS.API.STREAM.PURGE.DECISIONS",
    "_INBOX_user.1",
    "_INBOX_cli",
    "_INBOX_client.1",
    "x._INBOX_cli.1",
    " _INBOX_cli.1",
)


@pytest.mark.parametrize("reply", FOREIGN)
@pytest.mark.parametrize("body", [encode(CyclesQuery()), b"junk", b""])
async def test_nothing_is_said_or_done_where_the_answer_would_not_go_to_the_caller(
    reply: str, body: bytes
) -> None:
    heard: list[str] = []

    async def answer(caller: str, _message: Message) -> Message:
        heard.append(caller)
        raise Refused("no")

    connection = Connection()
    server = Server(connection, "queue")  # type: ignore[arg-type]
    await server.serve(CYCLES, answer)
    assert connection.hear is not None
    dropped = metrics.DROPPED.sum_of(why="foreign_inbox")
    await connection.hear(Question("cli", reply, body))
    await server.stop()

    assert (connection.said, heard) == ([], [])
    assert metrics.DROPPED.sum_of(why="foreign_inbox") == dropped + 1


async def test_of_a_message_that_cannot_be_read_its_beginning_is_held() -> None:
    refused: list[UnreadableMessage] = []

    async def answer(_caller: str, _message: Message) -> Message:
        return CyclesPage()

    async def refuse(_caller: str, unreadable: UnreadableMessage) -> Message:
        refused.append(unreadable)
        return CyclesPage()

    connection = Connection()
    server = Server(connection, "queue")  # type: ignore[arg-type]
    await server.serve(CYCLES, answer, refuse)
    assert connection.hear is not None
    await connection.hear(Question(data=b"x" * 900_000))
    await server.stop()

    (unreadable,) = refused
    assert (len(unreadable.body), unreadable.size_bytes) == (UNREADABLE_BYTES_KEPT, 900_000)
    assert (unreadable.error.code, unreadable.error.__traceback__) == ("too_large", None)


async def test_one_who_floods_fills_its_own_lane_and_others_are_answered() -> None:
    gate, answered = asyncio.Event(), []

    async def answer(caller: str, _message: Message) -> Message:
        if caller == "user":
            await gate.wait()
        answered.append(caller)
        return CyclesPage()

    connection = Connection()
    server = Server(connection, "queue", in_flight_max=8)  # type: ignore[arg-type]
    await server.serve(CYCLES, answer)
    assert connection.hear is not None
    # A question may hold what a later version knows.
    large = b'{"later":"' + b"x" * (MESSAGE_BYTES_MAX - 12) + b'"}'
    taken = LANE_BYTES_MAX // MESSAGE_BYTES_MAX
    for _ in range(2 * taken):
        await connection.hear(Question("user", data=large))
    await connection.hear(Question("cli"))
    async with asyncio.timeout(5):
        await connection.spoke.wait()
    first = list(answered)
    gate.set()
    async with asyncio.timeout(5):
        await server.stop()

    assert first == ["cli"]
    assert taken * 0.95 < answered.count("user") <= taken
