"""How a contender is driven, and what it prints; the same for each of them.

A contender is an async context manager `open_contender(options, index)` that yields a function
which runs one whole cycle of seven instant steps and returns when the last one is durable. It is
opened in `workers` processes; then, all of them together:

1. warm-up: `warmup` cycles, not measured;
2. alone: the first worker runs `alone` cycles one after the other;
3. loaded: all workers share `cycles` cycles, `in_flight` of them at any moment.

Standard output carries JSON lines: `{"begin": <span>}` and `{"end": <span>}` around the spans
`alone` and `loaded`, and a last line `{"result": {...}}`. At each mark the contender stands still
until a line comes in on standard input (or its end, or a terminal is there instead), so that the
reader can take the CPU time of all processes while none of them starts or ends.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from typing import Any, Final

import uvloop

STEPS: Final = 7
PHASE_TIME_MAX_S: Final = 900.0
CLOSING_TIME_MAX_S: Final = 30.0
CYCLES_DEFAULT: Final = 1000
IN_FLIGHT_DEFAULT: Final = 64
ALONE_DEFAULT: Final = 100
WARMUP_DEFAULT: Final = 200


@dataclass(frozen=True)
class Options:
    """What a contender is told: where the servers are and how much to run."""

    nats_url: str
    nkey_seed: str
    postgres_dsn: str
    cycles: int
    in_flight: int
    alone: int
    warmup: int
    workers: int
    mode: str


@dataclass(frozen=True)
class Usage:
    """What one worker saw: latencies in seconds, and the CPU time of its own process tree."""

    alone_s: list[float]
    loaded_s: list[float]
    cpu_s: float


@dataclass(frozen=True)
class Shared:
    """What the worker processes of one contender share."""

    barrier: Barrier
    warmup: "Synchronized[int]"
    loaded: "Synchronized[int]"
    usages: "Queue[Usage]"


RunCycle = Callable[[], Awaitable[None]]
OpenContender = Callable[[Options, int], AbstractAsyncContextManager[RunCycle]]


def announce(**line: Any) -> None:
    """Print one protocol line at once."""
    print(json.dumps(line), flush=True)


def mark(**span: str) -> None:
    """Print the beginning or the end of a span, and wait until it was taken note of."""
    announce(**span)
    if not sys.stdin.isatty():
        sys.stdin.readline()


def parse(argv: list[str] | None = None, *, workers: int = 1, modes: tuple[str, ...]) -> Options:
    """Read the command line that all contenders share; the first of `modes` is the default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nats-url", default="")
    parser.add_argument("--nkey-seed", default="", help="file with the seed for NATS, if it asks")
    parser.add_argument("--postgres-dsn", required=True)
    parser.add_argument("--cycles", type=int, default=CYCLES_DEFAULT)
    parser.add_argument("--in-flight", type=int, default=IN_FLIGHT_DEFAULT)
    parser.add_argument("--alone", type=int, default=ALONE_DEFAULT)
    parser.add_argument("--warmup", type=int, default=WARMUP_DEFAULT)
    parser.add_argument("--workers", type=int, default=workers)
    parser.add_argument("--mode", choices=modes, default=modes[0])
    return Options(**vars(parser.parse_args(argv)))


def run(open_contender: OpenContender, options: Options, **about: Any) -> None:
    """Drive one contender through its phases and print the result; exits 1 if a worker fails."""
    context = multiprocessing.get_context("spawn")
    shared = Shared(
        barrier=context.Barrier(options.workers + 1),
        warmup=context.Value("q", options.warmup),
        loaded=context.Value("q", options.cycles),
        usages=context.Queue(),
    )
    workers = [
        context.Process(target=_worker, args=(open_contender, options, index, shared))
        for index in range(options.workers)
    ]
    for worker in workers:
        worker.start()
    try:
        seconds = _conduct(shared.barrier)
        usages = [shared.usages.get(timeout=PHASE_TIME_MAX_S) for _ in workers]
    except threading.BrokenBarrierError:
        sys.exit("a worker failed or took too long; its own error stands above")
    finally:
        for worker in workers:
            worker.join(timeout=CLOSING_TIME_MAX_S)
            worker.kill()
    announce(result=_result(options, seconds, usages) | about)


def _conduct(barrier: Barrier) -> float:
    """Mark the phases; returns the wall time of the loaded one."""
    for _ in ("the first worker is open", "all are open", "all are warm"):
        barrier.wait(PHASE_TIME_MAX_S)
    mark(begin="alone")
    for _ in ("go", "the first worker is done"):
        barrier.wait(PHASE_TIME_MAX_S)
    mark(end="alone")
    mark(begin="loaded")
    barrier.wait(PHASE_TIME_MAX_S)
    started = time.perf_counter()
    barrier.wait(PHASE_TIME_MAX_S)
    seconds = time.perf_counter() - started
    mark(end="loaded")
    barrier.wait(PHASE_TIME_MAX_S)
    return seconds


def _worker(open_contender: OpenContender, options: Options, index: int, shared: Shared) -> None:
    try:
        uvloop.run(_work(open_contender, options, index, shared))
    except BaseException:
        shared.barrier.abort()
        raise


async def _work(
    open_contender: OpenContender, options: Options, index: int, shared: Shared
) -> None:
    async def meet() -> None:
        await asyncio.to_thread(shared.barrier.wait, PHASE_TIME_MAX_S)

    lanes = _share(options.in_flight, options.workers, index)
    if index:
        await meet()  # the first worker makes the tables
    async with open_contender(options, index) as cycle:
        if not index:
            await meet()
        await meet()
        await _run(cycle, lanes, _tickets(shared.warmup))
        await meet()
        await meet()
        alone_s = [] if index else await _run(cycle, 1, iter(range(options.alone)))
        await meet()
        await meet()
        before_s = _cpu_s()
        loaded_s = await _run(cycle, lanes, _tickets(shared.loaded))
        shared.usages.put(Usage(alone_s, loaded_s, _cpu_s() - before_s))
        await meet()
        await meet()


async def _run(cycle: RunCycle, lanes: int, tickets: Iterator[int]) -> list[float]:
    """Run one cycle a ticket, at most `lanes` at once; returns each one's seconds."""
    latencies_s: list[float] = []

    async def lane() -> None:
        for _ in tickets:
            started = time.perf_counter()
            await cycle()
            latencies_s.append(time.perf_counter() - started)

    async with asyncio.TaskGroup() as group:
        for _ in range(lanes):
            group.create_task(lane())
    return latencies_s


def _tickets(left: "Synchronized[int]") -> Iterator[int]:
    """Count down a number that several processes share."""
    while True:
        with left.get_lock():
            if left.value <= 0:
                return
            left.value -= 1
        yield left.value


def _share(total: int, parts: int, index: int) -> int:
    return len(range(index, total, parts))


def _cpu_s() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _result(options: Options, seconds: float, usages: list[Usage]) -> dict[str, Any]:
    alone_s = [latency for usage in usages for latency in usage.alone_s]
    loaded_s = [latency for usage in usages for latency in usage.loaded_s]
    return {
        "cycles": len(loaded_s),
        "seconds": seconds,
        "cpu_s": sum(usage.cpu_s for usage in usages),
        "p50_alone_ms": statistics.median(alone_s) * 1e3,
        "p50_loaded_ms": statistics.median(loaded_s) * 1e3,
        "alone": len(alone_s),
        "in_flight": options.in_flight,
        "workers": options.workers,
        "mode": options.mode,
        # All that this contender ran on its database, for the transactions a cycle.
        "cycles_in_all": options.warmup + len(alone_s) + len(loaded_s),
    }
