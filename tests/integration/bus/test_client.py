"""`deskbus_client` over an outage of whoever answers, on a real NATS."""

import asyncio
import time

import pytest
from deskbus_client import AsyncDesk, DeskNotReachable

from libs.servers.embedded import Servers
from tests.fakes.events import Console, step

SOON_S = 20.0


async def test_an_outage_is_waited_for(servers: Servers, console: Console) -> None:
    console.record, console.away = [*map(step, range(1, 4))], True
    key = servers.secrets_dir / "user.nk"
    async with AsyncDesk.open(url=servers.nats_url, key=key, patience_s=SOON_S) as desk:
        reading = desk.events(back=2)
        first = asyncio.ensure_future(anext(reading))
        await console.was_asked(2, SOON_S)
        console.away = False
        assert (await first).event.sequence == 2
        assert (await anext(reading)).event.sequence == 3
        await reading.aclose()


async def test_one_that_lasts_is_said(servers: Servers, console: Console) -> None:
    console.away = True
    key = servers.secrets_dir / "user.nk"
    began = time.monotonic()
    async with AsyncDesk.open(url=servers.nats_url, key=key, patience_s=1.0) as desk:
        with pytest.raises(DeskNotReachable, match="the console is away"):
            await anext(desk.events())
    assert time.monotonic() - began < SOON_S
    assert len(console.asked) > 1
