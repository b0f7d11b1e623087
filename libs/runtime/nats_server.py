"""The embedded NATS server: its files, how it is run, when it is ready."""

import asyncio
import json
import os
import signal
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from libs.runtime.placement import hand_over
from libs.runtime.ports import LOOPBACK
from libs.runtime.supervisor import Child, Identity

STOP_SIGNAL = signal.SIGTERM
READY_POLL_S = 0.01
PROBE_TIMEOUT_S = 2.0
ANSWER_BYTES_MAX = 4096


def prepare_nats(server_dir: Path, config: str, run_as: Identity | None) -> Path:
    """Make the store's folder, write the configuration for a start, return the latter's path.

    The configuration stays ours (it names public keys only): a root process that writes into
    folders of less trusted users can be led astray by links.
    """
    hand_over(store_dir(server_dir), run_as)
    path = server_dir / "nats.conf"
    partial = server_dir / "nats.conf.partial"
    partial.write_text(config)
    partial.chmod(0o644)
    partial.replace(path)
    return path


def store_dir(server_dir: Path) -> Path:
    """Where JetStream keeps its files."""
    return server_dir / "nats"


def nats_child(
    program: Path, config: Path, monitor_port: int, log_path: Path, run_as: Identity | None
) -> Child:
    """The supervised NATS server."""

    async def ready(_pid: int) -> None:
        while not await nats_is_healthy(monitor_port):  # noqa: ASYNC110
            await asyncio.sleep(READY_POLL_S)

    return Child(
        name="nats",
        argv=[str(program), "--config", str(config)],
        env={"PATH": os.defpath},
        cwd=config.parent,
        log_path=log_path,
        ready=ready,
        run_as=run_as,
        stop_signal=STOP_SIGNAL,
        parent_death_signal=STOP_SIGNAL,
    )


async def nats_is_healthy(monitor_port: int) -> bool:
    """Whether the server on this loopback monitoring port says that JetStream can be used."""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, monitor_port)
            try:
                writer.write(b"GET /healthz?js-enabled-only=true HTTP/1.0\r\n\r\n")
                await writer.drain()
                answer = await reader.read(ANSWER_BYTES_MAX)
            finally:
                writer.close()
            return answer.split(b" ", 2)[1:2] == [b"200"]
    return False


def monitored(monitor_port: int, page: str) -> Any:
    """What the server on this loopback monitoring port says, such as `connz`, as JSON.

    Raises OSError and ValueError. It blocks for PROBE_TIMEOUT_S at most.
    """
    url = f"http://{LOOPBACK}:{monitor_port}/{page}"
    with urllib.request.urlopen(url, timeout=PROBE_TIMEOUT_S) as answer:
        return json.load(answer)
