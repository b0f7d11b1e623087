"""Connections: one pool a process, as that process's own role."""

import socket
import ssl
from asyncio import Transport
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final, TypeGuard
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import asyncpg
from asyncpg import (
    PostgresError,
    Record,
    SerializationError,
    UniqueViolationError,
)
from asyncpg.pool import PoolAcquireContext

from libs.keys import tls
from libs.runtime.dsn import dsn_of
from libs.runtime.errors import DeskError, Unavailable
from libs.runtime.proxies import is_loopback
from libs.runtime.unreachable import unreachable
from libs.telemetry import readiness

__all__ = [
    "DatabaseUnavailable",
    "Pool",
    "PoolConnection",
    "PostgresError",
    "Record",
    "SerializationError",
    "UniqueViolationError",
    "connected",
    "is_not_storable",
    "is_outage",
    "open_pool",
]

# The server cannot be reached, does not let us in, has no room, or can write nothing now. Whatever
# is asked of it then is asked again.
_OUTAGES = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,  # the connection is closed
    asyncpg.InternalClientError,  # a connection that the server ends while it is being used
    asyncpg.PostgresConnectionError,  # 08
    asyncpg.IdleInTransactionSessionTimeoutError,  # 25P03
    asyncpg.ReadOnlySQLTransactionError,  # 25006: no room left there, or a standby by now
    asyncpg.InvalidAuthorizationSpecificationError,  # 28
    asyncpg.InvalidCatalogNameError,  # 3D000
    asyncpg.TransactionRollbackError,  # 40: deadlock, serialization
    asyncpg.InsufficientResourcesError,  # 53: disk, memory, connections
    asyncpg.ObjectNotInPrerequisiteStateError,  # 55: a lock that is not to be had
    asyncpg.OperatorInterventionError,  # 57: shut down, crashed, starting, cancelled
    asyncpg.PostgresSystemError,  # 58
)

# What goes for one connection goes for all of a pool: they lead to what is a standby by now, or to
# a host that is gone, where each would break only when it is used.
_OTHERS_TOO = (asyncpg.ReadOnlySQLTransactionError, asyncpg.PostgresConnectionError)

_DAMAGED = (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError)  # XX001, XX002

# Postgres gives some errors of its disk a state that has another meaning elsewhere: 42501 where the
# file system is read-only, XX000 where a quota is used up, 54000 where no transaction id is left
# until somebody vacuums. The source file of the error tells them apart.
_AMBIGUOUS = (
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InternalServerError,
    asyncpg.ProgramLimitExceededError,
)
_STORAGE_SOURCES = frozenset(
    ("md.c", "fd.c", "buffile.c", "slru.c", "xlog.c", "varsup.c", "multixact.c")
)

# The fault is in what was to be written. Any other error is the database's or the program's.
_NOT_STORABLE = (
    asyncpg.DataError,  # 22
    asyncpg.IntegrityConstraintViolationError,  # 23
    asyncpg.ProgramLimitExceededError,  # 54
)

PORT = 5432
POOL_SIZE_MAX = 8
CONNECTION_QUERIES_MAX = 50_000
CONNECTION_IDLE_S_MAX = 300.0
"""A connection is replaced after so many statements, and closed after so long without any."""
CONNECT_TIMEOUT_S = 10.0
"""For all servers of an address together."""
COMMAND_TIMEOUT_S = 30.0
SILENT_S_MAX = 10
"""A connection breaks when the host of the server has been silent for so long."""
SILENCE: Final[Mapping[str, int]] = MappingProxyType(
    {
        "SO_KEEPALIVE": 1,
        "TCP_KEEPIDLE": 3,  # s until the first question to a host that we wait for
        "TCP_KEEPINTVL": 3,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": SILENT_S_MAX * 1000,  # ms for what was sent, and for all questions
    }
)
"""Socket options by which the kernel notices that; where it has only some of them, by those."""
SILENCE_OF_CLIENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tcp_keepalives_idle": str(SILENCE["TCP_KEEPIDLE"]),
        "tcp_keepalives_interval": str(SILENCE["TCP_KEEPINTVL"]),
        "tcp_keepalives_count": str(SILENCE["TCP_KEEPCNT"]),
        "tcp_user_timeout": str(SILENCE["TCP_USER_TIMEOUT"]),
    }
)
"""The same for the server's end. By itself it keeps the session of a host that vanished for two
hours, and with a result that nobody reads the locks of its transaction too."""
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

