"""Orders at a broker that fails, while what sends them is killed: none twice, none lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.postgres.pool import EXECUTION_ROLE, Pool
from tests.fakes.alpaca_trading import PaperHost, paper_host
from tests.integration.execution.at_broker import bound_desk
from tests.integration.execution.conftest import Desk
from tests.integration.execution.faults_at_broker import Storm, require_whole
from tests.integration.own_servers import OwnServers

NUMBERS = iter(range(1, 10_000))


@pytest.fixture
def host() -> Iterator[PaperHost]:
    with paper_host(PaperHost(number=f"PF{next(NUMBERS):09}T", seed=7)) as running:
        yield running


async def storm_of(
    pool: Pool,
    orchestrator: Pool,
    host: PaperHost,
    desk: Desk,
    servers: OwnServers,
    folder: Path,
    *,
    orders: int,
    faults: int,
    tickers: int,
    seed: int,
    kill_postgres: bool,
) -> None:
    async with bound_desk(pool, orchestrator, host, desk, cooling_off=0) as made:
        await made.bind()
        dsn = servers.postgres_dsn(EXECUTION_ROLE)
        storm = Storm(
            made, servers, dsn, folder, seed=seed, tickers=tickers, kill_postgres=kill_postgres
        )
        found = await storm.blow(orders, faults)
        await require_whole(made.pool, made.account, host, storm.decided)
        assert found.missed_drifts == 0
        assert found.kills > 0
        assert found.orders >= orders, found
        assert found.faults >= faults // 2, found


async def test_orders_meet_faults_and_kills_and_none_is_lost_or_doubled(
    pool: Pool,
    orchestrator: Pool,
    host: PaperHost,
    desk: Desk,
    servers: OwnServers,
    tmp_path: Path,
) -> None:
    await storm_of(
        pool,
        orchestrator,
        host,
        desk,
        servers,
        tmp_path,
        orders=30,
        faults=20,
        tickers=15,
        seed=7,
        kill_postgres=False,
    )


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_thousand_orders_meet_three_hundred_faults(
    pool: Pool,
    orchestrator: Pool,
    host: PaperHost,
    desk: Desk,
    servers: OwnServers,
    tmp_path: Path,
    seed: int,
) -> None:
    await storm_of(
        pool,
        orchestrator,
        host,
        desk,
        servers,
        tmp_path,
        orders=1_000,
        faults=300,
        tickers=50,
        seed=seed,
        kill_postgres=True,
    )
