"""Migrations: numbered SQL files, each run once, in order, in a transaction of its own.

The advisory lock makes it safe to start several processes at once; the hash of every file that has
run is kept, so that an edited migration is refused instead of silently skipped.

A migration only adds, so that programs from before it go on; one that cannot stands in
`STOP_FIRST`, and is neither run beside such programs nor lived through by them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import structlog

from libs.postgres.pool import ROLES, WRITERS, Pool, connected
from libs.postgres.restored import settle_restored
from libs.runtime.errors import DeskError

MIGRATIONS = Path(__file__).parent / "migrations"
LOCK_KEY = 0x6465736B  # "desk"
LOCK_TIMEOUT_S = 5
"""How long a migration waits for a table that somebody uses: all others wait behind it."""
DEADLOCKS_MAX = 10
"""How often a migration begins again that a running desk's transaction crossed."""

STOP_FIRST: Mapping[int, str] = {}
"""Migrations that programs from before them must not live through, and why."""

RECORD = (
    "create table if not exists schema_migrations ("
    " version int primary key, name text not null, sha256 text not null,"
    " run_at timestamptz not null default now(),"
    " stop_first boolean not null default false)"
)
"""The migrations that have run; `stop_first`: programs that do not know it must not be started."""
RECORDED = (
    "insert into schema_migrations (version, name, sha256, stop_first) values ($1, $2, $3, $4)"
)
BY_0_1 = "select current_database() from schema_migrations where version = 1 and name = 'core'"
"""The database's name, where its tables are those of 0.1: its first migration was called so."""
CONNECTED_WRITERS = (
    "select array_agg(distinct application_name) from pg_stat_activity"
    " where datname = current_database() and application_name = any($1::text[])"
)
FIRST_STOP_AFTER = (
    "select version, name from schema_migrations where version > $1 and stop_first"
    " order by version limit 1"
)

log = structlog.get_logger()


class MigrationChanged(DeskError):
    """The file of a finished migration has changed."""

    code = "migration_changed"


class RolesMissing(DeskError):
    """The database roles do not exist, and this role may not create them."""

    code = "roles_missing"


class WrittenBy01(DeskError):
    """The database has the tables of Deskbus 0.1, which this version does not read."""

    code = "written_by_0_1"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"the data in {place} were written by Deskbus 0.1, which this version can't read; they "
            "are not changed. Start with another folder (DESKBUS_DATA_DIR=...) or, on your own "
            "Postgres, another database; or move this one away. To keep the record of 0.1, run "
            "0.1's own `deskbus export` (docs/upgrading.md)"
        )


class StopTheDeskFirst(DeskError):
    """A migration needs a stopped desk."""

    code = "stop_the_desk_first"


class TablesInUse(DeskError):
    """A migration could not lock a table."""

    code = "tables_in_use"


class SchemaTooOld(DeskError):
    """The database lacks migrations that this program needs."""

    code = "schema_too_old"


class SchemaTooNew(DeskError):
    """The database is from a newer version than this program."""

    code = "schema_too_new"


@dataclass(frozen=True)
class Migration:
    """One file."""

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """The hash that is kept once it has run."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations(directory: Path = MIGRATIONS) -> Sequence[Migration]:
    """The files `NNNN_name.sql`, in order."""
    return [
        Migration(int(path.name[:4]), path.stem[5:], path.read_text())
        for path in sorted(directory.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    ]


async def migrate(dsn: str, directory: Path = MIGRATIONS) -> Sequence[Migration]:
    """Bring the database to the newest version as the role in `dsn`; returns what was run.

    One that was restored from a dump is made ready too: see `libs.postgres.restored`. Where there
    is nothing to do nothing is written, so that a desk starts on a database that is read-only now.

    Raises `WrittenBy01` before anything is changed, `MigrationChanged` where a file that has run
    was edited since, `StopTheDeskFirst`, `TablesInUse` and `RolesMissing`, and as `connected`.
    """
    async with connected(dsn) as connection:
        await connection.execute("select pg_advisory_lock($1)", LOCK_KEY)
        recorded = await connection.fetchval("select to_regclass('schema_migrations') is not null")
        if recorded:
            await _refuse_0_1(connection)
        await _ensure_roles(connection)
        if not recorded:
            await connection.execute(RECORD)
        rows = await connection.fetch("select version, sha256 from schema_migrations")
        done = {row["version"]: row["sha256"] for row in rows}
        waiting = [
            migration for migration in migrations(directory) if not _has_run(migration, done)
        ]
        if done:
            await _require_nobody_beside(connection, waiting)
        run = [await _run(connection, migration) for migration in waiting]
        if await connection.fetchval("select to_regclass('state_events') is not null"):
            await settle_restored(connection)
        return run


async def _refuse_0_1(db: "Pool | asyncpg.Connection[asyncpg.Record]") -> None:
    name = await db.fetchval(BY_0_1)
    if name is not None:
        raise WrittenBy01(f"database {name}")


async def _ensure_roles(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Make the missing roles, without a login: a Postgres of one's own may know one user only, who
    then does everything, and the tables are granted all the same."""
    known = {row["rolname"] for row in await connection.fetch("select rolname from pg_roles")}
    missing = [role for role in ROLES if role not in known]
    try:
        for role in missing:
            await connection.execute(f"create role {role} nologin")
    except asyncpg.InsufficientPrivilegeError as error:
        raise RolesMissing(
            f"this Postgres has no {', '.join(missing)}, and the user of DESKBUS_POSTGRES_DSN may "
            "not create roles: run roles.sql from `deskbus secrets init DIR` as "
            "a superuser first, or migrate once as one"
        ) from error


