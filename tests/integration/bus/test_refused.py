"""A key that NATS takes no more: closed for good after some tries, and not at the first."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.bus.connection import Client, connect
from libs.runtime.binaries import find_nats_server
from libs.runtime.credentials import nkey_public_key
from libs.runtime.ports import choose_port
from services.provisioner.secrets import NatsPlace, nats_conf, provision_secrets

CLOSED_TIMEOUT_S = 30.0


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    provision_secrets(tmp_path / "secrets")
    return tmp_path / "secrets"


@pytest.fixture
def port() -> int:
    return choose_port(None, set())


@pytest.fixture
def config(secrets: Path, port: int, tmp_path: Path) -> str:
    monitor_port = choose_port(None, {port})
    return nats_conf(secrets, NatsPlace("127.0.0.1", port, monitor_port, tmp_path / "store"))


@pytest.fixture
def server(config: str, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    (tmp_path / "nats.conf").write_text(config)
    argv = [find_nats_server(), "--config", tmp_path / "nats.conf"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as running:
        said(running, "Server is ready")
        yield running
        running.terminate()
        assert running.stderr is not None
        running.stderr.read()


def said(server: "subprocess.Popen[str]", words: str) -> None:
    assert server.stderr is not None
    while words not in server.stderr.readline():
        assert server.poll() is None


async def test_a_key_that_is_let_in_no_more_closes_the_connection_for_good(
    server: "subprocess.Popen[str]", config: str, port: int, secrets: Path, tmp_path: Path
) -> None:
    async def opened(identity: str) -> tuple[Client, asyncio.Event]:
        closed = asyncio.Event()

        async def on_closed() -> None:
            closed.set()

        url = f"nats://127.0.0.1:{port}"
        return await connect(url, identity, secrets, on_closed=on_closed), closed

    def let_in(*identities: str) -> None:
        keys = {nkey_public_key(secrets, identity) for identity in identities}
        changed = json.loads(config)
        for account in changed["accounts"].values():
            users = account.get("users", [])
            account["users"] = [each for each in users if each["nkey"] in keys]
        (tmp_path / "nats.conf").write_text(json.dumps(changed))
        server.send_signal(signal.SIGHUP)

    (gone, gone_for_good), (stays, stays_for_good) = await opened("risk"), await opened("trader")
    try:
        let_in("trader")
        await asyncio.to_thread(said, server, "authentication error")
        let_in("trader", "risk")
        while not gone.is_connected:  # noqa: ASYNC110 - it is let in again
            await asyncio.sleep(0.05)
        assert not gone_for_good.is_set()

        let_in("trader")
        await asyncio.wait_for(gone_for_good.wait(), CLOSED_TIMEOUT_S)
        assert gone.is_closed
        assert not stays_for_good.is_set()
        await stays.flush()
    finally:
        await asyncio.gather(gone.close(), stays.close())
