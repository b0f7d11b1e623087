"""The first connect, in a fake of nats-py that loses cancellations as its own waiting may."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from libs.bus import connection
from libs.bus.client import DeskNotReachable, open_client
from libs.bus.connection import BusConnection, BusNotReachable, Repeats, connect, options
from libs.postgres import pool
from libs.runtime.errors import DeskError
from tests.fakes.log_lines import log_lines

NOWHERE = "nats://127.0.0.1:1"
SOON_S = 5.0
TRIED_S = 0.3
"""How long a server is tried that is not there or gives no answer."""
Opened = Callable[[str, Path], AbstractAsyncContextManager[object]]


def opened_client(url: str, secrets_dir: Path) -> AbstractAsyncContextManager[object]:
    return open_client(url, secrets_dir, timeout_s=TRIED_S)


def opened_pool(url: str, _: Path) -> AbstractAsyncContextManager[object]:
    return pool.open_pool(f"{url}/deskbus")


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What each connect has lost: it tries for ever, and goes on after its first two
    cancellations."""
    cancellations: list[int] = []

    async def trying(self: BusConnection, *_: object, **__: object) -> None:
        lost = 0
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if lost == 2:
                    cancellations.append(lost)
                    raise
                lost += 1

    monkeypatch.setattr(BusConnection, "connect", trying)
    return cancellations


async def test_an_attempt_that_loses_a_cancellation_ends_all_the_same(
    lost: list[int], tmp_path: Path
) -> None:
    async with asyncio.timeout(SOON_S):
        with pytest.raises(BusNotReachable, match="TimeoutError"):
            await connect(NOWHERE, "cli", tmp_path, timeout_s=0.05)
    assert lost == [2], "nothing of it runs any longer"


async def test_a_handshake_that_hangs_is_followed_by_another_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    attempts: list[BusConnection] = []

    async def hangs_once(self: BusConnection, *_: object, **__: object) -> None:
        attempts.append(self)
        if len(attempts) == 1:
            await asyncio.sleep(60)

    monkeypatch.setattr(BusConnection, "connect", hangs_once)
    monkeypatch.setattr(connection, "ATTEMPT_TIMEOUT_S", 0.05)
    async with asyncio.timeout(SOON_S):
        connected = await connect(NOWHERE, "cli", tmp_path)
    assert len(attempts) == 2
    assert connected is attempts[1]


async def test_a_client_that_is_given_up_before_the_attempt_ends_too(
    lost: list[int], tmp_path: Path
) -> None:
    async with asyncio.timeout(SOON_S):
        with pytest.raises(DeskNotReachable):
            async with open_client(NOWHERE, tmp_path, timeout_s=0.05):
                pass
    assert lost == [2]


# --- what a person reads of it --------------------------------------------------------------------


async def test_a_start_at_nobody_says_what_the_tries_met_and_that_the_key_is_missing(
    tmp_path: Path,
) -> None:
    with pytest.raises(BusNotReachable) as caught:
        await connect(NOWHERE, "mine", tmp_path, timeout_s=0.3)
    assert "(ConnectionRefusedError: " in str(caught.value)
    assert f"key {tmp_path / 'mine.nk'} does not exist" in str(caught.value)


@pytest.mark.parametrize("opened", [opened_client, opened_pool], ids=["nats", "postgres"])
@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("127.0.0.1:1", "does not listen at"),
        ("no-such-host.invalid:1", "no host is known by the name in"),
        ("hung", "does not answer in time"),
    ],
)
async def test_each_way_in_which_a_server_is_not_reached_has_a_sentence(
    opened: Opened, host: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pool, "CONNECT_TIMEOUT_S", TRIED_S)
    with socket.create_server(("127.0.0.1", 0)) as hung:
        place = f"127.0.0.1:{hung.getsockname()[1]}" if host == "hung" else host
        scheme = "nats" if opened is opened_client else "postgresql"
        with pytest.raises(DeskError) as caught:
            async with opened(f"{scheme}://{place}", tmp_path):
                pass
    assert words in caught.value.message
    assert place in caught.value.message


async def test_an_error_that_repeats_is_logged_ever_more_rarely_and_anew_after_each_loss(
    tmp_path: Path,
) -> None:
    said = options("mine", tmp_path)
    with log_lines() as lines:
        for _ in range(100):
            await said["error_cb"](ConnectionRefusedError("nobody there"))
        await said["error_cb"](ConnectionResetError("gone"))
        await said["disconnected_cb"]()
        await said["error_cb"](ConnectionRefusedError("nobody there"))
    errors = [line for line in lines if line["event"] == "bus.error"]
    assert [line["times"] for line in errors] == [1, 2, 4, 8, 16, 32, 64, 1, 1]
    assert errors[0]["error"] == "ConnectionRefusedError: nobody there"


def test_errors_that_differ_each_time_are_all_logged_and_not_all_kept() -> None:
    repeats = Repeats()
    assert {repeats.count(f"denied {number}") for number in range(10_000)} == {1}
    assert len(repeats._times) <= connection.ERRORS_KEPT_MAX


class BrokenTransport:
    """A connection whose other end is gone."""

    def __init__(self) -> None:
        self.is_closed = False

    def writelines(self, _: object) -> None:
        """It goes into a buffer."""

    async def drain(self) -> None:
        """Which cannot be sent."""
        raise BrokenPipeError(32, "Broken pipe")

    def close(self) -> None:
        """Let go of the socket."""
        self.is_closed = True


async def test_a_connection_that_broke_is_closed_without_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, transport, closed = BusConnection(), BrokenTransport(), asyncio.Event()

    async def on_closed() -> None:
        closed.set()

    for name, value in {
        "_transport": transport,
        "_flush_queue": asyncio.Queue(),
        "_current_server": object(),
        "_pending": [b"PUB"],
        "_pending_data_size": 3,
        "_closed_cb": on_closed,
        "_status": BusConnection.CONNECTED,
    }.items():
        monkeypatch.setattr(one, name, value, raising=False)
    await one.close()
    assert (one.is_closed, transport.is_closed, closed.is_set()) == (True, True, True)
