"""A key that NATS takes no more: tried at growing intervals, and told, until it is taken again."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from libs.bus.connection import BusConnection, connect
from libs.keys.credentials import nkey_public_key, nkey_seed_path
from libs.keys.nats_config import NatsPlace
from libs.runtime.ports import choose_port
from libs.servers.binaries import find_nats_server
from services.provisioner.secrets import nats_conf, provision_secrets
from tests.fakes.log_lines import log_lines

PATIENCE_S = 30.0


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


@pytest.fixture
def let_in(
    server: "subprocess.Popen[str]", config: str, secrets: Path, tmp_path: Path
) -> Callable[..., None]:
    """Has NATS take the keys of these identities, and no others."""

    def set_up(*identities: str) -> None:
        keys = {nkey_public_key(secrets, identity) for identity in identities}
        changed = json.loads(config)
        for account in changed["accounts"].values():
            users = account.get("users", [])
            account["users"] = [each for each in users if each["nkey"] in keys]
        (tmp_path / "nats.conf").write_text(json.dumps(changed))
        server.send_signal(signal.SIGHUP)

    return set_up


@pytest.fixture
async def opened(
    server: "subprocess.Popen[str]", port: int, secrets: Path
) -> AsyncIterator[Callable[[str], Awaitable[BusConnection]]]:
    async with AsyncExitStack() as stack:

        async def open_one(identity: str) -> BusConnection:
            client = await connect(f"nats://127.0.0.1:{port}", identity, secrets)
            stack.push_async_callback(client.close)
            return client

        yield open_one


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - nats-py tells nobody
            await asyncio.sleep(0.05)


async def test_a_key_that_is_let_in_no_more_is_tried_less_and_less_often_and_told(
    let_in: Callable[..., None], opened: Callable[[str], Awaitable[BusConnection]]
) -> None:
    gone, stays = await opened("risk"), await opened("trader")
    with log_lines() as logged:
        let_in("trader")
        await until(lambda: "(5 tries" in gone.problem)
        assert "NATS refuses this key" in gone.problem
        assert not gone.is_closed
        let_in("trader", "risk")
        await until(lambda: gone.is_connected)

    assert (gone.problem, stays.problem) == ("", "")
    await asyncio.gather(gone.flush(), stays.flush())
    told = [line for line in logged if line["event"] == "bus.refused"]
    waits = [line["again_in_s"] for line in told]
    assert {line["connection"] for line in told} == {"deskbus-risk"}
    assert waits[:5] == [0.2, 0.4, 0.8, 1.6, 3.2]


async def test_the_next_try_is_with_the_key_that_then_stands_in_the_file(
    let_in: Callable[..., None], opened: Callable[[str], Awaitable[BusConnection]], secrets: Path
) -> None:
    client = await opened("risk")
    let_in("trader")
    await until(lambda: "NATS refuses this key" in client.problem)

    nkey_seed_path(secrets, "risk").write_text("no key")
    await until(lambda: "(3 tries" in client.problem)
    # What NATS lets in as the trader now is what the file of the other one holds.
    nkey_seed_path(secrets, "risk").write_bytes(nkey_seed_path(secrets, "trader").read_bytes())
    await until(lambda: client.is_connected)


async def test_a_connection_that_the_server_ends_for_its_own_reasons_comes_back(
    let_in: Callable[..., None],
    opened: Callable[[str], Awaitable[BusConnection]],
    server: "subprocess.Popen[str]",
    tmp_path: Path,
) -> None:
    client = await opened("risk")
    config = json.loads((tmp_path / "nats.conf").read_text())
    (tmp_path / "nats.conf").write_text(json.dumps({**config, "max_connections": 1}))
    first = await opened("trader")
    server.send_signal(signal.SIGHUP)
    await until(lambda: not (client.is_connected and first.is_connected))

    (tmp_path / "nats.conf").write_text(json.dumps(config))
    server.send_signal(signal.SIGHUP)
    await until(lambda: client.is_connected and first.is_connected)
