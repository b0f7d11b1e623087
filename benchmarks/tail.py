"""How the live tail keeps up: `python -m benchmarks.tail [--seconds 60] [--only page,server,cli]`.

A console and an orchestrator (for its relay) as processes of their own on the embedded servers,
and a process that inserts events into `state_events` at a rate (`benchmarks.tail_load`): they go
the way of the desk's own. Measured are

- page: Chromium at /tail. The lag of every event, from its insert to the frame that shows it drawn;
  the longest task of the page's thread; the heap after a collection, early and at the end; then
  ever higher rates for ten seconds each, until one is not held;
- server: the CPU time of the console and of Postgres with no client, one, and twenty;
- cli: `deskbus tail`, as lines and as JSON, into a file: whether every event is there, how long
  after the last one, and its CPU time.

Linux only. Chromium (Debian's) is looked for on the PATH.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from playwright.async_api import Page, async_playwright
from playwright.async_api import TimeoutError as PatienceEnded

from benchmarks import processes
from benchmarks.report import table
from benchmarks.servers import temporary_folder
from contracts.subjects.commands import COMMANDS
from libs.bus.connection import connect
from libs.bus.permissions import PROVISIONER, permissions
from libs.bus.streams import Provisioner
from libs.postgres.migrate import migrate
from libs.postgres.pool import ORCHESTRATOR_ROLE, OWNER_ROLE, ROLES
from libs.runtime.ports import choose_port
from libs.servers.embedded import Servers, embedded_servers
from tests.browser import looks

RATES: Final = (2_000, 5_000, 7_500, 10_000, 15_000, 20_000)
RATE_DEFAULT: Final = 1_000
CLI_RATE: Final = 5_000
STEP_S: Final = 10.0
CLIENTS: Final = (0, 1, 20)
LAG_MS_MAX: Final = 250
LATE_S_MAX: Final = 10.0
START_S_MAX: Final = 60.0
WATCH: Final = """
window.bench = {lags: [], tasks: [], count: 0, since: 0};
new PerformanceObserver((found) => {
  for (const each of found.getEntries()) window.bench.tasks.push(each.duration);
}).observe({type: "longtask", buffered: true});
window.EventSource = class extends EventSource {
  constructor(...given) {
    super(...given);
    this.addEventListener("events", (frame) => {
      const told = [...frame.data.matchAll(/"at":"([^"]+)"/g)].map((found) => Date.parse(found[1]));
      // A page begins with the newest events of before.
      const made = told.filter((at) => at >= bench.since);
      requestAnimationFrame(() => setTimeout(() => {
        const now = Date.now();
        for (const at of made) window.bench.lags.push(now - at);
        window.bench.count += made.length;
      }));
    });
  }
};
"""


@dataclass(frozen=True)
class Desk:
    """The running parts."""

    port: int
    servers: Servers
    console: subprocess.Popen[bytes]
    relay: subprocess.Popen[bytes]
    environment: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds so far, by part."""
        found = {"console": _cpu_s(self.console.pid), "relay": _cpu_s(self.relay.pid)}
        mine = processes.below(os.getpid())
        found["postgres"] = sum(each.cpu_s for each in mine if each.name.startswith("postgres"))
        return found


def _cpu_s(pid: int) -> float:
    return sum(each.cpu_s for each in processes.tree(pid))


@asynccontextmanager
async def running() -> AsyncIterator[Desk]:
    """Servers, orchestrator and console, until the block ends."""
    with temporary_folder() as folder:
        async with embedded_servers(
            folder / "desk", permissions(), ROLES, database_owner=OWNER_ROLE
        ) as servers:
            await migrate(servers.postgres_dsn(OWNER_ROLE))
            client = await connect(servers.nats_url, PROVISIONER, servers.secrets_dir)
            await Provisioner(client, COMMANDS).provision()
            await client.close()
            port = choose_port(None, set())
            environment = os.environ | _given(servers, port)
            with (
                _process(["-m", "services.orchestrator"], environment) as relay,
                _process(["-m", "services.console"], environment) as console,
            ):
                desk = Desk(port, servers, console, relay, environment)
                await asyncio.to_thread(_wait_for, f"{desk.url}/api/v1/budget")
                yield desk


