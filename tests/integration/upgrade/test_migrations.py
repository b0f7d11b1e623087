"""What a migration may do to a desk that runs; what a program does on tables it does not know."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from structlog.testing import CapturingLogger

from libs.postgres import migrate as module
from libs.postgres.migrate import (
    MIGRATIONS,
    SchemaTooNew,
    SchemaTooOld,
    StopTheDeskFirst,
    TablesInUse,
    migrate,
    migrations,
    require_schema,
)
from libs.postgres.pool import (
    ORCHESTRATOR_ROLE,
    OWNER_ROLE,
    WRITERS,
    DatabaseUnavailable,
    open_pool,
)
from libs.postgres.retention import retain_models
from libs.runtime.settings import Settings
from libs.servers.embedded import Servers
from libs.servers.embedded_thread import held_in_thread
from libs.servers.postgres_server import SUPERUSER
from tests.integration.upgrade.conftest import servers_in, settings_of
from tests.integration.upgrade.old_release import ROOT, environment_of

NEWEST = migrations()[-1].version
NEXT = NEWEST + 1
ADDS = "alter table cycles add column mood text"
EXIT_TIMEOUT_S = 60
WAIT_TIMEOUT_S = 30
POLL_S = 0.01
READ_ONLY = "alter database {} set default_transaction_read_only"
SOMEBODY_WAITS = """
select exists (select from pg_locks where relation = 'operations'::regclass and not granted)
"""


@dataclass
class Tables:
    """A database at today's version, and a folder of migrations that may become more."""

    servers: Servers
    directory: Path

    @property
    def owner(self) -> str:
        return self.servers.postgres_dsn(OWNER_ROLE)

    @property
    def settings(self) -> Settings:
        return settings_of(self.servers)

    def add(self, sql: str) -> None:
        """The migration after the newest."""
        (self.directory / f"{NEXT:04d}_next.sql").write_text(sql)

    async def migrate(self) -> list[int]:
        """The versions that ran now."""
        return [each.version for each in await migrate(self.owner, self.directory)]

    async def require(self, directory: Path = MIGRATIONS) -> None:
        """What a program with these migrations does when it starts, under the narrowest role."""
        dsn = self.servers.postgres_dsn(ORCHESTRATOR_ROLE)
        async with open_pool(dsn, size_max=1) as pool:
            await require_schema(pool, directory)


@pytest.fixture(scope="module")
def held(module_dir: Path) -> Iterator[Servers]:
    """One pair of servers for all tests here; each has a database of its own."""
    with held_in_thread(lambda: servers_in(module_dir)) as running:
        yield running


@pytest.fixture
async def tables(held: Servers, tmp_path: Path) -> AsyncIterator[Tables]:
    directory = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, directory)
    own = replace(held, database=f"own_{uuid4().hex}")
    db = await asyncpg.connect(held.postgres_dsn(SUPERUSER))
    await db.execute(f"create database {own.database} owner {OWNER_ROLE}")
    made = Tables(own, directory)
    await migrate(made.owner)
    yield made
    await db.execute(f"drop database {own.database} with (force)")
    await db.close()


@dataclass
class Crossing:
    """A desk that takes two tables in one order, and a migration that takes them in the other."""

    tables: Tables
    desk: "asyncpg.Connection[asyncpg.Record]"

    async def meet(self) -> tuple["asyncio.Task[list[int]]", "asyncio.Task[int]"]:
        """Each holds what the other waits for. Postgres ends the migration: the desk is patient."""
        self.tables.add(f"{ADDS}; {ADDS.replace('cycles', 'operations')}")
        await self.desk.execute("set deadlock_timeout = '1min'")
        work = self.desk.transaction()
        await work.start()
        await self.desk.execute("lock table operations in row exclusive mode")
        migrating = asyncio.create_task(self.tables.migrate())
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while not await self.desk.fetchval(SOMEBODY_WAITS):  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)

        async def go_on() -> int:
            found: int = await self.desk.fetchval("select count(*) from cycles")
            await work.commit()
            return found

        return migrating, asyncio.create_task(go_on())


@pytest.fixture
async def crossing(tables: Tables) -> AsyncIterator[Crossing]:
    desk = await asyncpg.connect(tables.servers.postgres_dsn(SUPERUSER))
    yield Crossing(tables, desk)
    await desk.close()


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> Mapping[int, str]:
    """The migration after the newest is one that programs from before must not live through."""
    stop_first = {NEXT: "it would do harm"}
    monkeypatch.setattr(module, "STOP_FIRST", stop_first)
    return stop_first


@pytest.fixture
async def read_only(tables: Tables) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """The database writes nothing, until the connection given ends that."""
    db = await asyncpg.connect(tables.servers.postgres_dsn(SUPERUSER))
    await db.execute(f"{READ_ONLY} = on".format(tables.servers.database))
    yield db
    await db.close()


