"""What the desk costs to have: `python -m benchmarks.footprint [--install]`.

- start: `deskbus up` on a data directory that an earlier `up` has already made (warm), until
  `.deskbus/runtime.json` names a desk and its process runs;
- memory: RSS (shared pages counted in each process) and PSS (counted by share) of the whole tree
  once ready, and after a rest;
- CPU at rest: user + system of the tree in the second half of that rest, a second;
- run: `deskbus run`, cold and warm, to its end, and from ready to its end (decision and stop);
- help: `deskbus --help`, from the command to its exit;
- research: the peak memory of the research service as a process, with both SDKs loaded, after a
  cycle on each of them against a local model;
- install: with --install, the time to make an environment from requirements.lock, and its size.

Linux only: it reads /proc. The data directory is a temporary one.
"""

import argparse
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from benchmarks import processes
from benchmarks.report import spread, table
from tests.fakes import model_process
from tests.fakes.model_process import Manner

DATA_VARIABLE: Final = "DESKBUS_DATA_DIR"
RUNTIME_FILE: Final = "runtime.json"
READY_TIME_MAX_S: Final = 120.0
STOP_TIME_MAX_S: Final = 60.0
RUN_TIME_MAX_S: Final = 600.0
POLL_S: Final = 0.01
REST_S: Final = 10.0
ROUNDS_DEFAULT: Final = 3
MEGABYTE: Final = 1e6
INSTALL_DEFAULT: Final = (
    "{python} -m venv {env} && "
    "{env}/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r {lock}"
)
START_MAX_S: Final = 5.0
READY_TO_END_MAX_S: Final = 10.0
RSS_MAX_MB: Final = 450.0
HELP_MAX_S: Final = 0.5
HELP_RUNS: Final = 7
CYCLE_TIME_MAX_S: Final = 120.0
KEYS: Final = {
    "ANTHROPIC_API_KEY": "bench-claude-0123456789",
    "OPENAI_API_KEY": "bench-openai-0123456789",
}
ON_BOTH_SDKS: Final = "cycle request --provider claude --provider openai --key bench --wait"


@dataclass(frozen=True)
class Memory:
    """Resident memory of a process tree; `pss_mb` is None where it may not be read."""

    rss_mb: float
    pss_mb: float | None
    rss_mb_by_name: dict[str, float]
    processes: int


@dataclass(frozen=True)
class Run:
    """One `deskbus run`: the whole of it, and the part after the desk was ready."""

    whole_s: float
    ready_to_end_s: float


@dataclass(frozen=True)
class Start:
    """One warm start of the desk."""

    ready_s: float
    when_ready: Memory
    after_rest: Memory
    cpu_at_rest_s: float
    stop_s: float


def main() -> None:
    """Measure and print; a desk that does not come up ends it with exit code 1."""
    arguments = _parse()
    with tempfile.TemporaryDirectory(prefix="footprint-") as folder:
        data = Path(folder) / "data"
        rounds = range(arguments.rounds)
        cold = measure_run(arguments.deskbus, data)
        warm = [measure_run(arguments.deskbus, data) for _ in rounds]
        starts = [measure_start(arguments.deskbus, data) for _ in rounds]
        found = _summary(cold, warm, starts)
        found["help_s"] = [measure_help(arguments.deskbus) for _ in range(HELP_RUNS)]
        found["research_peak_mb"] = [measure_research(arguments.deskbus, Path(folder))]
        if arguments.install:
            found |= measure_install(arguments.install_command, arguments.lock, Path(folder))
    print(json.dumps(found) if arguments.json else _render(found))


def _parse() -> argparse.Namespace:
    beside = Path(sys.executable).parent / "deskbus"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deskbus", type=shlex.split, default=[str(beside)], metavar="COMMAND")
    parser.add_argument("--rounds", type=int, default=ROUNDS_DEFAULT)
    parser.add_argument("--install", action="store_true", help="also measure the installation")
    parser.add_argument("--install-command", default=INSTALL_DEFAULT, help="{python} {env} {lock}")
    parser.add_argument("--lock", type=Path, default=Path("requirements.lock"))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure_run(deskbus: Sequence[str], data: Path) -> Run:
    """One `deskbus run`, from the command to its exit."""
    with started([*deskbus, "run"], data) as (desk, ready_s):
        after = time.perf_counter()
        if code := desk.wait(RUN_TIME_MAX_S):
            sys.exit(f"`{shlex.join([*deskbus, 'run'])}` ended with exit code {code}")
        ready_to_end_s = time.perf_counter() - after
    return Run(ready_s + ready_to_end_s, ready_to_end_s)


def measure_start(deskbus: Sequence[str], data: Path) -> Start:
    """Start the desk, weigh it when ready and after a rest, and stop it."""
    with started([*deskbus, "up", "--port", "0"], data) as (desk, ready_s):
        when_ready = weigh(desk.pid)
        time.sleep(REST_S / 2)
        spent = _cpu_s(desk.pid)
        time.sleep(REST_S / 2)
        cpu_at_rest_s = (_cpu_s(desk.pid) - spent) / (REST_S / 2)
        after_rest = weigh(desk.pid)
        stopping = time.perf_counter()
        desk.send_signal(signal.SIGTERM)
        desk.wait(STOP_TIME_MAX_S)
    return Start(ready_s, when_ready, after_rest, cpu_at_rest_s, time.perf_counter() - stopping)


def _cpu_s(root: int) -> float:
    return sum(process.cpu_s for process in processes.tree(root))


