"""The embedded NATS server: its files, how it is run, when it is ready."""

import asyncio
import json
import os
import signal
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from libs.keys.nats_config import NatsPlace
from libs.runtime.guarded import Identity
from libs.runtime.ports import LOOPBACK
from libs.runtime.whole_file import write_whole
from libs.servers.placement import hand_over
from libs.servers.supervisor import Child

STOP_SIGNAL = signal.SIGTERM
RELOAD_SIGNAL = signal.SIGHUP
"""It reads its configuration anew: users that are gone lose their connections, others keep them."""
READY_POLL_S = 0.01
PROBE_TIMEOUT_S = 2.0
MONITOR_BYTES_MAX = 4_000_000
"""Of a page of the monitoring port; one that is longer is cut off, and is no JSON then."""
ANSWER_BYTES_MAX = 4096
HEALTH = "/healthz"
"""Whether it does its work: it stores what it is given, too."""
STARTED = "/healthz?js-enabled-only=true"
"""Whether JetStream is there. A stream that is broken does not count: it can be made anew then."""
ITSELF = "/varz"
"""What it is: its name is among the first words."""
DOES_NOT_ANSWER = "does not answer"


def prepare_nats(server_dir: Path, config: str, run_as: Identity | None) -> Path:
    """Make the store's folder, write the configuration for a start, return the latter's path.

    The configuration stays ours (it names public keys only): a root process that writes into
    folders of less trusted users can be led astray by links.
    """
    hand_over(store_dir(server_dir), run_as)
    path = server_dir / "nats.conf"
    write_whole(path, config.encode())
    return path


def store_dir(server_dir: Path) -> Path:
    """The directory of JetStream's files."""
    return server_dir / "nats"


def nats_child(
    program: Path, config: Path, place: NatsPlace, log_path: Path, run_as: Identity | None
) -> Child:
    """The supervised NATS server."""

    async def ready(_pid: int) -> None:
        # Somebody else's server may listen there, faster than this one.
        while (  # noqa: ASYNC110
            await nats_problem(place.monitor_port, check=STARTED) or not await _is_at(place)
        ):
            await asyncio.sleep(READY_POLL_S)

    async def unwell(_pid: int) -> str:
        # A server that says nothing is left alone: it may be stopped for a moment, as we may.
        problem = await nats_problem(place.monitor_port)
        return "" if problem == DOES_NOT_ANSWER else problem

    return Child(
        name="nats",
        argv=[str(program), "--config", str(config)],
        env={"PATH": os.defpath},
        cwd=config.parent,
        log_path=log_path,
        ready=ready,
        unwell=unwell,
        run_as=run_as,
        ports=[place.port, place.monitor_port],
        stop_signal=STOP_SIGNAL,
        parent_death_signal=STOP_SIGNAL,
    )


async def nats_problem(monitor_port: int, *, check: str = HEALTH) -> str:
    """The problem that the server on this loopback monitoring port tells of itself; empty where
    nothing is, DOES_NOT_ANSWER where nothing is heard.
    """
    head, _, body = (await _get(monitor_port, check)).partition(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] == [b"200"]:
        return ""
    return _error_in(body) if head else DOES_NOT_ANSWER


async def _is_at(place: NatsPlace) -> bool:
    """True where the server of that name is the one that listens there."""
    answer = await _get(place.monitor_port, ITSELF)
    return f'"server_name": "{place.name}"'.encode() in answer


async def _get(monitor_port: int, path: str) -> bytes:
    """The beginning of the answer; empty where there is none."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, monitor_port)
            try:
                writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                await writer.drain()
                return await reader.read(ANSWER_BYTES_MAX)
            finally:
                writer.close()
    return b""


def _error_in(body: bytes) -> str:
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(body)["error"])
    return "is not well"


def monitored(monitor_port: int, page: str) -> Any:
    """The answer of the server on this loopback monitoring port, such as `connz`, as JSON.

    Raises OSError and ValueError. It blocks for PROBE_TIMEOUT_S at most.
    """
    url = f"http://{LOOPBACK}:{monitor_port}/{page}"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=PROBE_TIMEOUT_S) as answer:
        return json.loads(answer.read(MONITOR_BYTES_MAX))
