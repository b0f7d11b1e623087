"""CPU work in a process of its own: what it tells, and that it ends when it should."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from libs.runtime.worker_process import (
    NICENESS,
    CannotCompute,
    ComputingBroke,
    computed,
    request_of,
)

SLOW_SUMS = "tests.fakes.slow_sums"
CANCEL_S = 0.5
"""The promise."""
CANCELS = 10
NICENESS_MAX = 19
"""The lowest priority that a process can have."""


async def unheard(_part: float, _step: str) -> None:
    """Nobody listens."""


def asking(what: str, body: bytes = b"") -> bytes:
    return request_of({"do": what}, body)


async def begun() -> tuple["asyncio.Task[object]", int]:
    """Work that never ends, and its process."""
    pid: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def told(_part: float, step: str) -> None:
        pid.set_result(int(step))

    work = asyncio.ensure_future(computed(SLOW_SUMS, asking("never end"), told))
    return work, await pid


async def test_the_answer_comes_from_another_process() -> None:
    answer = await computed(SLOW_SUMS, asking("add", bytes([1, 2, 3])), unheard)
    assert answer["sum"] == 6
    assert answer["pid"] != os.getpid()


async def test_computing_gives_way_to_services() -> None:
    work, pid = await begun()
    assert psutil.Process(pid).nice() == min(psutil.Process().nice() + NICENESS, NICENESS_MAX)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_ctrl_c_at_the_terminal_is_for_the_desk_alone() -> None:
    work, pid = await begun()
    assert os.getpgid(pid) == pid
    assert os.getsid(pid) == os.getsid(0), "niceness counts within a session"
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_progress_is_told_while_it_works() -> None:
    heard: list[tuple[float, str]] = []

    async def told(part: float, step: str) -> None:
        heard.append((part, step))

    await computed(SLOW_SUMS, asking("add", bytes([7, 8])), told)
    assert heard == [(0.0, "number 7"), (50.0, "number 8")]


async def test_what_cannot_be_done_is_an_error_with_its_field() -> None:
    with pytest.raises(CannotCompute, match="too early") as refused:
        await computed(SLOW_SUMS, asking("refuse"), unheard)
    assert refused.value.field == "train.first"


async def test_a_process_that_breaks_is_told_with_its_last_words() -> None:
    with pytest.raises(ComputingBroke, match="out of paper"):
        await computed(SLOW_SUMS, asking("break"), unheard)


async def test_a_process_that_is_killed_is_an_error_and_not_an_answer() -> None:
    work, pid = await begun()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ComputingBroke, match="-9"):
        await work


async def test_a_cancel_ends_the_process_within_half_a_second() -> None:
    took = []
    for _ in range(CANCELS):
        work, pid = await begun()
        since = time.monotonic()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        took.append(time.monotonic() - since)
        assert not psutil.pid_exists(pid)
    assert max(took) < CANCEL_S, took


async def test_a_listener_that_fails_ends_the_process_too() -> None:
    pids = []

    async def told(_part: float, step: str) -> None:
        pids.append(int(step))
        raise ConnectionError("nobody hears it")

    with pytest.raises(ConnectionError):
        await computed(SLOW_SUMS, asking("never end"), told)
    assert not psutil.pid_exists(pids[0])


def test_the_process_dies_with_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, env=dict(os.environ), text=True
    )
    with parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    gone, alive = psutil.wait_procs([child], timeout=10)
    assert (len(gone), alive) == (1, [])


PARENT = """
import asyncio
from libs.runtime.worker_process import computed, request_of

async def told(part, step):
    print(step, flush=True)

asyncio.run(computed("tests.fakes.slow_sums", request_of({"do": "never end"}, b""), told))
"""
