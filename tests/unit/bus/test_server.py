"""Answering questions: what happens to those that are open when the service stops."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from contracts.message import Message
from contracts.query import CyclesPage, CyclesQuery
from contracts.subjects import CYCLES
from libs.bus import server as server_module
from libs.bus.codec import encode
from libs.bus.server import Server


class Question:
    """A message as nats-py hands it over; notes its answer."""

    subject = CYCLES.by("cli")
    reply = "_INBOX_cli.1"
    data = encode(CyclesQuery())

    def __init__(self) -> None:
        self.answers: list[bytes] = []

    async def respond(self, body: bytes) -> None:
        self.answers.append(body)


class Connection:
    """As much of a client as a server needs: subscriptions that a test feeds."""

    def __init__(self) -> None:
        self.hear: Callable[[Any], Awaitable[None]] | None = None
        self.listening = True
        self.is_closed = False

    async def subscribe(
        self, *_: object, cb: Callable[[Any], Awaitable[None]], **__: object
    ) -> Any:
        self.hear = cb
        return self

    async def unsubscribe(self) -> None:
        self.listening = False


async def asked(answer: Callable[[str, Message], Awaitable[Message]]) -> tuple[Server, Question]:
    """A server that has just been asked one question."""
    connection, question = Connection(), Question()
    server = Server(connection, "queue")  # type: ignore[arg-type]
    await server.serve(CYCLES, answer)
    assert connection.hear is not None
    await connection.hear(question)
    return server, question


async def test_a_question_that_is_being_answered_gets_its_answer_before_the_stop() -> None:
    async def answer(_caller: str, _message: Message) -> Message:
        await asyncio.sleep(0.01)
        return CyclesPage()

    server, question = await asked(answer)
    await server.stop()

    assert question.answers == [encode(CyclesPage())]


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

    server, question = await asked(answer)
    await asyncio.wait_for(server.stop(), 2)

    await asyncio.wait_for(cancelled.wait(), 2)
    assert question.answers == []
