"""The start of a service, over a fake of nats-py that loses cancellations as its waiting may."""

import asyncio
from typing import Any

import pytest
from nats.js.errors import NotFoundError

from contracts.subjects.commands import MAKE_PLAN
from libs.bus import service
from libs.bus.connection import BusNotReachable
from libs.bus.route import Route, Routes
from libs.bus.service import ServiceRunner
from libs.runtime.settings import Settings

SOON_S = 5.0

pytestmark = pytest.mark.timeout(20)


class Unprovisioned:
    """A server without consumers: a first cancellation meets its answer, and is lost."""

    def __init__(self) -> None:
        self.lost = False
        self.closed = False

    def jsm(self) -> "Unprovisioned":
        return self

    async def consumer_info(self, *_: object) -> None:
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            if self.lost:
                raise
            self.lost = True
        raise NotFoundError

    async def subscribe(self, *_: object, **__: object) -> None:
        return None

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Unprovisioned:
    fake = Unprovisioned()

    async def connected(*_: object, **__: object) -> Unprovisioned:
        return fake

    monkeypatch.setattr(service, "connect", connected)
    return fake


async def _nothing(*_: object) -> Any:
    return None


@pytest.fixture
def runner() -> ServiceRunner:
    routes = Routes("research", commands=(Route(MAKE_PLAN, _nothing),))
    return ServiceRunner(routes, "nats://127.0.0.1:1", Settings())


async def test_a_service_whose_consumers_are_missing_gives_up_though_cancellations_are_lost(
    server: Unprovisioned, runner: ServiceRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "CONNECT_TIMEOUT_S", 0.05)
    async with asyncio.timeout(SOON_S):
        with pytest.raises(BusNotReachable, match="TimeoutError"):
            await runner.start()
    assert server.lost
    assert server.closed


async def test_a_service_that_is_stopped_while_it_waits_for_them_ends_too(
    server: Unprovisioned, runner: ServiceRunner
) -> None:
    starting = asyncio.create_task(runner.start())
    await asyncio.sleep(0.05)
    starting.cancel()
    done, _ = await asyncio.wait({starting}, timeout=SOON_S)
    assert done
    assert starting.cancelled()
    assert server.lost
