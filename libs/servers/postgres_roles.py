"""The database and the login roles of an embedded Postgres, made through its own psql."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from libs.runtime.ports import LOOPBACK
from libs.servers.postgres_server import ENVIRONMENT, SUPERUSER, PostgresError

SQL_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 10

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_PASSWORD = re.compile(r"[A-Za-z0-9_-]+")

# A failing statement is written to the server's log, and these hold passwords.
_KEEP_OUT_OF_THE_LOG = "SET log_statement = 'none'; SET log_min_error_statement = 'panic';\n"
_ROLE_SQL = """
SELECT 'CREATE ROLE "{role}"'
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') \\gexec
ALTER ROLE "{role}" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS
      PASSWORD '{password}';
"""
_DATABASE_SQL = """
SELECT 'CREATE DATABASE "{database}"'
 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{database}') \\gexec
ALTER DATABASE "{database}" OWNER TO "{owner}";
REVOKE ALL ON DATABASE "{database}", postgres, template1 FROM PUBLIC;
"""
# What anybody may else do in a database that he may connect to: fill its disk.
_LARGE_OBJECTS_SQL = """
\\connect "{database}"
DO $$ DECLARE found regprocedure; BEGIN
    FOR found IN SELECT oid FROM pg_proc
        WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ '^lo(_|read$|write$)'
    LOOP EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', found); END LOOP;
END $$;
"""
_GRANT_SQL = 'GRANT CONNECT ON DATABASE "{database}" TO "{role}";\n'


@dataclass(frozen=True)
class PsqlLogin:
    """The login of a role through psql. The password is in no repr."""

    psql: Path
    port: int
    user: str
    password: str = field(repr=False)
    database: str = "postgres"
    host: str = LOOPBACK


async def ensure_roles(
    superuser: PsqlLogin,
    *,
    passwords: Mapping[str, str],
    database: str,
    owner: str | None = None,
) -> None:
    """Create what is missing of the login roles and the database, and set the roles' passwords.

    `passwords` is by role name. `owner` is the role that owns the database and may create schemas
    in it (None: the superuser). The roles may connect to this database and to no other; they start
    without rights on tables. Repeating it changes nothing. Raises PostgresError.
    """
    await run_sql(superuser, roles_sql(passwords, database, owner or SUPERUSER))


def roles_sql(passwords: Mapping[str, str], database: str, owner: str) -> str:
    """The SQL, for psql, that makes the roles and the database; it holds the passwords.

    Raises ValueError for names and passwords outside their alphabets.
    """
    _check_names([database, owner, *passwords])
    # Names and passwords were checked against their alphabets, so they can stand in quotes.
    return "".join(
        [
            _KEEP_OUT_OF_THE_LOG,
            *(
                _ROLE_SQL.format(role=r, password=_safe_password(p, r))
                for r, p in passwords.items()
            ),
            _DATABASE_SQL.format(database=database, owner=owner),
            *(_GRANT_SQL.format(database=database, role=role) for role in passwords),
            _LARGE_OBJECTS_SQL.format(database=database),
        ]
    )


def _safe_password(password: str, role: str) -> str:
    if not _PASSWORD.fullmatch(password):
        raise ValueError(f"The password of role {role} has characters that are not URL-safe.")
    return password


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a name for a role or database: use a-z, 0-9 and '_'."
            )


async def run_sql(login: PsqlLogin, sql: str) -> str:
    """Run SQL through psql and return its plain output; PostgresError with psql's words.

    The SQL goes through stdin and the password through the environment, so that neither shows in
    a list of processes. Settings of the caller's own psql and libpq have no effect.
    """
    options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--no-password"]
    options += ["--set=ON_ERROR_STOP=1", "--set=VERBOSITY=terse"]
    options += [f"--host={login.host}", f"--port={login.port}"]
    options += [f"--username={login.user}", f"--dbname={login.database}"]
    process = await asyncio.create_subprocess_exec(
        login.psql,
        *options,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            **ENVIRONMENT,
            "PGPASSWORD": login.password,
            "PGCONNECT_TIMEOUT": str(CONNECT_TIMEOUT_S),
        },
    )
    try:
        async with asyncio.timeout(SQL_TIMEOUT_S):
            output, words = await process.communicate(sql.encode())
    except TimeoutError as error:
        raise PostgresError(
            f"Postgres on {login.host}:{login.port} did not answer user {login.user} within "
            f"{SQL_TIMEOUT_S:.0f} s. See its log in the data directory."
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise PostgresError(
            f"Postgres on {login.host}:{login.port} refused user {login.user}: "
            f"{words.decode(errors='replace').strip()}"
        )
    return output.decode().strip()
