"""Who is answered next; a stream is outside the limits of requests once it has begun."""

import asyncio
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TypeAlias

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from libs.runtime.http_address import HttpAddress, HttpRefused
from libs.web import concurrency_limit, guard
from libs.web.guard import Guard
from libs.web.problem import HttpProblem
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


Asked: TypeAlias = tuple[list[Caller], list[asyncio.Task[None]]]


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


async def test_once_there_is_a_token_a_stream_without_it_ends_before_its_next_frame() -> None:
    token: str | None = None

    async def frames():  # type: ignore[no-untyped-def]
        nonlocal token
        yield b"data: 1\n\n"
        token = "a token of some length"
        yield b"data: 2\n\n"

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await EventStream(frames(), nullcontext())(scope, receive, send)

    address = HttpAddress("127.0.0.1", 8000, None)
    under_test, caller, later = Guard(answer, address, token=lambda: token), Caller(), Caller()
    await under_test(SCOPE, caller.receive, caller.send)
    assert [each.get("body") for each in caller.said[1:]] == [b"data: 1\n\n"]
    await under_test(SCOPE, later.receive, later.send)
    assert later.status == 401


async def test_where_the_token_cannot_be_read_nobody_is_let_in() -> None:
    def unreadable() -> str | None:
        raise HttpRefused("it cannot be read")

    under_test = Guard(PlainTextResponse(), HttpAddress("127.0.0.1", 8000), token=unreadable)
    caller = Caller()
    await under_test(SCOPE, caller.receive, caller.send)
    assert caller.status == 503


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


class Desk:
    """An application whose answers wait for `go`; a door for browsers, too."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.answered: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.goes_first(scope):
            await self.go.wait()
        self.answered.append(f"{scope['method']} {scope['path']}")
        await PlainTextResponse(f"answer {len(self.answered)}")(scope, receive, send)

    def is_open(self, scope: Scope) -> bool:
        return bool(scope["path"] == "/login")

    def goes_first(self, scope: Scope) -> bool:
        return bool(scope["path"] == "/halts")

    def takes_form(self, scope: Scope) -> bool:
        return False

    def knows(self, cookies: str) -> bool:
        return False

    def refusal(self, scope: Scope, refused: HttpProblem) -> ASGIApp:
        return refused.response


def of(path: str, method: str = "GET") -> Scope:
    return {**SCOPE, "path": path, "method": method}


async def asked(under_test: Guard, scopes: Iterable[Scope]) -> Asked:
    """Requests that came one after the other, as far as they get by themselves."""
    callers, tasks = [], []
    for scope in scopes:
        callers.append(Caller())
        answering = under_test(scope, callers[-1].receive, callers[-1].send)
        tasks.append(asyncio.create_task(answering))
        for _ in range(5):
            await asyncio.sleep(0)
    return callers, tasks


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def under_test(desk: Desk) -> Guard:
    return Guard(desk, HttpAddress("127.0.0.1", 8000, None), door=desk)


MORE = guard.IN_FLIGHT_MAX + 4


async def test_requests_that_find_no_seat_wait_in_the_order_in_which_they_came(
    desk: Desk, under_test: Guard
) -> None:
    callers, tasks = await asked(under_test, (of(f"/{number}") for number in range(MORE)))
    desk.go.set()
    await asyncio.gather(*tasks)
    assert {each.status for each in callers} == {200}
    assert desk.answered == [f"GET /{number}" for number in range(MORE)]


async def test_a_request_that_finds_no_seat_in_time_is_told_to_come_again(
    desk: Desk, under_test: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrency_limit, "SEAT_S_MAX", 0.01)
    _, tasks = await asked(under_test, (of(f"/{n}") for n in range(guard.IN_FLIGHT_MAX)))
    one_more = Caller()
    await under_test(of("/more"), one_more.receive, one_more.send)
    assert one_more.status == 503
    desk.go.set()
    await asyncio.gather(*tasks)


async def test_the_kill_switch_waits_behind_nothing_and_changes_not_behind_reads(
    desk: Desk, under_test: Guard
) -> None:
    reads, reading = await asked(under_test, (of(f"/{number}") for number in range(MORE)))
    changes, changing = await asked(
        under_test, (of(f"/{number}", "POST") for number in range(MORE))
    )
    for scope in (of("/halts"), of("/halts", "POST")):
        owner = Caller()
        await under_test(scope, owner.receive, owner.send)
        assert owner.status == 200
    assert not any(each.said for each in (*reads, *changes)), "all others still wait"
    desk.go.set()
    await asyncio.gather(*reading, *changing)


async def test_reads_that_wait_for_the_same_answer_share_it_and_it_is_made_after_all_came(
    desk: Desk, under_test: Guard
) -> None:
    first, first_tasks = await asked(under_test, (of("/0") for _ in range(MORE)))
    others, tasks = await asked(under_test, (of(f"/{n}") for n in range(guard.IN_FLIGHT_MAX)))
    same, same_tasks = await asked(under_test, [of("/0"), of("/1"), of("/0")])
    desk.go.set()
    await asyncio.gather(*first_tasks, *tasks, *same_tasks)
    assert {each.status for each in (*first, *others, *same)} == {200}
    assert desk.answered.count("GET /0") == guard.IN_FLIGHT_MAX + 1
    assert desk.answered.count("GET /1") == 1
    last = {each.said[1]["body"] for each in (*first[guard.IN_FLIGHT_MAX :], same[0], same[2])}
    assert len(last) == 1, "those that waited have one answer"


async def test_a_stream_is_shared_with_no_other_request(under_test: Guard, desk: Desk) -> None:
    async def frames():  # type: ignore[no-untyped-def]
        yield b"data: 1\n\n"

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await desk.go.wait()
        await EventStream(frames(), nullcontext())(scope, receive, send)

    streaming = Guard(answer, HttpAddress("127.0.0.1", 8000, None), door=desk)
    callers, tasks = await asked(streaming, (of("/stream") for _ in range(MORE)))
    desk.go.set()
    await asyncio.gather(*tasks)
    assert {each.said[1]["body"] for each in callers} == {b"data: 1\n\n"}


async def test_a_client_that_leaves_while_it_waits_takes_no_seat(
    desk: Desk, under_test: Guard
) -> None:
    _, tasks = await asked(under_test, (of(f"/{n}") for n in range(guard.IN_FLIGHT_MAX)))
    leaver = Caller()

    states = iter(({"type": "http.request", "body": b""}, {"type": "http.disconnect"}))

    async def receive() -> Message:
        return next(states)

    await under_test(of("/left"), receive, leaver.send)
    desk.go.set()
    await asyncio.gather(*tasks)
    assert leaver.said == []
    assert "GET /left" not in desk.answered
