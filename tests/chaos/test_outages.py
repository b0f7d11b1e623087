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
FULL_S, FULL_LIMIT_S = 40.0, 30.0
"""How long the disk is full, and the time limit of the cycles meanwhile."""


def skip_without_disk(desk: OwnDesk, outage: Outage) -> None:
    """Leave out a full disk where none can be mounted."""
    if outage is Outage.FULL and desk.servers.postgres_disk is None:
        pytest.skip("root: only root mounts a small disk")


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
    skip_without_disk(own_desk, outage)
    outcome = await survive(own_desk, outage, LASTS_S, CYCLES)
    assert outcome.broken == []


@pytest.mark.soak
@pytest.mark.timeout(180)
@pytest.mark.asyncio(loop_scope="session")
async def test_no_cycle_fails_while_the_disk_of_postgres_is_full_for_longer_than_its_limit(
    own_desk: OwnDesk,
) -> None:
    skip_without_disk(own_desk, Outage.FULL)
    outcome = await survive(own_desk, Outage.FULL, FULL_S, CYCLES, timeout_s=FULL_LIMIT_S)
    async with own_desk.database() as db:
        stood_s = await db.fetchval(
            "select max(extract(epoch from until_at - since_at)) from outages"
        )
    assert outcome.broken == []
    assert stood_s > FULL_S / 2


@pytest.mark.timeout(180)
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("outage", Outage)
async def test_a_desk_that_begins_meanwhile_waits_or_says_why_not(
    own_desk: OwnDesk, outage: Outage
) -> None:
    skip_without_disk(own_desk, outage)
    striking = asyncio.create_task(own_desk.servers.strike(outage, LASTS_S))
    await asyncio.sleep(BEGUN_S)
    keeping = asyncio.create_task(own_desk.keep())
    own_desk.process.terminate()
    await striking
    async with user_of(own_desk.settings) as user:
        status = await user.run(wish(user, 0, TIME_LIMIT_S))
    keeping.cancel()
    assert (status, own_desk.tracebacks()) == ("completed", [])
