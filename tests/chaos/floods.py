"""A whole desk whose model endpoints and whose EDGAR pour bytes without an end.

    python -m tests.chaos.floods [--only "a gzip bomb"]

Each flood answers the calls of one cycle. The cycle must end, the desk's memory stay within
MEMORY_BYTES_MAX of what it was at rest, and `GET /halts` be answered within HALTS_S all the while.
Exits 1 where one of that does not hold. The floods come from a process of their own.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.fakes.floods import FLOODS

MEMORY_BYTES_MAX = 300_000_000
HALTS_S = 1.0
CYCLE_S = 240.0
EVERY_S = 0.02
NAMES = tuple(FLOODS)
EDGAR_FLOOD = "a gzip bomb of empty lists"


def _serve(ports: Any) -> None:
    """Answer `/N/...` with the flood of that number."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            flood = FLOODS[NAMES[int(head.split(" ")[1].split("/")[1])]]
            lines = "".join(f"{name}: {value}\r\n" for name, value in flood.headers.items())
            writer.write(f"HTTP/1.1 {flood.status} X\r\n{lines}connection: close\r\n\r\n".encode())
            for piece in flood.body():
                writer.write(piece)
                await writer.drain()
        writer.transport.abort()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


@contextlib.contextmanager
def flooding() -> Iterator[str]:
    """The address of the floods."""
    context = multiprocessing.get_context("spawn")
    ports = context.Queue()
    process = context.Process(target=_serve, args=(ports,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ports.get(timeout=60)}"
    finally:
        process.terminate()
        process.join()


def settings_of(url: str) -> str:
    """One endpoint for each flood, and an EDGAR that is one."""
    endpoints = "".join(
        f'[providers.flood{number}]\npreset = "compatible"\nbase_url = "{url}/{number}/v1"\n'
        f'free = true\nmodels = {{small = "m", medium = "m", large = "m"}}\n'
        for number in range(len(NAMES))
    )
    edgar = f"{url}/{NAMES.index(EDGAR_FLOOD)}"
    return (
        "[http]\nenabled = true\nport = 0\n[model]\nattempts_max = 1\n"
        '[market]\nfundamentals = "edgar"\n'
        f'[edgar]\ncontact = "nobody@example.org"\nurl = "{edgar}"\n{endpoints}'
    )


@dataclass
class Watch:
    """The most memory of a process, and the slowest answer of its halts, while it is watched."""

    pid: int
    http: httpx2.Client
    highest: int = 0
    slowest_s: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)

    def resident(self) -> int:
        """Its memory now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch while the block runs."""
        self.highest, self.slowest_s = 0, 0.0
        self._over.clear()
        threads = [threading.Thread(target=work) for work in (self._memory, self._halts)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _memory(self) -> None:
        while not self._over.wait(EVERY_S):
            self.highest = max(self.highest, self.resident())

    def _halts(self) -> None:
        while not self._over.wait(EVERY_S):
            started = time.monotonic()
            self.http.get("/halts", timeout=30.0).raise_for_status()
            self.slowest_s = max(self.slowest_s, time.monotonic() - started)


def cycle(http: httpx2.Client, provider: str, account: str) -> str:
    """Request a cycle and wait for its end; its status."""
    pipeline = {"name": provider, "provider": provider, "account": account}
    asked = http.post("/cycles", json={"as_of": "2012-06-29", "pipelines": [pipeline]})
    asked.raise_for_status()
    where = f"/cycles/{asked.json()['cycle_id']}"
    ends = time.monotonic() + CYCLE_S
    while time.monotonic() < ends:
        status = str(http.get(where, timeout=30.0).json()["status"])
        if status not in {"running", "accepted"}:
            return status
        time.sleep(0.1)
    return "did not end"


@contextlib.contextmanager
def desk(folder: Path) -> Iterator[tuple[int, str]]:
    """A desk in one process, by its pid and HTTP address."""
    command = [sys.executable, "-m", "services.cli", "up"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            runtime = folder / ".deskbus/runtime.json"
            ends = time.monotonic() + 120
            while not runtime.exists():
                if process.poll() is not None or time.monotonic() > ends:
                    raise SystemExit((folder / "log").read_text()[-2_000:])
                time.sleep(0.1)
            running = json.loads(runtime.read_text())
            yield running["pid"], running["http_url"]
        finally:
            process.terminate()
            process.wait(60)


@dataclass(frozen=True)
class Outcome:
    """How one flood went."""

    name: str
    status: str
    above_rest: int
    slowest_s: float

    @property
    def held(self) -> bool:
        bounded = self.above_rest < MEMORY_BYTES_MAX and self.slowest_s < HALTS_S
        return bounded and self.status != "did not end"

    def __str__(self) -> str:
        sign = "ok " if self.held else "NOT"
        above = f"{self.above_rest / 1e6:4.0f} MB above rest"
        return f"{sign} {self.name:34} {self.status:10} {above}, GET /halts {self.slowest_s:.2f} s"


def measured(names: Sequence[str]) -> Iterator[Outcome]:
    """Pour each flood over one desk."""
    folder = Path(tempfile.mkdtemp(prefix="floods-"))
    with flooding() as url:
        (folder / "deskbus.toml").write_text(settings_of(url))
        with desk(folder) as (pid, http_url), httpx2.Client(base_url=f"{http_url}/api/v1") as http:
            watch = Watch(pid, http)
            cycle(http, "rules", "warm")
            rest = watch.resident()
            providers = {name: f"flood{NAMES.index(name)}" for name in names}
            for name, provider in {f"EDGAR: {EDGAR_FLOOD}": "rules", **providers}.items():
                with watch.watching():
                    status = cycle(http, provider, provider)
                yield Outcome(name, status, watch.highest - rest, watch.slowest_s)


def main(names: Sequence[str]) -> int:
    """Say how each flood went; 1 where one was too much."""
    held = True
    for outcome in measured(names):
        held = held and outcome.held
        sys.stdout.write(f"{outcome}\n")
        sys.stdout.flush()
    return 0 if held else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=NAMES)
    only = parser.parse_args().only
    sys.exit(main([only] if only else NAMES))
