"""Migrations: numbered SQL files, each run once, in order, in a transaction of its own.

The advisory lock makes it safe to start several processes at once; the hash of every file that has
run is kept, so that an edited migration is refused instead of silently skipped.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import structlog

from libs.postgres.pool import CONNECT_TIMEOUT_S, NO_CONNECTION, ROLES, DatabaseNotReachable
from libs.postgres.restored import settle_restored
from libs.runtime.errors import DeskError

MIGRATIONS = Path(__file__).parent / "migrations"
LOCK_KEY = 0x6465736B  # "desk"

log = structlog.get_logger()


class MigrationChanged(DeskError):
    """A migration that has run is not the file of today."""

    code = "migration_changed"


class RolesMissing(DeskError):
    """The roles that tables are granted to are not there, and this one may not make them."""

    code = "roles_missing"


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

    One that was restored from a dump is made ready too: see `libs.postgres.restored`.

    Raises `MigrationChanged` where a file that has run was edited since, `RolesMissing` and
    `DatabaseNotReachable`.
    """
    try:
        connection = await asyncpg.connect(dsn, timeout=CONNECT_TIMEOUT_S)
    except NO_CONNECTION as error:
        raise DatabaseNotReachable(dsn, error) from error
    try:
        await connection.execute("select pg_advisory_lock($1)", LOCK_KEY)
        await _ensure_roles(connection)
        await connection.execute(
            "create table if not exists schema_migrations ("
            " version int primary key, name text not null, sha256 text not null,"
            " run_at timestamptz not null default now())"
        )
        rows = await connection.fetch("select version, sha256 from schema_migrations")
        done = {row["version"]: row["sha256"] for row in rows}
        run = [
            await _run(connection, migration)
            for migration in migrations(directory)
            if not _has_run(migration, done)
        ]
        if await connection.fetchval("select to_regclass('state_events') is not null"):
            await settle_restored(connection)
        return run
    finally:
        await connection.close()


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
            "not create roles: run roles.sql from `python -m services.provisioner.secrets DIR` as "
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


async def _run(connection: "asyncpg.Connection[asyncpg.Record]", migration: Migration) -> Migration:
    async with connection.transaction():
        await connection.execute(migration.sql)
        await connection.execute(
            "insert into schema_migrations (version, name, sha256) values ($1, $2, $3)",
            migration.version,
            migration.name,
            migration.sha256,
        )
    log.info("postgres.migrated", version=migration.version, name=migration.name)
    return migration
