"""A stream is outside the limits of requests once it has begun, and not before."""

import asyncio
from contextlib import nullcontext

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from libs.runtime.http_address import HttpAddress
from libs.web import guard
from libs.web.guard import Guard
from libs.web.stream import EventStream

LIMIT_S = 0.05
SCOPE: Scope = {
    "type": "http",
    "method": "GET",
    "path": "/",
    "headers": [(b"host", b"localhost")],
    "asgi": {"spec_version": "2.3"},
}


class Caller:
    """One request, and what came of it."""

    def __init__(self) -> None:
        self.said: list[Message] = []
        self.began = asyncio.Event()
        self._asked = False

    async def receive(self) -> Message:
        if self._asked:
            await asyncio.Event().wait()  # until the stream ends
        self._asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: Message) -> None:
        self.said.append(message)
        self.began.set()

    @property
    def status(self) -> int:
        return int(self.said[0]["status"])


def guarded(app: ASGIApp) -> Guard:
    return Guard(app, HttpAddress("127.0.0.1", 8000, None), LIMIT_S)


async def test_a_stream_may_last_longer_than_a_request_may() -> None:
    async def frames():  # type: ignore[no-untyped-def]
        yield b"data: 1\n\n"
        await asyncio.sleep(LIMIT_S * 3)
        yield b"data: 2\n\n"

    caller = Caller()
    await guarded(EventStream(frames(), nullcontext()))(SCOPE, caller.receive, caller.send)
    assert [each.get("body", b"") for each in caller.said[1:]] == [
        b"data: 1\n\n",
        b"data: 2\n\n",
        b"",
    ]


async def test_what_is_no_stream_may_not_and_a_stream_must_begin_in_time() -> None:
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(LIMIT_S * 10)

    caller = Caller()
    await guarded(slow)(SCOPE, caller.receive, caller.send)
    assert caller.status == 503


async def test_streams_take_no_place_of_requests() -> None:
    go = asyncio.Event()

    async def frames():  # type: ignore[no-untyped-def]
        yield b":\n\n"
        await go.wait()

    def app(scope: Scope) -> ASGIApp:
        return (
            EventStream(frames(), nullcontext()) if scope["path"] == "/s" else PlainTextResponse()
        )

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope)(scope, receive, send)

    under_test = Guard(answer, HttpAddress("127.0.0.1", 8000, None))
    streams, tasks = [Caller() for _ in range(guard.IN_FLIGHT_MAX + 1)], []
    for each in streams:
        asked = under_test({**SCOPE, "path": "/s"}, each.receive, each.send)
        tasks.append(asyncio.create_task(asked))
        await each.began.wait()
    caller = Caller()
    await under_test(SCOPE, caller.receive, caller.send)
    assert {each.status for each in (*streams, caller)} == {200}
    go.set()
    await asyncio.gather(*tasks)


async def test_requests_that_are_no_streams_are_bounded() -> None:
    go = asyncio.Event()

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        await go.wait()
        await PlainTextResponse()(scope, receive, send)

    under_test = Guard(waits, HttpAddress("127.0.0.1", 8000, None))
    callers = [Caller() for _ in range(guard.IN_FLIGHT_MAX)]
    tasks = [asyncio.create_task(under_test(SCOPE, c.receive, c.send)) for c in callers]
    await asyncio.sleep(0)
    one_more = Caller()
    await under_test(SCOPE, one_more.receive, one_more.send)
    assert one_more.status == 503
    go.set()
    await asyncio.gather(*tasks)
    assert {each.status for each in callers} == {200}