CAN_COMMIT = "select can_commit()"
"""Fails where nothing can be committed; it commits, and changes no row."""

OWNER_ROLE = "deskbus_owner"
ORCHESTRATOR_ROLE = "deskbus_orchestrator"
EXECUTION_ROLE = "deskbus_execution"
CONSOLE_ROLE = "deskbus_console"
STUDY_ROLE = "deskbus_study"
ROLES = (OWNER_ROLE, ORCHESTRATOR_ROLE, EXECUTION_ROLE, CONSOLE_ROLE, STUDY_ROLE)
CHECKED_MODES = ("verify-ca", "verify-full")
"""Values of `sslmode` with which a server must show a certificate."""
WRITERS = ("deskbus_orchestrator", "deskbus-execution")
"""What the pools of those who write are called; an own Postgres may know one user for all."""


def is_outage(error: BaseException | None) -> TypeGuard[BaseException]:
    """Whether Postgres could not do it now, for no fault of what was asked."""
    if isinstance(error, _DAMAGED):
        return False
    of_storage = getattr(error, "server_source_filename", None) in _STORAGE_SOURCES
    return isinstance(error, _OUTAGES) or (of_storage and isinstance(error, _AMBIGUOUS))


def is_not_storable(error: BaseException) -> bool:
    """Whether the fault is in what was to be written."""
    return isinstance(error, _NOT_STORABLE) and not is_outage(error)


class DatabaseUnavailable(Unavailable):
    """The connection to Postgres was lost, or Postgres is full or read-only."""

    code = "database_unavailable"


class DatabaseDamaged(Unavailable):
    """Postgres found its own files damaged. Whoever works waits: nothing is wrong with the work."""

    code = "database_damaged"

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            f"Postgres reports damaged data ({type(error).__name__}: {error}): stop the desk, keep "
            "a copy of its data directory, and restore the newest backup into a new one: "
            "`DESKBUS_DATA_DIR=NEW deskbus db restore FILE`"
        )


class DatabaseNotReachable(Unavailable):
    """Postgres does not answer at the given address, or no login is possible."""

    code = "database_not_reachable"

    def __init__(self, dsn: str, error: BaseException) -> None:
        parts = urlsplit(dsn)
        socket = parse_qs(parts.query).get("host", ["its socket"])[-1]
        address = parts.netloc.rpartition("@")[2] or socket
        todo = _todo(dsn, error)
        super().__init__(
            f"cannot log in to Postgres at {address} ({type(error).__name__}: {error}); {todo}"
            if todo
            else unreachable("Postgres", address, "DESKBUS_POSTGRES_DSN", error)
        )


class PoolConnection(asyncpg.Connection):  # type: ignore[misc] # asyncpg says no types
    """asyncpg's, but that it breaks within SILENT_S_MAX (plus one question) when its server's host
    vanishes. By itself it waits until the time limit of a statement and then of its cancellation,
    because a host without power refuses nothing."""

    def __init__(self, protocol: Any, transport: Transport, *rest: Any) -> None:
        super().__init__(protocol, transport, *rest)
        if not transport.is_closing():
            notice_silence(transport.get_extra_info("socket"))


