"""Something held open in a thread, for code without an event loop of its own: a test session."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def held_in_thread(open_it: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Hold embedded servers, or a whole desk, in a thread with its own loop while the block runs.

        with held_in_thread(lambda: embedded_servers(data_dir, permissions, roles)) as servers:
            ...

    `servers.pid` and `await servers.replaced(...)` work from any thread. Errors of the start are
    raised here; errors of the stop too.
    """
    started: Future[tuple[T, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    ended: Future[None] = Future()

    async def hold() -> None:
        stop = asyncio.Event()
        async with open_it() as opened:
            started.set_result((opened, asyncio.get_running_loop(), stop))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(hold())
        except BaseException as error:  # noqa: BLE001 - carried over to the waiting thread
            (ended if started.done() else started).set_exception(error)
        else:
            ended.set_result(None)

    thread = threading.Thread(target=run, name="held-open")
    thread.start()
    try:
        opened, loop, stop = started.result()
    except BaseException:
        thread.join()
        raise
    try:
        yield opened
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        ended.result()