def _has_run(migration: Migration, done: dict[int, str]) -> bool:
    known = done.get(migration.version)
    if known is not None and known != migration.sha256:
        raise MigrationChanged(
            f"migration {migration.version:04d}_{migration.name} ran with other text than it has "
            "now; restore the file and put the change into a new migration"
        )
    return known is not None


async def _require_nobody_beside(
    connection: "asyncpg.Connection[asyncpg.Record]", waiting: Sequence[Migration]
) -> None:
    """Raise StopTheDeskFirst where one of the migrations is not for those who are connected."""
    breaking = [migration for migration in waiting if migration.version in STOP_FIRST]
    if not breaking:
        return
    names = await connection.fetchval(CONNECTED_WRITERS, list(WRITERS))
    if names:
        first = breaking[0]
        raise StopTheDeskFirst(
            f"migration {first.version:04d}_{first.name} cannot run beside {', '.join(names)}: "
            f"{STOP_FIRST[first.version]}; stop them, migrate, and start them in the new version"
        )


async def require_schema(db: Pool, directory: Path = MIGRATIONS) -> None:
    """Refuse a database that this program does not know. One that only has more than it knows is
    good: so programs of before an upgrade can be started again, and it can be taken back.

    Raises `WrittenBy01`, `SchemaTooOld` and `SchemaTooNew`.
    """
    await _refuse_0_1(db)
    known = migrations(directory)[-1].version
    version = await db.fetchval("select max(version) from schema_migrations")
    if version < known:
        raise SchemaTooOld(
            f"the database is at migration {version} and this program needs {known}: "
            "run `deskbus db migrate` of this version first"
        )
    broke = await db.fetchrow(FIRST_STOP_AFTER, known)
    if broke is not None:
        raise SchemaTooNew(
            f"the database is at migration {version} and this program knows {known}: since "
            f"{broke['version']:04d}_{broke['name']} this program would damage it; start the newer "
            "version, or restore a backup from before (docs/upgrading.md)"
        )


async def _run(connection: "asyncpg.Connection[asyncpg.Record]", migration: Migration) -> Migration:
    try:
        await _apply_again(connection, migration)
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
        raise TablesInUse(
            f"migration {migration.version:04d}_{migration.name} could not lock a table in use "
            f"within {LOCK_TIMEOUT_S} s ({error}); nothing was changed: wait until a backup or an "
            "export has ended, then migrate again"
        ) from error
    log.info("postgres.migrated", version=migration.version, name=migration.name)
    return migration


async def _apply_again(
    connection: "asyncpg.Connection[asyncpg.Record]", migration: Migration
) -> None:
    """Apply; anew where a desk at work held one of the tables and wanted another one."""
    for _ in range(DEADLOCKS_MAX):
        try:
            return await _apply(connection, migration)
        except asyncpg.DeadlockDetectedError:
            log.info("postgres.migration_crossed", version=migration.version)
    return await _apply(connection, migration)


async def _apply(connection: "asyncpg.Connection[asyncpg.Record]", migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute(f"set local lock_timeout = '{LOCK_TIMEOUT_S}s'")
        await connection.execute(migration.sql)
        await connection.execute(
            RECORDED,
            migration.version,
            migration.name,
            migration.sha256,
            migration.version in STOP_FIRST,
        )
