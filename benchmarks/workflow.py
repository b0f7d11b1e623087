"""Compare durable workflow engines on one NATS and one Postgres: `python -m benchmarks.workflow`.

Every contender runs seven instant steps a cycle (see `contenders.protocol` for the phases), in
processes of its own, on a fresh database, in turn: A B C, A B C, ... The CPU time is that of all
processes below this one: the contender's, Postgres's with all backends, and NATS's.
"""

import argparse
import asyncio
import importlib.util
import json
import logging
import os
import platform
import sys
from pathlib import Path
from typing import Any, Final

import asyncpg
import nats
import structlog

from benchmarks import processes, report
from benchmarks.contenders.protocol import CYCLES_DEFAULT, IN_FLIGHT_DEFAULT
from benchmarks.servers import BenchServers, running_servers
from libs.postgres.pool import OWNER_ROLE

# A contender is a module and what it is told besides the common options. Those that are not below
# are other ways to run the same; they run when --only names them.
CONTENDERS: Final = {
    "deskbus": ("deskbus_core",),
    "deskbus-one": ("deskbus_core", "--mode", "one"),
    "deskbus-claimed": ("deskbus_core", "--mode", "two-claimed"),
    "deskbus-one-claimed": ("deskbus_core", "--mode", "one-claimed"),
    "dbos": ("dbos_peer",),
    "langgraph": ("langgraph_peer",),
    "floors": ("floors",),
    "dbos-sync": ("dbos_peer", "--mode", "sync"),
    "dbos-2": ("dbos_peer", "--workers", "2"),
    "dbos-sync-2": ("dbos_peer", "--mode", "sync", "--workers", "2"),
    "langgraph-savers": ("langgraph_peer", "--mode", "savers"),
    "langgraph-2": ("langgraph_peer", "--workers", "2"),
    "langgraph-savers-2": ("langgraph_peer", "--mode", "savers", "--workers", "2"),
}
CONTENDERS_DEFAULT: Final = (
    "deskbus,deskbus-one,deskbus-claimed,deskbus-one-claimed,"
    "dbos-sync-2,langgraph,langgraph-savers-2,floors"
)
"""Peers as their documentation has them, which is quickest alone, and in their fastest way."""
PACKAGE: Final = "benchmarks.contenders"
ROUNDS_DEFAULT: Final = 3
RUN_TIME_MAX_S: Final = 1200.0
MUST_BE_ON: Final = ("fsync", "synchronous_commit", "full_page_writes")
SERVER_NAMES: Final = {"postgres": "postgres", "nats-server": "nats"}

CpuByOwner = dict[str, float]