def notice_silence(sock: socket.socket) -> None:
    """Set SILENCE on a TCP socket; one of another kind stays as it is."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    for name, value in SILENCE.items():
        level = socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(level, option, value)


class Pool(asyncpg.Pool):  # type: ignore[misc] # asyncpg says no types
    """asyncpg's, but that an outage leaves every block and call as `DatabaseUnavailable`: whoever
    uses a pool need not know by what errors Postgres and the network say it."""

    def acquire(self, *, timeout: float | None = None) -> "_Acquired":
        """A connection for an `async with` block."""
        return _Acquired(self, timeout)


class _Acquired(PoolAcquireContext):  # type: ignore[misc]
    async def __aenter__(self) -> Any:
        try:
            return await super().__aenter__()
        except _OUTAGES as error:
            raise _unavailable(error) from error

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if isinstance(error, _OTHERS_TOO):
            await self.pool.expire_connections()
        try:
            await super().__aexit__(kind, error, trace)
        except _OUTAGES as lost:
            if error is None:
                return  # the block has ended, and was committed: only its connection is lost
            raise _unavailable(error if is_outage(error) else lost) from lost
        _raise_if_lost(error)


def _raise_if_lost(error: BaseException | None) -> None:
    """Raise an outage or damaged data as `Unavailable`; anything else stays as it is."""
    if isinstance(error, _DAMAGED) or is_outage(error):
        raise _unavailable(error) from error


def _unavailable(error: BaseException) -> Unavailable:
    if isinstance(error, _DAMAGED):
        return DatabaseDamaged(error)
    return DatabaseUnavailable(f"Postgres cannot be used now ({type(error).__name__}: {error})")


class PasswordUnreadable(DeskError):
    """A role's password file cannot be read."""

    code = "password_unreadable"

    def __init__(self, file: Path, error: OSError) -> None:
        super().__init__(
            f"{file} cannot be read ({error.strerror}): it must belong to this process' user; in "
            "containers set DESKBUS_UID and DESKBUS_GID to the owner of the secrets (.env)"
        )


def _todo(dsn: str, error: BaseException) -> str:
    """The advice for an error of a server that answers; empty for others."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if text := tls.wrong_time(error):
            return text
        believed = parse_qs(urlsplit(dsn).query).get("sslrootcert", ["the system's"])[0]
        return (
            f"its certificate is not from the CAs in {believed}, or does not name this address: "
            f"use the {tls.CA_FILE} of the same `deskbus secrets init --tls`"
        )
    if "rejected SSL" in str(error):
        return "switch `ssl` on there, or leave sslmode out of DESKBUS_POSTGRES_DSN"
    if "no encryption" in str(error):
        return "it may require TLS: add ?sslmode=verify-full to DESKBUS_POSTGRES_DSN"
    todos = {
        asyncpg.InvalidAuthorizationSpecificationError: "does DESKBUS_SECRETS_DIR hold the "
        "passwords of this server?",
        asyncpg.InvalidCatalogNameError: "name its database in DESKBUS_POSTGRES_DSN",
        asyncpg.PostgresError: "is DESKBUS_POSTGRES_DSN right?",
    }
    return next((todo for kind, todo in todos.items() if isinstance(error, kind)), "")


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
        return dsn_of(parts)
    address = parts.netloc.rpartition("@")[2]
    try:
        password = quote(secret.read_text().strip(), safe="")
    except OSError as error:
        raise PasswordUnreadable(secret, error) from error
    return dsn_of(parts._replace(netloc=f"{role}:{password}@{address}"))


def _with_authorities(dsn: str, secrets_dir: Path) -> str:
    parts = urlsplit(dsn)
    options = parse_qs(parts.query)
    ca = tls.ca_file(secrets_dir)
    if (
        ca is None
        or "sslrootcert" in options
        or options.get("sslmode", [""])[-1] not in CHECKED_MODES
    ):
        return dsn
    query = f"{parts.query}&{urlencode({'sslrootcert': ca.absolute()}, quote_via=quote)}"
    return dsn_of(parts._replace(query=query))


def explicit(dsn: str) -> Mapping[str, Any]:
    """Arguments for asyncpg, so that no `PG...` variable of the environment changes how a server on
    this machine is spoken to: without TLS, where `dsn` says nothing else. For servers elsewhere the
    variables fill in what `dsn` leaves out, as for all of Postgres' own programs.
    """
    parts = urlsplit(dsn)
    places = [urlsplit(f"//{place}") for place in parts.netloc.rpartition("@")[2].split(",")]
    if not all(is_loopback(place.hostname or "") for place in places):
        return {}
    options = parse_qs(parts.query)
    defaults = {
        "sslmode": ("ssl", False),
        "sslnegotiation": ("direct_tls", False),
        "target_session_attrs": ("target_session_attrs", "any"),
        "gsslib": ("gsslib", "gssapi"),
    }
    return {
        "host": [place.hostname for place in places],
        "port": [place.port or PORT for place in places],
        **dict(argument for option, argument in defaults.items() if option not in options),
    }


class _Servers:
    """The servers of an address, each with its share of CONNECT_TIMEOUT_S; the one that was used
    last is asked first, and one that did not answer last. asyncpg has one time limit for all of
    them, which a host that is cut off uses up: no server after it would ever be asked."""

    def __init__(self, dsn: str) -> None:
        parts = urlsplit(dsn)
        login, at, places = parts.netloc.rpartition("@")
        self._dsns = [
            dsn_of(parts._replace(netloc=f"{login}{at}{place}")) for place in places.split(",")
        ]
        self._here = bool(explicit(dsn))

    async def connect(self, *_: str, **options: Any) -> PoolConnection:
        """A connection to the first server that takes it; else raises the first one's error."""
        errors: list[BaseException] = []
        timeout_s = CONNECT_TIMEOUT_S / len(self._dsns)
        for dsn in list(self._dsns):
            arguments = {
                "connection_class": PoolConnection,
                **options,
                **(explicit(dsn) if self._here else {}),
            }
            try:
                connection: PoolConnection = await asyncpg.connect(
                    dsn, timeout=timeout_s, **arguments
                )
            except _OUTAGES as error:
                errors.append(error)
                if isinstance(error, TimeoutError):
                    self._dsns.sort(key=dsn.__eq__)
            else:
                self._dsns.sort(key=dsn.__ne__)
                return connection
        raise errors[0]


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[PoolConnection]:
    """One connection, for work on the tables themselves. Raises `DatabaseNotReachable`; an outage
    while it is used leaves the block as `DatabaseUnavailable`, as with a pool."""
    try:
        connection = await _Servers(dsn).connect()
    except _OUTAGES as error:
        raise DatabaseNotReachable(dsn, error) from error
    try:
        yield connection
    except Exception as error:
        _raise_if_lost(error)
        raise
    finally:
        await connection.close()


