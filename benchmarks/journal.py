"""What a claim and a record cost: `python -m benchmarks.journal`.

The shipped orchestrator in a process of its own on the embedded servers (fsync and
synchronous_commit on); the client is the shipped service side. A record holds one finished call
whose reply is 1 kB or 20 kB; it is answered after its commit. Medians of all calls of all rounds.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from nats.aio.client import Client
from pydantic import SecretStr

from benchmarks.contenders.deskbus_core import COMMANDS as PLAIN
from benchmarks.servers import BenchServers, running_servers
from contracts.cycle import CycleRequest, RequestAnswer
from contracts.operation import CallKind, Claim, JournalEntry, Record
from contracts.subjects.table import REQUESTS
from contracts.types import Usage
from libs.bus.codec import decode, encode
from libs.bus.connection import connect
from libs.bus.operation import Orchestrator
from libs.postgres.migrate import migrate
from libs.postgres.pool import OWNER_ROLE, dsn_for
from libs.runtime import ids
from libs.runtime.loop import run
from libs.runtime.model_settings import NO_RATE, EndpointSettings
from libs.runtime.settings import Settings
from libs.telemetry.logging import configure_logging
from services.orchestrator import app as orchestrator
from services.orchestrator.machine.workflow import State, Step, Workflow
from services.provisioner import app as provisioner

ROW: Final = replace(PLAIN[0], what="journal", claimed=True)
WORKFLOW: Final = Workflow("journal", 1, (State("state1", (Step(ROW),)),))
COMMANDS: Final = (*PLAIN, ROW)
SIZES_BYTES: Final = (1_000, 20_000)
RECORDS: Final = 200
IN_FLIGHT: Final = 16


def settings_of(servers: BenchServers) -> Settings:
    """Where the servers are, and whose keys to use."""
    return Settings(
        nats_url=servers.nats_url,
        postgres_dsn=SecretStr(servers.postgres_dsn),
        secrets_dir=servers.nkey_seed_path.parent,
        resend_after_s=60,
        providers={name: EndpointSettings(rate=NO_RATE) for name in ("claude", "openai", "vllm")},
    )


async def measure(rounds: int) -> dict[str, Any]:
    """Claims and records, one after the other and 16 at once."""
    async with desk_running() as servers, AsyncExitStack() as stack:
        settings = settings_of(servers)
        user = await connect(settings.nats_address, "user", settings.secrets_path)
        bench = await connect(settings.nats_address, "bench", settings.secrets_path)
        stack.push_async_callback(user.close)
        stack.push_async_callback(bench.close)
        desk = Orchestrator(bench, "bench", 10.0)
        await _claim(user, desk)
        found: dict[str, list[float]] = {"claim": []}
        for _ in range(rounds):
            found["claim"] += [await _claim_s(user, desk) for _ in range(50)]
            for size in SIZES_BYTES:
                alone, busy = await _records(user, desk, size)
                found.setdefault(f"record {size // 1000} kB, alone", []).extend(alone)
                found.setdefault(f"record {size // 1000} kB, {IN_FLIGHT} at once", []).append(busy)
        return {name: round(statistics.median(each) * 1e3, 3) for name, each in found.items()}


async def _records(user: Client, desk: Orchestrator, size: int) -> tuple[list[float], float]:
    op_id, epoch = await _claim(user, desk)
    alone = []
    for index in range(RECORDS):
        started = time.perf_counter()
        await desk.record(_record(op_id, epoch, index, size))
        alone.append(time.perf_counter() - started)
    claims = [await _claim(user, desk) for _ in range(IN_FLIGHT)]

    async def lane(op_id: uuid.UUID, epoch: int) -> None:
        for index in range(RECORDS // 4):
            await desk.record(_record(op_id, epoch, index, size))

    started = time.perf_counter()
    await asyncio.gather(*(lane(*claim) for claim in claims))
    calls = IN_FLIGHT * (RECORDS // 4)
    return alone, (time.perf_counter() - started) / calls


def _record(op_id: uuid.UUID, epoch: int, index: int, size: int) -> Record:
    entry = JournalEntry(
        index=index,
        kind=CallKind.TOOL,
        name="get_stock_price",
        request_sha256="0" * 64,
        request={"ticker": "AAPL"},
        reply="x" * size,
        usage=Usage(),
    )
    return Record(op_id=op_id, epoch=epoch, entries=(entry,))


async def _claim_s(user: Client, desk: Orchestrator) -> float:
    _, op_id = await requested(user)
    started = time.perf_counter()
    await desk.claim(Claim(op_id=op_id, instance="bench"))
    return time.perf_counter() - started


async def _claim(user: Client, desk: Orchestrator) -> tuple[uuid.UUID, int]:
    _, op_id = await requested(user)
    answer = await desk.claim(Claim(op_id=op_id, instance="bench"))
    if answer.outcome != "granted":
        raise RuntimeError(answer.outcome)
    return op_id, answer.epoch


async def requested(user: Client) -> tuple[uuid.UUID, uuid.UUID]:
    """A new cycle, and its one operation, which waits to be claimed."""
    request = CycleRequest.model_validate(
        {"idempotency_key": uuid.uuid4().hex, "kind": "journal", "as_of": "2012-06-29"}
    )
    reply = await user.request(REQUESTS[0].by("user"), encode(request), timeout=10)
    answer = decode(RequestAnswer, reply.data)
    if answer.cycle_id is None:
        raise RuntimeError(answer.message)
    return answer.cycle_id, ids.operation_id(answer.cycle_id, "rules", "state1", ROW.what, 1)


@asynccontextmanager
async def desk_running() -> AsyncIterator[BenchServers]:
    """The servers, and the orchestrator as a process on them."""
    async with running_servers(COMMANDS) as servers:
        settings = settings_of(servers)
        await migrate(dsn_for(settings.postgres_address, OWNER_ROLE, settings.secrets_path))
        where = (servers.nats_url, servers.postgres_dsn, str(servers.nkey_seed_path))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.journal", "--serve", *where),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            if process.stdout is None or await process.stdout.readline() != b"ready\n":
                raise RuntimeError("the orchestrator did not start")
            yield servers
        finally:
            process.terminate()
            await process.wait()


async def _serve(given: Sequence[str]) -> None:
    nats_url, dsn, seed = given
    settings = settings_of(BenchServers(nats_url, Path(seed), dsn))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(provisioner.running(settings, COMMANDS))
        await stack.enter_async_context(orchestrator.running(settings, (WORKFLOW,)))
        print("ready", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Print the table, or one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", nargs=3)
    arguments = parser.parse_args()
    configure_logging("error")
    if arguments.serve:
        run(_serve(arguments.serve))
        return
    found = run(measure(arguments.rounds))
    if arguments.json:
        print(json.dumps(found))
        return
    print("| call | ms, median |\n| --- | ---: |")
    for name, value in found.items():
        print(f"| {name} | {value:.2f} |")


if __name__ == "__main__":
    main()
