"""Connections: one pool a process, as that process's own role."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit

import asyncpg
from asyncpg import (
    Connection,
    DataError,
    Pool,
    PostgresError,
    Record,
    SerializationError,
    UniqueViolationError,
)

from libs.runtime import tls, watch
from libs.runtime.errors import DeskError

__all__ = [
    "Connection",
    "DataError",
    "Pool",
    "PostgresError",
    "Record",
    "SerializationError",
    "UniqueViolationError",
    "open_pool",
]

# A call that could not reach the server, lost it, or met a fault that is not its own data's: the
# work is to be tried again.
UNAVAILABLE = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that the server ends while it is being used
    asyncpg.PostgresConnectionError,  # 08
    asyncpg.IdleInTransactionSessionTimeoutError,  # 25P03
    asyncpg.TransactionRollbackError,  # 40: deadlock, serialization
    asyncpg.InsufficientResourcesError,  # 53: disk, memory, connections
    asyncpg.OperatorInterventionError,  # 57: shut down, crashed, starting, cancelled
    asyncpg.PostgresSystemError,  # 58
)

# There is no server, or it knows neither this user and password nor this database.
NO_CONNECTION = (
    *UNAVAILABLE,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)

POOL_SIZE_MAX = 8
CONNECT_TIMEOUT_S = 10.0
COMMAND_TIMEOUT_S = 30.0
IDLE_IN_TRANSACTION_S = 5
"""A process that is frozen inside a transaction loses it, or its locks would freeze all others."""
PLANNING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "jit": "off",
        # A plan is made once, and often while its table is empty: then reading it whole looks
        # cheapest, and stays the plan until the table is analysed. Statements here have an index
        # for their key; those that have none read the table all the same.
        "plan_cache_mode": "force_generic_plan",
        "enable_seqscan": "off",
    }
)
"""How Postgres plans the desk's statements."""

OWNER_ROLE = "deskbus_owner"
ORCHESTRATOR_ROLE = "deskbus_orchestrator"
EXECUTION_ROLE = "deskbus_execution"
CONSOLE_ROLE = "deskbus_console"
ROLES = (OWNER_ROLE, ORCHESTRATOR_ROLE, EXECUTION_ROLE, CONSOLE_ROLE)
CHECKED_MODES = ("verify-ca", "verify-full")
"""Values of `sslmode` with which a server must show a certificate."""
WRITERS = ("deskbus_orchestrator", "deskbus-execution")
"""What the pools of those who write are called; an own Postgres may know one user for all."""


class DatabaseNotReachable(DeskError):
    """Postgres does not answer at the given address, or does not let us in."""

    code = "database_not_reachable"

    def __init__(self, dsn: str, error: Exception) -> None:
        address = urlsplit(dsn).netloc.rpartition("@")[2]
        super().__init__(
            f"Postgres at {address} does not let us in ({type(error).__name__}: {error}); "
            f"{_todo(dsn, error)}"
        )


class PasswordUnreadable(DeskError):
    """A role's password is there and cannot be read."""

    code = "password_unreadable"

    def __init__(self, file: Path, error: OSError) -> None:
        super().__init__(
            f"{file} cannot be read ({error.strerror}): it must belong to this process' user; in "
            "containers set DESKBUS_UID and DESKBUS_GID to the owner of the secrets (.env)"
        )


def _todo(dsn: str, error: Exception) -> str:
    """What to do, by what went wrong."""
    if isinstance(error, ssl.SSLCertVerificationError):
        believed = parse_qs(urlsplit(dsn).query).get("sslrootcert", ["the system's"])[0]
        return (
            f"its certificate is not of the authorities in {believed}, or does not name this "
            f"address: take the {tls.CA_FILE} of the same `deskbus secrets init --tls`"
        )
    if "rejected SSL" in str(error):
        return "switch `ssl` on there, or leave sslmode out of DESKBUS_POSTGRES_DSN"
    if "no encryption" in str(error):
        return "it may want TLS: add ?sslmode=verify-full to DESKBUS_POSTGRES_DSN"
    return "is it running, and is DESKBUS_POSTGRES_DSN right?"


def dsn_for(dsn: str, role: str, secrets_dir: Path) -> str:
    """`dsn` as `role`, where the secrets directory has that role's password; else as it is.

    An own Postgres may be used with one all-powerful user: then least privilege is the operator's.
    Where `dsn` asks for a certificate to be checked (`sslmode=verify-full` or `verify-ca`) and does
    not say by which authorities, it is by those of the secrets directory. Raises
    `PasswordUnreadable`.
    """
    parts = urlsplit(_with_authorities(dsn, secrets_dir))
    secret = secrets_dir / f"postgres_{role}.password"
    if not secret.exists():
        return urlunsplit(parts)
    address = parts.netloc.rpartition("@")[2]
    try:
        password = quote(secret.read_text().strip(), safe="")
    except OSError as error:
        raise PasswordUnreadable(secret, error) from error
    return urlunsplit(parts._replace(netloc=f"{role}:{password}@{address}"))


def _with_authorities(dsn: str, secrets_dir: Path) -> str:
    parts = urlsplit(dsn)
    given = parse_qs(parts.query)
    ca = tls.ca_file(secrets_dir)
    if ca is None or "sslrootcert" in given or given.get("sslmode", [""])[-1] not in CHECKED_MODES:
        return dsn
    query = f"{parts.query}&{urlencode({'sslrootcert': ca.absolute()})}"
    return urlunsplit(parts._replace(query=query))


@asynccontextmanager
async def open_pool(
    dsn: str, *, size_max: int = POOL_SIZE_MAX, name: str = "deskbus"
) -> AsyncIterator[Pool]:
    """A pool of at most `size_max` connections; raises `DatabaseNotReachable`.

    While it is open, the process is ready only where the server answers.
    """
    try:
        pool = await asyncpg.create_pool(
            dsn,
            min_size=1,
            max_size=size_max,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=COMMAND_TIMEOUT_S,
            server_settings={
                "application_name": name,
                **PLANNING,
                "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_S}s",
            },
        )
    except NO_CONNECTION as error:
        raise DatabaseNotReachable(dsn, error) from error

    async def problem() -> str:
        await pool.fetchval("select 1")
        return ""

    try:
        with watch.checked(f"postgres {name}", problem):
            yield pool
    finally:
        pool.terminate()