def measure_help(deskbus: Sequence[str]) -> float:
    """Seconds of one `deskbus --help`."""
    began = time.perf_counter()
    subprocess.run([*deskbus, "--help"], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def measure_research(deskbus: Sequence[str], folder: Path) -> float:
    """The research service's peak in megabytes, with every service a process of its own."""
    data = folder / "models"
    with model_process.running(folder / "asked.jsonl", [*KEYS.values()], Manner()) as model:
        providers = {"claude": {"base_url": model.url}, "openai": {"base_url": f"{model.url}/v1"}}
        settings = KEYS | {"DESKBUS_PROVIDERS": json.dumps(providers)}
        with started([*deskbus, "up", "--processes", "--port", "0"], data, settings) as (desk, _):
            subprocess.run(
                [*deskbus, *ON_BOTH_SDKS.split()],
                env=os.environ | {DATA_VARIABLE: str(data)},
                stdout=subprocess.DEVNULL,
                timeout=CYCLE_TIME_MAX_S,
                check=True,
            )
            (research,) = (
                each.pid
                for each in processes.below(desk.pid)
                if "services.research" in processes.command_line(each.pid)
            )
            return processes.peak_bytes(research) / MEGABYTE


@contextmanager
def started(
    command: Sequence[str], data: Path, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """A desk that is ready, and the seconds until it was; ended with the block."""
    (data / RUNTIME_FILE).unlink(missing_ok=True)
    started = time.perf_counter()
    desk = subprocess.Popen(
        command,
        env=os.environ | {DATA_VARIABLE: str(data)} | dict(settings),
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_until_ready(desk, data / RUNTIME_FILE)
        yield desk, time.perf_counter() - started
    finally:
        if desk.poll() is None:
            desk.terminate()
            desk.wait(STOP_TIME_MAX_S)


def _wait_until_ready(desk: subprocess.Popen[bytes], runtime: Path) -> None:
    deadline = time.perf_counter() + READY_TIME_MAX_S
    while time.perf_counter() < deadline:
        if desk.poll() is not None:
            sys.exit(f"the desk ended with exit code {desk.returncode} before it was ready")
        if _names_a_desk(runtime):
            return
        time.sleep(POLL_S)
    sys.exit(f"no {runtime} after {READY_TIME_MAX_S:g} s: the desk did not become ready")


def _names_a_desk(runtime: Path) -> bool:
    try:
        written: dict[str, Any] = json.loads(runtime.read_bytes())
    except (FileNotFoundError, json.JSONDecodeError):
        return False  # not there yet, or half of it
    return {"nats_url", "postgres_dsn", "pid"} <= written.keys()


def weigh(root: int) -> Memory:
    """Add up the memory of `root` and of everything below it."""
    family = processes.tree(root)
    shares = [processes.pss_bytes(process.pid) for process in family]
    readable = [share for share in shares if share is not None]
    by_name: dict[str, float] = defaultdict(float)
    for process in family:
        by_name[process.name] += process.rss_bytes / MEGABYTE
    return Memory(
        rss_mb=sum(by_name.values()),
        pss_mb=sum(readable) / MEGABYTE if len(readable) == len(shares) else None,
        rss_mb_by_name=dict(by_name),
        processes=len(family),
    )


def measure_install(command: str, lock: Path, folder: Path) -> dict[str, Any]:
    """Seconds and megabytes of a fresh environment made by a shell command."""
    env = folder / "env"
    filled = command.format(python=sys.executable, env=env, lock=lock)
    started = time.perf_counter()
    subprocess.run(filled, shell=True, check=True)
    return {
        "install_s": [time.perf_counter() - started],
        "install_mb": [disk_bytes(env) / MEGABYTE],
    }


def disk_bytes(folder: Path) -> int:
    """What `du` counts: blocks on disk, a file with several links once."""
    seen = {
        (status.st_dev, status.st_ino): status.st_blocks * 512
        for path in folder.rglob("*")
        if (status := path.lstat())
    }
    return sum(seen.values())


def _summary(cold: Run, warm: Sequence[Run], starts: Sequence[Start]) -> dict[str, Any]:
    names = {name for start in starts for name in start.when_ready.rss_mb_by_name}
    found: dict[str, Any] = {
        "run_cold_s": [cold.whole_s],
        "run_warm_s": [run.whole_s for run in warm],
        "run_ready_to_end_s": [run.ready_to_end_s for run in (cold, *warm)],
        "up_ready_s": [start.ready_s for start in starts],
        "stop_s": [start.stop_s for start in starts],
        "processes": [start.when_ready.processes for start in starts],
        "rss_ready_mb": [start.when_ready.rss_mb for start in starts],
        "rss_rested_mb": [start.after_rest.rss_mb for start in starts],
        "cpu_at_rest_ms_a_second": [1e3 * start.cpu_at_rest_s for start in starts],
    }
    found |= {
        f"rss_ready_{name}_mb": [start.when_ready.rss_mb_by_name.get(name, 0) for start in starts]
        for name in sorted(names)
    }
    shares = [start.when_ready.pss_mb for start in starts]
    return found | ({} if None in shares else {"pss_ready_mb": shares})


def _render(found: dict[str, list[float]]) -> str:
    limits = {
        "up_ready_s": START_MAX_S,
        "run_ready_to_end_s": READY_TO_END_MAX_S,
        "rss_ready_mb": RSS_MAX_MB,
        "rss_rested_mb": RSS_MAX_MB,
        "help_s": HELP_MAX_S,
    }
    rows = [
        [key, spread(values), _verdict(statistics.median(values), limits.get(key))]
        for key, values in found.items()
    ]
    return table(["measure", "median (lowest-highest)", "limit"], rows)


def _verdict(value: float, limit: float | None) -> str:
    if limit is None:
        return ""
    return f"at most {limit:g}: {'met' if value <= limit else 'missed'}"


if __name__ == "__main__":
    main()
