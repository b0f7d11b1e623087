"""How long a strategy cycle takes, and how soon a cancel ends it: `python -m benchmarks.strategy`.

One desk as `deskbus up` starts it, in a process of its own, with the bundled prices.

- cancel: from the moment a cancel is sent until the process that trains has ended (its pidfd says
  so), while it fits a network that would take hours; asked at different moments of the fit;
- cycle: from a request to the cycle's end, of designs by `rules` and of the committed example.

Linux only.
"""

import argparse
import asyncio
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import psutil

from benchmarks.report import spread, table
from contracts.audit import EventType
from contracts.cycle import STRATEGY, CancelCycle, CycleRequest, CycleStatus
from contracts.strategy import MlpSpec, StrategySpec, StrategyWish
from contracts.subjects.cycles import CANCEL_CYCLE, REQUEST_CYCLE
from libs.bus.client import Client, open_client
from libs.report.strategies.files import spec_of

EXAMPLE: Final = Path("examples/strategies/trend-and-calm.yaml")
COMPUTE: Final = "services.strategy_training.compute"
ENDLESS: Final = MlpSpec(hidden=(256, 256, 256), epochs=1_000)
CANCELS_DEFAULT: Final = 50
CYCLES_DEFAULT: Final = 10
CANCEL_MAX_MS: Final = 500.0
CYCLE_MAX_S: Final = 60.0
EXAMPLES_MAX: Final = 3
PATIENCE_S: Final = 120.0
POLL_S: Final = 0.02
MOMENTS: Final = 10
"""Cancels are asked this many tenths of a second into the fit, in turn."""
Ended = tuple[float, CycleStatus]
"""How long a cycle took, in seconds, and how it ended."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cancels", type=int, default=CANCELS_DEFAULT)
    parser.add_argument("--cycles", type=int, default=CYCLES_DEFAULT)
    arguments = parser.parse_args()
    example = spec_of(EXAMPLE.read_text(encoding="utf-8"))
    with desk() as (ready, pid):
        print(asyncio.run(measured(ready, pid, example, arguments.cancels, arguments.cycles)))


async def measured(
    ready: Mapping[str, str], pid: int, example: StrategySpec, cancels: int, cycles: int
) -> str:
    """The tables, as Markdown."""
    async with open_client(ready["nats_url"], Path(ready["secrets_dir"])) as client:
        ended_ms = [await cancelled(client, pid, example, number) for number in range(cancels)]
        own = [await cycle(client, None) for _ in range(cycles)]
        given = [await cycle(client, example) for _ in range(min(cycles, EXAMPLES_MAX))]
    parts = (_cancels(sorted(ended_ms)), _cycles(own, given))
    return "\n\n".join(filter(None, parts))


def _cycles(own: Sequence[Ended], given: Sequence[Ended]) -> str:
    whole = [each for each in own if each[1] is CycleStatus.COMPLETED]
    told = (
        ("designs by rules, to their end", own),
        ("of these, through both gates", whole),
        ("the committed example", given),
    )
    rows = [
        (name, str(len(found)), spread(taken for taken, _ in found))
        for name, found in told
        if found
    ]
    head = ("cycle", "runs", f"seconds (asked: under {CYCLE_MAX_S:g})")
    return table(head, rows) if rows else ""


def _cancels(found: Sequence[float]) -> str:
    if not found:
        return ""
    p99 = found[math.ceil(0.99 * len(found)) - 1]
    head = ("cancel to the end of the training process", "p50 ms", "p99 ms", "longest ms")
    figures = (statistics.median(found), p99, found[-1])
    row = (f"{len(found)} cancels", *(f"{each:.0f}" for each in figures))
    return f"{table(head, [row])}\n\nasked: p99 under {CANCEL_MAX_MS:g} ms"


@contextmanager
def desk() -> Iterator[tuple[Mapping[str, str], int]]:
    """A desk of its own: what it says once it is ready, and its pid."""
    with tempfile.TemporaryDirectory(prefix="strategy-") as folder:
        Path(folder).chmod(0o755)  # as root the servers run as another user
        environment = {
            **os.environ,
            "DESKBUS_DATA_DIR": f"{folder}/data",
            "DESKBUS_STRATEGIES_DIR": f"{folder}/strategies",
            "DESKBUS_LOG_LEVEL": "error",
        }
        argv = [sys.executable, "-m", "services.cli", "up", "--json", "--port", "0"]
        process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE)
        try:
            if process.stdout is None:
                raise RuntimeError("the desk was started without a pipe")
            yield json.loads(process.stdout.readline()), process.pid
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


async def cancelled(client: Client, pid: int, example: StrategySpec, number: int) -> float:
    """Milliseconds from a cancel to the end of the process that trains."""
    spec = example.model_copy(update={"name": f"endless-{number}", "model": ENDLESS})
    async with client.events(pattern=f"desk.v1.evt.*.{EventType.CYCLE_ENDED}.*") as events:
        cycle_id = await _asked(client, spec)
        handle = os.pidfd_open(await _computing(pid))
        try:
            await asyncio.sleep((number % MOMENTS) / MOMENTS)
            ended: asyncio.Future[float] = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().add_reader(handle, _set, ended)
            since = time.perf_counter()
            await client.ask(CANCEL_CYCLE, CancelCycle(cycle_id=cycle_id))
            at = await asyncio.wait_for(ended, PATIENCE_S)
        finally:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)
        await _end(events, cycle_id)
    taken_ms = (at - since) * 1000
    print(f"cancel {number + 1}: {taken_ms:.0f} ms", file=sys.stderr)
    return taken_ms


def _set(ended: "asyncio.Future[float]") -> None:
    if not ended.done():
        ended.set_result(time.perf_counter())


async def cycle(client: Client, spec: StrategySpec | None) -> Ended:
    """Seconds from a request to the cycle's end, and how it ended."""
    async with client.events(pattern=f"desk.v1.evt.*.{EventType.CYCLE_ENDED}.*") as events:
        since = time.perf_counter()
        cycle_id = await _asked(client, spec)
        status = await _end(events, cycle_id)
        taken_s = time.perf_counter() - since
    print(f"cycle {status} in {taken_s:.1f} s", file=sys.stderr)
    return taken_s, status


async def _asked(client: Client, spec: StrategySpec | None) -> UUID:
    request = CycleRequest(
        idempotency_key=uuid4().hex,
        kind=STRATEGY,
        timeout_s=600,
        strategy=StrategyWish(spec=spec),
    )
    answer = await client.ask(REQUEST_CYCLE, request)
    if answer.cycle_id is None or answer.outcome != "accepted":
        raise RuntimeError(f"the request was refused: {answer.message}")
    return answer.cycle_id


async def _end(events: AsyncIterator[Any], cycle_id: UUID) -> CycleStatus:
    async for event in events:
        if event.cycle_id == cycle_id:
            return CycleStatus(event.data["status"])
    raise RuntimeError("the events ended before the cycle did")


async def _computing(pid: int) -> int:
    """The process that trains, once it has begun to learn (it has read its request then)."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for child in psutil.Process(pid).children(recursive=True):
            if COMPUTE in child.cmdline() and child.cpu_times().user > 1:
                return int(child.pid)
        await asyncio.sleep(POLL_S)
    raise TimeoutError(f"{COMPUTE} never ran")


if __name__ == "__main__":
    main()
