"""The benchmarks' servers and contender still start: both are run by hand, seldom."""

import asyncio

from benchmarks.contenders.deskbus_core import open_deskbus
from benchmarks.contenders.floors import jetstream, request
from benchmarks.contenders.protocol import Options
from benchmarks.servers import BenchServers, running_servers

RUN_TIME_MAX_S = 60.0


def options(servers: BenchServers) -> Options:
    """Of a contender that is driven from here."""
    return Options(
        nats_url=servers.nats_url,
        nkey_seed=str(servers.nkey_seed_path),
        postgres_dsn=servers.postgres_dsn,
        cycles=1,
        in_flight=1,
        alone=1,
        warmup=0,
        workers=1,
        mode="two",
    )


async def test_the_floors_and_a_cycle_of_the_desk_run_on_the_shared_servers() -> None:
    async with asyncio.timeout(RUN_TIME_MAX_S), running_servers() as servers:
        for floor in (jetstream, request):
            async with floor(servers.nats_url, str(servers.nkey_seed_path)) as operation:
                await operation()
        async with open_deskbus(options(servers), 0) as run_cycle:
            await run_cycle()
