"""Who is answered next: seats, a pace for strangers, and answers that waiting requests share."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from starlette.types import Message, Receive, Scope

from libs.web.problem import HttpProblem, unavailable

SEAT_S_MAX = 10.0
"""How long a request waits for a seat."""
WAITING_MAX = 512
"""Requests that wait for a seat of one kind."""
STRANGERS_PER_S, STRANGERS_BURST = 50.0, 100.0
"""Answers to requests without the token: a login page with all that it loads at once, and then so
many a second for all strangers together."""
ROUTED = ("endpoint", "path_params", "root_path")
"""What the router has written into the scope of a request."""

Done = TypeVar("Done")


class ClientGone(Exception):
    """The client closed the connection before its answer began."""


class ConcurrencyLimit:
    """So many requests are answered at once; the others wait in the order in which they came."""

    def __init__(self, most: int) -> None:
        self._free = asyncio.Semaphore(most)
        self._waiting = 0
        self._most = most

    @asynccontextmanager
    async def taken(self, receive: Receive) -> AsyncIterator[Callable[[], None]]:
        """A seat while the block runs, or until the function that this yields is called.

        Raises `HttpProblem` where there is none in time, `ClientGone` where `receive` says so
        first.
        """
        if self._free.locked():
            await self._wait(receive)
        else:
            await self._free.acquire()
        is_left = False

        def leave() -> None:
            nonlocal is_left
            if not is_left:
                is_left = True
                self._free.release()

        try:
            yield leave
        finally:
            leave()

    async def _wait(self, receive: Receive) -> None:
        full = unavailable(f"{self._most} requests are being answered; try again later")
        if self._waiting >= WAITING_MAX:
            raise full
        self._waiting += 1
        try:
            async with asyncio.timeout(SEAT_S_MAX):
                await while_there(receive, self._free.acquire())
        except TimeoutError:
            raise full from None
        finally:
            self._waiting -= 1


class RequestPace:
    """Requests that go on one after the other: a burst at once, and then so many a second."""

    def __init__(self) -> None:
        self._left, self._at = STRANGERS_BURST, time.monotonic()
        self._turn = asyncio.Lock()

    async def turn(self) -> None:
        """Wait for this request's turn."""
        async with self._turn:
            self._fill()
            if self._left < 1:
                await asyncio.sleep((1 - self._left) / STRANGERS_PER_S)
                self._fill()
            self._left -= 1

    def _fill(self) -> None:
        now = time.monotonic()
        self._left = min(STRANGERS_BURST, self._left + (now - self._at) * STRANGERS_PER_S)
        self._at = now


class Shared:
    """An answer that is not being made yet, and the requests that will be given it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.followers = 0
        self._made: asyncio.Future[list[Message] | None] = (
            asyncio.get_running_loop().create_future()
        )

    async def of_another(self, scope: Scope) -> list[Message] | None:
        """The answer, for one more request; None where it has to be made for that one alone.
        Raises `HttpProblem` as the first request was refused."""
        self.followers += 1
        answer = await asyncio.shield(self._made)
        scope.update({name: self.scope[name] for name in ROUTED if name in self.scope})
        return answer

    def give(self, answer: list[Message] | None) -> None:
        """Give all that wait the answer."""
        if not self._made.done():
            self._made.set_result(answer)

    def refuse(self, refused: HttpProblem) -> None:
        """Refuse all that wait."""
        if self.followers and not self._made.done():
            self._made.set_exception(refused)


class Waiting:
    """Answers that are not being made yet, by what was asked.

    A request that asks the same as one that still waits for its seat gets that one's answer: it is
    made after both came, so neither is older than its question.
    """

    def __init__(self) -> None:
        self._by_question: dict[Hashable, Shared] = {}

    def find(self, question: Hashable) -> Shared | None:
        """The answer that waits, where there is one."""
        return self._by_question.get(question)

    @contextmanager
    def open(self, question: Hashable, scope: Scope) -> Any:
        """A new one while the block runs; `close` it when it is about to be made."""
        shared = self._by_question[question] = Shared(scope)
        try:
            yield shared
        except HttpProblem as refused:
            shared.refuse(refused)
            raise
        finally:
            self.close(question, shared)
            shared.give(None)

    def close(self, question: Hashable, shared: Shared) -> None:
        """Nobody joins this one any more."""
        if self._by_question.get(question) is shared:
            del self._by_question[question]


async def while_there(receive: Receive, work: Coroutine[Any, Any, Done]) -> Done:
    """Do the work while the client is there. Raises `ClientGone`."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
