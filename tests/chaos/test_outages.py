"""The short form of tests.chaos.outages: Postgres is away for longer than three tries took."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.desk import QUICK
from tests.chaos.load import user_of
from tests.chaos.outages import (
    TIME_LIMIT_S,
    Outage,
    OwnDesk,
    desk_on,
    own_servers,
    survive,
    wish,
)

CYCLES = 12
LASTS_S = 4.0
BEGUN_S = 1.0
"""By then an outage has begun."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own_desk(module_dir: Path) -> AsyncIterator[OwnDesk]:
    """`deskbus up` as one process, on servers that it did not start."""
    folder = module_dir / "outages"
    folder.mkdir(mode=0o755)
    async with (
        own_servers(folder) as servers,
        desk_on(servers, folder, QUICK, processes=False) as desk,
    ):
        yield desk


@pytest.mark.timeout(180)
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("outage", Outage)
async def test_while_postgres_cannot_be_used_cycles_wait_and_none_fails(
    own_desk: OwnDesk, outage: Outage
) -> None:
    outcome = await survive(own_desk, outage, LASTS_S, CYCLES)
    assert outcome.broken == []


@pytest.mark.timeout(180)
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("outage", Outage)
async def test_a_desk_that_begins_meanwhile_waits_or_says_why_not(
    own_desk: OwnDesk, outage: Outage
) -> None:
    striking = asyncio.create_task(own_desk.servers.strike(outage, LASTS_S))
    await asyncio.sleep(BEGUN_S)
    keeping = asyncio.create_task(own_desk.keep())
    own_desk.process.terminate()
    await striking
    async with user_of(own_desk.settings) as user:
        status = await user.run(wish(user, 0, TIME_LIMIT_S))
    keeping.cancel()
    assert (status, own_desk.tracebacks()) == ("completed", [])
