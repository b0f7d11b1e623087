"""What 0.1 wrote is refused at every way in, in one sentence, and stays as it is."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import asyncpg
import pytest

from libs.bus.permissions import permissions
from libs.postgres.pool import OWNER_ROLE, ROLES
from libs.servers.embedded import Servers, embedded_servers
from libs.servers.embedded_thread import held_in_thread
from tests.integration.desk.command_line import CommandLine
from tests.integration.upgrade.conftest import servers_in, settings_of
from tests.integration.upgrade.old_release import ROOT, environment_of
from tests.open_folder import open_folder

RUN_BY_0_1 = (
    "core",
    "ledger",
    "cycle_revision",
    "reserved_on",
    "approvals",
    "stop_first",
    "halts",
    "books",
    "usage_by_sort",
    "paces",
    "strategies",
    "strategies_tried",
    "bodies_kept",
)
"""0.1's migrations, by their names; what the later ones were called makes no difference."""
TABLES_OF_0_1 = """
create table schema_migrations (
    version int primary key, name text not null, sha256 text not null,
    run_at timestamptz not null default now(), stop_first boolean not null default false
);
grant select on schema_migrations to deskbus_orchestrator, deskbus_execution, deskbus_console;
create table cycles (cycle_id uuid primary key, status text not null);
insert into cycles values ('00000000-0000-0000-0000-000000000001', 'completed');
"""
TABLES = "select relname from pg_class where relnamespace = 'public'::regnamespace order by 1"
SAID = "were written by Deskbus 0.1, which this version can't read; they are not changed"
EXIT_TIMEOUT_S = 60


async def write_as_0_1(dsn: str) -> None:
    db = await asyncpg.connect(dsn)
    await db.execute(TABLES_OF_0_1)
    await db.executemany(
        "insert into schema_migrations (version, name, sha256) values ($1, $2, 'then')",
        list(enumerate(RUN_BY_0_1, start=1)),
    )
    await db.close()


async def found(dsn: str) -> tuple[Sequence[str], int, int]:
    """Its tables and indexes, and how many cycles and migrations are on record."""
    db = await asyncpg.connect(dsn)
    names = [row["relname"] for row in await db.fetch(TABLES)]
    cycles = await db.fetchval("select count(*) from cycles")
    run = await db.fetchval("select count(*) from schema_migrations")
    await db.close()
    return names, cycles, run


AS_IT_WAS = (
    ["cycles", "cycles_pkey", "schema_migrations", "schema_migrations_pkey"],
    1,
    len(RUN_BY_0_1),
)


@pytest.fixture(scope="module")
def folder(module_dir: Path) -> Path:
    """A data directory with 0.1's tables in it; no server runs."""

    async def write() -> None:
        async with servers_in(module_dir) as servers:
            await write_as_0_1(servers.postgres_dsn(OWNER_ROLE))

    asyncio.run(write())
    return module_dir / "desk"


@pytest.fixture(scope="module")
def own_dir() -> Iterator[Path]:
    """A folder of its own for the operator's servers, beside the one of `module_dir`."""
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def own(own_dir: Path) -> Iterator[Servers]:
    """Servers of the operator's own, with 0.1's tables."""
    with held_in_thread(lambda: servers_in(own_dir)) as servers:
        asyncio.run(write_as_0_1(servers.postgres_dsn(OWNER_ROLE)))
        yield servers


@pytest.mark.parametrize("typed", ["up", "run", "cycle list"])
def test_a_data_directory_of_0_1_is_refused(typed: str, folder: Path, tmp_path: Path) -> None:
    said = CommandLine(folder, tmp_path)(typed)

    assert said.code == 1, said.err
    assert f"the data in {folder} {SAID}" in said.err
    assert "DESKBUS_DATA_DIR=" in said.err
    assert "deskbus export" in said.err
    assert "Traceback" not in said.err


async def test_a_refused_data_directory_is_as_it_was(folder: Path) -> None:
    async with embedded_servers(folder, permissions(), ROLES) as servers:
        assert await found(servers.postgres_dsn(OWNER_ROLE)) == AS_IT_WAS


@pytest.mark.parametrize("typed", ["db migrate", "up", "run"])
def test_a_postgres_of_ones_own_with_tables_of_0_1_is_refused(
    typed: str, own: Servers, tmp_path: Path
) -> None:
    settings = tuple(settings_of(own).environment.items())

    said = CommandLine(tmp_path / "data", tmp_path, settings)(typed)

    assert said.code == 1, said.err
    assert f"the data in database {own.database} {SAID}" in said.err
    assert "Traceback" not in said.err
    assert asyncio.run(found(own.postgres_dsn(OWNER_ROLE))) == AS_IT_WAS


@pytest.mark.parametrize("name", ["orchestrator", "execution", "console"])
def test_a_service_ends_at_once_on_tables_of_0_1(name: str, own: Servers) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", f"services.{name}"],
        env={**environment_of(ROOT), **settings_of(own).environment},
        capture_output=True,
        text=True,
        timeout=EXIT_TIMEOUT_S,
        check=False,
    )

    assert ended.returncode == 1
    assert f"the data in database {own.database} {SAID}" in ended.stdout + ended.stderr
    assert "service.waits" not in ended.stdout + ended.stderr