def _given(servers: Servers, port: int) -> dict[str, str]:
    return {
        "DESKBUS_DATA_DIR": str(servers.data_dir),
        "DESKBUS_NATS_URL": servers.nats_url,
        "DESKBUS_POSTGRES_DSN": servers.postgres_address,
        "DESKBUS_SECRETS_DIR": str(servers.secrets_dir),
        "DESKBUS_HTTP": "true",
        "DESKBUS_HTTP_PORT": str(port),
        "DESKBUS_LOG_LEVEL": "error",
    }


@contextmanager
def _process(
    arguments: Sequence[str], environment: dict[str, str], **more: Any
) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen([sys.executable, *arguments], env=environment, **more)
    try:
        yield child
    finally:
        child.terminate()
        child.wait()


def _wait_for(url: str) -> None:
    until = time.monotonic() + START_S_MAX
    while time.monotonic() < until:
        with suppress(urllib.error.URLError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.1)
    sys.exit(f"nobody answers at {url}")


async def write(desk: Desk, rate: int, seconds: float) -> int:
    """Have events written; how many that were."""
    dsn = desk.servers.postgres_dsn(ORCHESTRATOR_ROLE)
    given = ("-m", "benchmarks.tail_load", "write", dsn, str(rate), str(seconds))
    child = await asyncio.create_subprocess_exec(
        sys.executable, *given, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await child.communicate()
    return int(said)


# --- the page -------------------------------------------------------------------------------------


async def measure_page(desk: Desk, seconds: float) -> list[dict[str, Any]]:
    """The rate asked for as long as asked for, then higher ones until one is not held."""
    found = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=looks.chromium_path(), args=list(looks.FLAGS)
        )
        try:
            for rate in (RATE_DEFAULT, *RATES):
                page = await browser.new_page(viewport=looks.DESKTOP, bypass_csp=True)
                await page.add_init_script(WATCH)
                await page.goto(f"{desk.url}/tail")
                await page.wait_for_function(
                    "document.getElementById('state').textContent == 'live'"
                )
                found.append(
                    await _at_rate(desk, page, rate, seconds if rate == RATE_DEFAULT else STEP_S)
                )
                await page.close()
                if not found[-1]["held"]:
                    break
        finally:
            await browser.close()
    return found


