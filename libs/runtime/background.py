"""Tasks that run beside a block and end with it, and how they wait. One that fails is noticed."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

CANCEL_EVERY_S = 0.5


class Background:
    """Runs coroutines while its `async with` block lasts.

    `failed` returns (by raising) as soon as one of them ends: none of them is meant to.
    """

    def __init__(self, *coroutines: Coroutine[Any, Any, None]) -> None:
        self._coroutines = coroutines
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(coroutine) for coroutine in self._coroutines]
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        # A cancellation that meets a connection just being lost may come out as that loss, and a
        # task that tries again after a loss goes on: so it is told again until it has ended.
        running = set(self._tasks)
        while running:
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=CANCEL_EVERY_S)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def failed(self) -> None:
        """Wait until a task ends, and raise what ended it."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        raise RuntimeError("a background task ended that should not")


async def event_within(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for the event, at most so long; whether it came."""
    # Not `wait_for`: up to Python 3.11 it may swallow a cancellation.
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            return await event.wait()
    return False
