"""DBOS: a workflow of seven instant steps, each one a row that is committed before the next starts.

Settings: system database on the given Postgres with DBOS's own pool (20 connections), listen/notify
as by default; no Conductor key, no OTLP export, logs at ERROR. The workflow gets and returns one
integer, so that its serialisation costs next to nothing.

`--mode async` awaits `async def` workflows and steps; `--mode sync` calls plain ones in threads.
"""

import asyncio
import importlib.metadata
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from dbos import DBOS, DBOSConfig

from benchmarks.contenders import protocol
from benchmarks.contenders.protocol import STEPS, Options, RunCycle


@DBOS.step()
async def add_one_async(value: int) -> int:
    return value + 1


@DBOS.workflow()
async def seven_steps_async(value: int) -> int:
    for _ in range(STEPS):
        value = await add_one_async(value)
    return value


@DBOS.step()
def add_one(value: int) -> int:
    return value + 1


@DBOS.workflow()
def seven_steps(value: int) -> int:
    for _ in range(STEPS):
        value = add_one(value)
    return value


async def cycle_async() -> None:
    if await seven_steps_async(0) != STEPS:
        raise AssertionError("the workflow lost a step")


async def cycle_sync() -> None:
    if await asyncio.to_thread(seven_steps, 0) != STEPS:
        raise AssertionError("the workflow lost a step")


@asynccontextmanager
async def open_dbos(options: Options, index: int) -> AsyncIterator[RunCycle]:
    """Launch DBOS in this process, as an executor of its own."""
    config: DBOSConfig = {
        "name": "benchmark",
        "system_database_url": options.postgres_dsn,
        "executor_id": f"worker-{index}",
        "application_version": "1",
        "enable_otlp": False,
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()
    threads = ThreadPoolExecutor(options.in_flight, thread_name_prefix="cycle")
    if options.mode == "sync":
        asyncio.get_running_loop().set_default_executor(threads)
    try:
        yield cycle_sync if options.mode == "sync" else cycle_async
    finally:
        DBOS.destroy(workflow_completion_timeout_sec=0)


if __name__ == "__main__":
    protocol.run(
        open_dbos,
        protocol.parse(modes=("async", "sync")),
        versions={"dbos": importlib.metadata.version("dbos")},
    )