async def _at_rate(desk: Desk, page: Page, rate: int, seconds: float) -> dict[str, Any]:
    await page.evaluate("Object.assign(bench, {lags: [], tasks: [], count: 0, since: Date.now()})")
    heaps = [await _heap_mb(page)]
    writing = asyncio.create_task(write(desk, rate, seconds))
    await asyncio.sleep(seconds / 2)
    heaps.append(await _heap_mb(page))
    written = await writing
    ended = time.monotonic()
    with suppress(PatienceEnded):
        await page.wait_for_function(
            "(count) => bench.count >= count", arg=written, timeout=1_000 * LATE_S_MAX
        )
    late_s = time.monotonic() - ended
    heaps.append(await _heap_mb(page))
    told = await page.evaluate("({count: bench.count, lags: bench.lags, tasks: bench.tasks})")
    lags = sorted(told["lags"]) or [float("inf")]
    p95 = lags[int(len(lags) * 0.95)]
    return {
        "rate": rate,
        "written_per_s": written / seconds,
        "shown": told["count"],
        "written": written,
        "lag_p50_ms": lags[len(lags) // 2],
        "lag_p95_ms": p95,
        "lag_max_ms": lags[-1],
        "longest_task_ms": max(told["tasks"], default=0),
        "heap_mb": heaps,
        "late_s": late_s,
        "held": told["count"] == written and p95 <= LAG_MS_MAX and written >= 0.9 * rate * seconds,
    }


async def _heap_mb(page: Page) -> float:
    session = await page.context.new_cdp_session(page)
    await session.send("HeapProfiler.collectGarbage")
    used = (await session.send("Runtime.getHeapUsage"))["usedSize"] / 1e6
    await session.detach()
    return float(used)


# --- the server -----------------------------------------------------------------------------------


async def measure_server(desk: Desk) -> list[dict[str, Any]]:
    """CPU milliseconds a second of each part, by how many clients follow."""
    found = []
    for clients in CLIENTS:
        given = ["-m", "benchmarks.tail_load", "follow", str(desk.port), str(clients)]
        with _process(given, desk.environment, stdout=subprocess.PIPE) as child:
            if child.stdout is None or not await asyncio.to_thread(child.stdout.readline):
                sys.exit("the clients were not let in")
            before, began = desk.cpu_s(), time.monotonic()
            written = await write(desk, RATE_DEFAULT, STEP_S)
            took_s = time.monotonic() - began
            after = desk.cpu_s()
        parts = {part: 1_000 * (after[part] - before[part]) / took_s for part in after}
        found.append({"clients": clients, "written_per_s": written / STEP_S, **parts})
    return found


# --- the command line -----------------------------------------------------------------------------


async def measure_cli(desk: Desk) -> list[dict[str, Any]]:
    """What `deskbus tail` writes of events that come at CLI_RATE."""
    return [
        await _tailed(desk, name, options, colour)
        for name, options, colour in (
            ("--json", ["--json"], ""),
            ("lines", [], ""),
            ("lines in colour", [], "1"),
        )
    ]


@contextmanager
def _written_and_read() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A file to write and the same to read: one position for both would move the writer's."""
    with tempfile.NamedTemporaryFile() as out, Path(out.name).open("rb") as found:
        yield out, found


async def _tailed(desk: Desk, name: str, options: list[str], colour: str) -> dict[str, Any]:
    environment = desk.environment | ({"FORCE_COLOR": colour} if colour else {})
    command = ["-m", "services.cli", "tail", *options]
    with (
        _written_and_read() as (out, found),
        _process(command, environment, stdout=out, stderr=subprocess.PIPE) as child,
    ):
        if child.stderr is None or not await asyncio.to_thread(child.stderr.readline):
            sys.exit("`deskbus tail` does not listen")
        before = _cpu_s(child.pid)
        written = await write(desk, CLI_RATE, STEP_S)
        ended, lines = time.monotonic(), 0
        while lines < written and time.monotonic() - ended < LATE_S_MAX:
            await asyncio.sleep(0.05)
            lines += found.read().count(b"\n")
        late_s = time.monotonic() - ended
        used_s = _cpu_s(child.pid) - before
    return {
        "how": name,
        "written_per_s": written / STEP_S,
        "missing": written - lines,
        "late_s": late_s,
        "cpu_ms_per_s": 1_000 * used_s / (STEP_S + late_s),
        "could_per_s": lines / used_s,
    }


# --- all of it ------------------------------------------------------------------------------------


async def measure(only: Sequence[str], seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with running() as desk:
        if "server" in only:
            found["server"] = await measure_server(desk)
        if "cli" in only:
            found["cli"] = await measure_cli(desk)
        if "page" in only:
            found["page"] = await measure_page(desk, seconds)
    return found


def render(found: dict[str, Any]) -> str:
    return "\n\n".join(
        table(list(rows[0]), [[_short(value) for value in row.values()] for row in rows])
        for rows in found.values()
    )


def _short(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_short, value))
    return f"{value:,.4g}" if isinstance(value, float) else f"{value}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the page's first rate")
    parser.add_argument("--only", default="server,cli,page")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = asyncio.run(measure(given.only.split(","), given.seconds))
    print(json.dumps(found) if given.json else render(found))


if __name__ == "__main__":
    main()