async def _as_it_is(_: PoolConnection) -> None:
    """asyncpg has rolled back what was open; there is nothing else to undo."""


@asynccontextmanager
async def open_pool(
    dsn: str,
    *,
    size_max: int = POOL_SIZE_MAX,
    name: str = "deskbus",
    transactions_only: bool = False,
    writes: bool = False,
) -> AsyncIterator[Pool]:
    """A pool of at most `size_max` connections; raises `DatabaseNotReachable`.

    With `transactions_only` a connection goes back without a word to the server, but for one that
    is in a transaction: whoever uses it changes nothing of its session, and holds no lock longer.

    While it is open, the process is ready only where the server answers; with `writes` only where
    it commits.
    """
    pool = Pool(
        dsn,
        connection_class=PoolConnection,
        record_class=Record,
        # None is kept open for its own sake: asyncpg would say so of each one that it cannot open.
        min_size=0,
        max_size=size_max,
        max_queries=CONNECTION_QUERIES_MAX,
        max_inactive_connection_lifetime=CONNECTION_IDLE_S_MAX,
        reset=_as_it_is if transactions_only else None,
        loop=None,
        connect=_Servers(dsn).connect,
        command_timeout=COMMAND_TIMEOUT_S,
        server_settings={
            "application_name": name,
            **PLANNING,
            **SILENCE_OF_CLIENTS,
            "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_S}s",
        },
    )
    try:
        await pool
        async with pool.acquire():
            pass
    except DatabaseUnavailable as error:
        pool.terminate()
        raise DatabaseNotReachable(dsn, error.__cause__ or error) from error

    needed = CAN_COMMIT if writes else "select 1"

    async def problem() -> str:
        await pool.fetchval(needed)
        return ""

    try:
        with readiness.checked(f"postgres {name}", problem):
            yield pool
    finally:
        pool.terminate()