async def test_with_nothing_to_run_nothing_is_written(
    tables: Tables, read_only: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    assert await tables.migrate() == []


async def test_a_database_that_writes_nothing_is_an_outage_like_any_other(
    tables: Tables, read_only: "asyncpg.Connection[asyncpg.Record]"
) -> None:
    tables.add(ADDS)
    with pytest.raises(DatabaseUnavailable, match="ReadOnlySQLTransactionError"):
        await tables.migrate()
    with pytest.raises(DatabaseUnavailable, match="ReadOnlySQLTransactionError"):
        await retain_models(tables.owner, 1)
    await read_only.execute("set default_transaction_read_only = off")
    await read_only.execute(f"{READ_ONLY} = off".format(tables.servers.database))
    assert await tables.migrate() == [NEXT]


async def test_a_migration_that_adds_runs_beside_those_who_write(tables: Tables) -> None:
    tables.add(ADDS)

    async with open_pool(tables.owner, size_max=1, name=WRITERS[0]):
        assert await tables.migrate() == [NEXT]


@pytest.mark.parametrize("writer", WRITERS)
async def test_a_migration_that_breaks_waits_until_those_who_write_have_gone(
    writer: str, tables: Tables, breaks: Mapping[int, str]
) -> None:
    tables.add(ADDS)

    async with open_pool(tables.owner, size_max=1, name=writer):
        with pytest.raises(StopTheDeskFirst, match=f"{writer}: it would do harm; stop them"):
            await tables.migrate()
    async with open_pool(tables.owner, size_max=1, name="somebody who reads"):
        assert await tables.migrate() == [NEXT]


async def test_a_migration_waits_for_a_table_only_so_long_and_then_changes_nothing(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_TIMEOUT_S", 0.1)
    tables.add(f"create table moods (); {ADDS}")
    reader = await asyncpg.connect(tables.owner)

    async with reader.transaction():
        await reader.execute("lock table cycles in access share mode")  # as pg_dump does
        with pytest.raises(TablesInUse, match="nothing was changed"):
            await tables.migrate()
        assert await reader.fetchval("select to_regclass('moods')") is None
    await reader.close()
    assert await tables.migrate() == [NEXT]


async def test_a_migration_that_crosses_a_desk_at_work_is_begun_again(
    crossing: Crossing, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CapturingLogger()
    monkeypatch.setattr(module, "log", log)

    migrating, counted = await crossing.meet()

    assert (await migrating, await counted) == ([NEXT], 0)  # and the desk lost nothing
    assert [call.args[0] for call in log.calls].count("postgres.migration_crossed") == 1


async def test_a_migration_that_crosses_too_often_says_who_is_in_its_way(
    crossing: Crossing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DEADLOCKS_MAX", 0)

    migrating, counted = await crossing.meet()

    with pytest.raises(TablesInUse, match="nothing was changed"):
        await migrating
    assert await counted == 0


async def test_a_program_starts_on_tables_that_have_more_than_it_knows(tables: Tables) -> None:
    tables.add(ADDS)
    await tables.migrate()

    await tables.require()


async def test_a_program_does_not_start_on_tables_that_lack_what_it_needs(tables: Tables) -> None:
    tables.add(ADDS)

    with pytest.raises(SchemaTooOld, match=f"at migration {NEWEST} and this program needs {NEXT}"):
        await tables.require(tables.directory)


async def test_a_program_does_not_start_on_tables_that_it_would_harm(
    tables: Tables, breaks: Mapping[int, str]
) -> None:
    tables.add(ADDS)
    await tables.migrate()

    with pytest.raises(SchemaTooNew, match=f"since {NEXT:04d}_next this program would damage it"):
        await tables.require()
    await tables.require(tables.directory)  # the program that brought it


@pytest.mark.parametrize("name", ["orchestrator", "execution", "console"])
async def test_a_service_that_would_harm_the_tables_ends_with_one_clear_line(
    name: str, tables: Tables, breaks: Mapping[int, str]
) -> None:
    tables.add(ADDS)
    await tables.migrate()

    ended = await asyncio.to_thread(service_ended, name, tables.settings)

    assert ended.returncode == 1
    assert f"knows {NEWEST}: since {NEXT:04d}_next" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


def service_ended(name: str, settings: Settings) -> "subprocess.CompletedProcess[str]":
    """One service as a process, to its end."""
    return subprocess.run(
        [sys.executable, "-m", f"services.{name}"],
        env={**environment_of(ROOT), **settings.environment},
        capture_output=True,
        text=True,
        timeout=EXIT_TIMEOUT_S,
        check=False,
    )


def test_what_breaks_is_a_migration_that_there_is() -> None:
    assert set(module.STOP_FIRST) <= {each.version for each in migrations()}
