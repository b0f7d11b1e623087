"""The first connect, in a fake of nats-py that loses cancellations as its own waiting may."""

import asyncio
from pathlib import Path

import pytest

from libs.bus import connection
from libs.bus.client import DeskNotReachable, open_client
from libs.bus.connection import BusNotReachable, Connection, connect

NOWHERE = "nats://127.0.0.1:1"
SOON_S = 5.0


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What each connect has lost: it tries for ever, and goes on after its first two
    cancellations."""
    cancellations: list[int] = []

    async def trying(self: Connection, *_: object, **__: object) -> None:
        lost = 0
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if lost == 2:
                    cancellations.append(lost)
                    raise
                lost += 1

    monkeypatch.setattr(Connection, "connect", trying)
    return cancellations


async def test_an_attempt_that_loses_a_cancellation_ends_all_the_same(
    lost: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connection, "ATTEMPT_TIMEOUT_S", 0.05)
    async with asyncio.timeout(SOON_S):
        with pytest.raises(BusNotReachable, match="TimeoutError"):
            await connect(NOWHERE, "cli", tmp_path)
    assert lost == [2], "nothing of it runs any longer"


async def test_a_client_that_is_given_up_before_the_attempt_ends_too(
    lost: list[int], tmp_path: Path
) -> None:
    async with asyncio.timeout(SOON_S):
        with pytest.raises(DeskNotReachable):
            async with open_client(NOWHERE, tmp_path, timeout_s=0.05):
                pass
    assert lost == [2]
