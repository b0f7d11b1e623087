"""Floors: what the servers give to a client that does nothing else.

- `jetstream`: publish a 256 byte message to a file stream and wait for its ack;
- `request`: core NATS request and reply of 256 bytes between two connections of this process;
- `commit`: one INSERT of 256 bytes, committed by itself (fsync and synchronous_commit on).

Each one alone (one after the other) and with `--in-flight` at once, a second or two each. Commits
use POOL_SIZE connections: more backends than that only add context switches on few cores.
"""

import argparse
import asyncio
import importlib.metadata
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import nats
import uvloop
from nats.aio.msg import Msg

from benchmarks.contenders.protocol import CYCLES_DEFAULT, IN_FLIGHT_DEFAULT, announce, mark

BODY: Final = b"x" * 256
POOL_SIZE: Final = 32
SPAN_S: Final = 2.0
WARMUP_S: Final = 0.5
STREAM: Final = "FLOOR"

Operation = Callable[[], Awaitable[Any]]


@asynccontextmanager
async def jetstream(nats_url: str, nkey_seed: str) -> AsyncIterator[Operation]:
    """Publish to a file stream with limits retention, as the desk's streams are."""
    client = await nats.connect(nats_url, nkeys_seed=nkey_seed)
    context = client.jetstream(timeout=10)
    await context.add_stream(name=STREAM, subjects=["floor.stream"], max_bytes=256 * 1024**2)
    try:
        yield lambda: context.publish("floor.stream", BODY, stream=STREAM)
    finally:
        await context.delete_stream(STREAM)
        await client.close()


@asynccontextmanager
async def request(nats_url: str, nkey_seed: str) -> AsyncIterator[Operation]:
    """Ask a responder that answers with what it was asked."""
    asker = await nats.connect(nats_url, nkeys_seed=nkey_seed)
    answerer = await nats.connect(nats_url, nkeys_seed=nkey_seed)

    async def answer(message: Msg) -> None:
        await message.respond(message.data)

    await answerer.subscribe("floor.request", cb=answer)
    await answerer.flush()
    try:
        yield lambda: asker.request("floor.request", BODY, timeout=10)
    finally:
        await asker.close()
        await answerer.close()


@asynccontextmanager
async def commit(postgres_dsn: str) -> AsyncIterator[Operation]:
    """Insert one row a transaction."""
    async with asyncpg.create_pool(postgres_dsn, min_size=POOL_SIZE, max_size=POOL_SIZE) as pool:
        await pool.execute(
            "CREATE TABLE floor (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea)"
        )
        yield lambda: pool.execute("INSERT INTO floor (body) VALUES ($1)", BODY)


async def per_second(operation: Operation, lanes: int, span_s: float) -> tuple[float, float]:
    """Operations a second with `lanes` at once, and the median one's milliseconds."""
    latencies_s: list[float] = []
    started = time.perf_counter()

    async def lane() -> None:
        now = time.perf_counter()
        while now - started < span_s:
            await operation()
            before, now = now, time.perf_counter()
            latencies_s.append(now - before)

    async with asyncio.TaskGroup() as group:
        for _ in range(lanes):
            group.create_task(lane())
    seconds = time.perf_counter() - started
    return len(latencies_s) / seconds, statistics.median(latencies_s) * 1e3


async def measure(options: argparse.Namespace) -> dict[str, float]:
    """Every floor, alone and with `options.in_flight` at once."""
    floors = {
        "jetstream": jetstream(options.nats_url, options.nkey_seed),
        "request": request(options.nats_url, options.nkey_seed),
        "commit": commit(options.postgres_dsn),
    }
    measured: dict[str, float] = {}
    for name, opening in floors.items():
        async with opening as operation:
            for load, lanes in (("alone", 1), ("loaded", options.in_flight)):
                await per_second(operation, lanes, WARMUP_S)
                mark(begin=f"{name}_{load}")
                rate, p50_ms = await per_second(operation, lanes, SPAN_S)
                mark(end=f"{name}_{load}")
                measured |= {f"{name}_{load}_per_s": rate, f"{name}_{load}_p50_ms": p50_ms}
    return measured


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nats-url", required=True)
    parser.add_argument("--nkey-seed", default=None)
    parser.add_argument("--postgres-dsn", required=True)
    parser.add_argument("--cycles", type=int, default=CYCLES_DEFAULT, help="not used here")
    parser.add_argument("--in-flight", type=int, default=IN_FLIGHT_DEFAULT)
    options = parser.parse_args()
    result = uvloop.run(measure(options))
    versions = {name: importlib.metadata.version(name) for name in ("nats-py", "asyncpg")}
    announce(result=result | {"in_flight": options.in_flight, "versions": versions})


if __name__ == "__main__":
    main()