def main() -> None:
    """Run the rounds and print the tables; exit 1 with --check when a target is missed."""
    arguments = _parse()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    rounds, machine = asyncio.run(_measure(arguments))
    if arguments.json:
        print(json.dumps({"machine": machine, "rounds": rounds}))
    else:
        print(report.render(rounds, machine))
    if arguments.check and (missed := report.missed(rounds)):
        sys.exit(f"missed: {', '.join(missed)}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS_DEFAULT)
    parser.add_argument("--cycles", type=int, default=CYCLES_DEFAULT, help="a contender and round")
    parser.add_argument("--in-flight", type=int, default=IN_FLIGHT_DEFAULT)
    parser.add_argument("--only", default=CONTENDERS_DEFAULT, help=f"of {', '.join(CONTENDERS)}")
    parser.add_argument("--json", action="store_true", help="all runs as one JSON document")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    if unknown := set(arguments.only) - CONTENDERS.keys():
        parser.error(f"no such contender: {', '.join(unknown)}; there are {', '.join(CONTENDERS)}")
    return arguments


async def _measure(arguments: argparse.Namespace) -> tuple[list[dict[str, report.Run]], str]:
    names = [name for name in arguments.only if _is_there(name)]
    rounds: list[dict[str, report.Run]] = []
    async with running_servers() as servers:
        machine = await _machine(servers)
        for number in range(1, arguments.rounds + 1):
            rounds.append({})
            for name in names:
                run = await _run(name, number, servers, arguments)
                rounds[-1][name] = run
                _tell(f"round {number}, {name}: {_headline(run)}")
    versions = {k: v for run in rounds[0].values() for k, v in run["versions"].items()}
    peers = ", ".join(f"{package} {version}" for package, version in versions.items())
    return rounds, f"{machine}; {peers}"


def _is_there(name: str) -> bool:
    module = f"{PACKAGE}.{CONTENDERS[name][0]}"
    found = importlib.util.find_spec(module) is not None
    if not found:
        _tell(f"{name} is left out: there is no module {module}")
    return found


async def _run(
    name: str, number: int, servers: BenchServers, arguments: argparse.Namespace
) -> report.Run:
    """Run one contender once, on a database and a JetStream store of its own."""
    module, *told = CONTENDERS[name]
    database = f"bench_{name}_{number}".replace("-", "_")
    admin = await asyncpg.connect(servers.postgres_dsn)
    await admin.execute(f"CREATE DATABASE {database} OWNER {OWNER_ROLE}")
    await admin.execute("CHECKPOINT")
    dsn = servers.postgres_dsn.rpartition("/")[0] + f"/{database}"
    command = [
        sys.executable,
        "-m",
        f"{PACKAGE}.{module}",
        *told,
        "--nats-url",
        servers.nats_url,
        "--nkey-seed",
        str(servers.nkey_seed_path),
        "--postgres-dsn",
        dsn,
        "--cycles",
        str(arguments.cycles),
        "--in-flight",
        str(arguments.in_flight),
    ]
    run, cpu_s = await asyncio.wait_for(_follow(name, command), RUN_TIME_MAX_S)
    commits = await admin.fetchval(
        "SELECT xact_commit FROM pg_stat_database WHERE datname = $1", database
    )
    await admin.execute(f"DROP DATABASE {database} WITH (FORCE)")
    await admin.close()
    await _forget_streams(servers)
    return run if name == report.FLOORS else _a_cycle(run, cpu_s["loaded"], commits)


async def _follow(name: str, command: list[str]) -> tuple[report.Run, dict[str, CpuByOwner]]:
    """Start a contender and read its lines; the CPU time is taken as its marks come in."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    begun: dict[str, CpuByOwner] = {}
    spent: dict[str, CpuByOwner] = {}
    result: report.Run | None = None
    assert process.stdout is not None
    assert process.stdin is not None
    async for text in process.stdout:
        line = json.loads(text)
        if span := line.get("begin"):
            begun[span] = _cpu_by_owner()
        elif span := line.get("end"):
            now = _cpu_by_owner()
            spent[span] = {owner: now[owner] - begun[span][owner] for owner in now}
        else:
            result = line["result"]
        process.stdin.write(b"\n")
    if await process.wait() or result is None:
        sys.exit(f"{name} failed with exit code {process.returncode}; its output stands above")
    return result, spent


def _cpu_by_owner() -> CpuByOwner:
    seconds = dict.fromkeys(("own", *SERVER_NAMES.values()), 0.0)
    for process in processes.below(os.getpid()):
        seconds[SERVER_NAMES.get(process.name, "own")] += process.cpu_s
    return seconds


def _a_cycle(run: report.Run, cpu_s: CpuByOwner, commits: int) -> report.Run:
    """Add what the tables show: rates, and CPU time and transactions divided by the cycles."""
    cycles = run["cycles"]
    owners = {f"cpu_{owner}_ms": 1e3 * seconds / cycles for owner, seconds in cpu_s.items()}
    return run | {
        "per_s": cycles / run["seconds"],
        "cpu_ms": sum(owners.values()),
        **owners,
        "transactions": commits / run["cycles_in_all"],
    }


async def _forget_streams(servers: BenchServers) -> None:
    client = await nats.connect(servers.nats_url, nkeys_seed=str(servers.nkey_seed_path))
    context = client.jetstream()
    for stream in await context.streams_info():
        await context.delete_stream(str(stream.config.name))
    await client.close()


async def _machine(servers: BenchServers) -> str:
    """One line on what the numbers were taken with; refuses a Postgres that may lose commits."""
    connection = await asyncpg.connect(servers.postgres_dsn)
    settings = {name: await connection.fetchval(f"SHOW {name}") for name in MUST_BE_ON}
    postgres = await connection.fetchval("SHOW server_version")
    await connection.close()
    if off := [name for name, value in settings.items() if value != "on"]:
        sys.exit(f"this Postgres is not durable ({', '.join(off)} not on): not measured")
    client = await nats.connect(servers.nats_url, nkeys_seed=str(servers.nkey_seed_path))
    nats_version = str(client.connected_server_version).strip("<>").removeprefix("nats server v")
    await client.close()
    return (
        f"{os.cpu_count()} cores ({_processor()}), {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, "
        f"Postgres {postgres} ({', '.join(MUST_BE_ON)} on), "
        f"NATS {nats_version}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _headline(run: dict[str, Any]) -> str:
    if "per_s" not in run:
        return ", ".join(f"{key} {value:,.0f}" for key, value in run.items() if key.endswith("_s"))
    return f"{run['per_s']:.1f} cycles/s, {run['cpu_ms']:.1f} CPU-ms, {run['p50_alone_ms']:.1f} ms"


def _tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
