"""The tool loop beside pydantic-ai: `python -m benchmarks.loop`.

Five rounds of three tools, then a validated answer: six model calls and 15 tool calls, over each
SDK, against one local server. Each contender is a process of its own; what counts is its own CPU
time, user and system, all threads, after a warm-up. The model's process is never counted. With the
journal on, Postgres, NATS and the orchestrator are not counted in the ratio; what they took for a
run stands in a column of its own. Contenders take turns in every round; ratios are of one round.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import statistics
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks import processes
from benchmarks.contenders.loop_task import MODELS
from benchmarks.journal import desk_running
from benchmarks.report import spread, table
from benchmarks.servers import BenchServers
from libs.telemetry.logging import configure_logging

PACKAGE: Final = "benchmarks.contenders"
MODEL: Final = f"{PACKAGE}.loop_model"
PEER: Final = "pydantic-ai"


@dataclass(frozen=True)
class Contender:
    """A module, what it is told, and whether it works with the desk's journal."""

    module: str
    words: tuple[str, ...] = ()
    journal: bool = False


CONTENDERS: Final = {
    PEER: Contender("loop_pydantic_ai"),
    "deskbus": Contender("loop_deskbus"),
    "deskbus, asked once more for tools": Contender("loop_deskbus", ("--once-more",)),
    "deskbus, journal on": Contender("loop_deskbus", journal=True),
}
LIMITS: Final = {"deskbus": 1.0, "deskbus, journal on": 1.3}
"""At most so many times the peer's CPU time."""
ROUNDS_DEFAULT: Final = 3
RUNS_DEFAULT: Final = 40
WARMUP: Final = 5

Round = dict[tuple[str, str], dict[str, float]]


async def measure(rounds: int, runs: int) -> list[Round]:
    """All contenders over both SDKs, in turn, in every round."""
    async with desk_running() as servers, model() as url:
        return [await _round(number, runs, url, servers) for number in range(1, rounds + 1)]


async def _round(number: int, runs: int, url: str, servers: BenchServers) -> Round:
    where = json.dumps([servers.nats_url, str(servers.nkey_seed_path), servers.postgres_dsn])
    found: Round = {}
    for sdk in MODELS:
        for name, each in CONTENDERS.items():
            words = ["--sdk", sdk, "--url", url, "--runs", str(runs), "--warmup", str(WARMUP)]
            words += [*each.words, *(["--journal", where] if each.journal else [])]
            before_s = _desk_cpu_s()
            run = await _run(f"{PACKAGE}.{each.module}", words)
            run["desk_cpu_ms"] = (_desk_cpu_s() - before_s) / (runs + WARMUP) * 1e3
            print(f"round {number}, {sdk}, {name}: {run}", file=sys.stderr, flush=True)
            found[name, sdk] = run
    return found


async def _run(module: str, words: Sequence[str]) -> dict[str, float]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *words), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    if process.returncode:
        sys.exit(f"{module} failed; its output stands above")
    said: dict[str, float] = json.loads(out)
    return said


def _desk_cpu_s() -> float:
    """What the orchestrator, Postgres and NATS have used so far: all that runs below this process
    between two contenders, the model left out."""
    return sum(
        each.cpu_s
        for each in processes.below(os.getpid())
        if MODEL not in processes.command_line(each.pid)
    )


@asynccontextmanager
async def model() -> AsyncIterator[str]:
    """The model's process; where it listens."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", MODEL), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = (await process.stdout.readline()).decode().strip()
        if not port:
            raise RuntimeError("the model did not start")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


def render(rounds: Sequence[Round]) -> str:
    """The table, and whether the limits are met."""
    rows = []
    for name, sdk in rounds[0]:
        own = [each[name, sdk]["cpu_ms"] for each in rounds]
        times = [each[name, sdk]["cpu_ms"] / each[PEER, sdk]["cpu_ms"] for each in rounds]
        desk = [each[name, sdk]["desk_cpu_ms"] for each in rounds]
        besides = spread(desk) if CONTENDERS[name].journal else ""
        rows.append((f"{name}, {sdk}", spread(own), spread(times), besides, _verdict(name, times)))
    head = ("contender, SDK", "CPU-ms a run", f"times {PEER}", "desk's CPU-ms besides", "")
    return table(head, rows)


def _verdict(name: str, times: Sequence[float]) -> str:
    limit = LIMITS.get(name)
    if limit is None:
        return ""
    return f"at most {limit}: {'met' if statistics.median(times) <= limit else 'MISSED'}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS_DEFAULT)
    parser.add_argument("--runs", type=int, default=RUNS_DEFAULT)
    arguments = parser.parse_args()
    if importlib.util.find_spec("pydantic_ai") is None:
        sys.exit("pydantic-ai is not here: it is in requirements-bench.lock (`make bench`)")
    configure_logging("error")
    print(render(asyncio.run(measure(arguments.rounds, arguments.runs))))


if __name__ == "__main__":
    main()
