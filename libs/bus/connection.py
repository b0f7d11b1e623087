"""One connection a process, under that process's own key."""

import asyncio
import secrets
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats.errors
import structlog
from nats.aio.client import Client
from nats.nuid import NUID
from nats.protocol.parser import PERMISSIONS_ERR

from libs.keys import tls
from libs.keys.credentials import CredentialError, nkey_seed_path, public_key_in
from libs.runtime.errors import DeskError, Unavailable
from libs.runtime.unreachable import unreachable
from libs.telemetry import readiness

__all__ = [
    "BusConnection",
    "BusLost",
    "BusNotReachable",
    "Client",
    "connect",
    "flush",
    "inbox_prefix",
    "options",
    "watched",
    "within",
]

CONNECT_TIMEOUT_S = 10.0
"""All attempts together, of a service that starts."""
ATTEMPT_TIMEOUT_S = 4.0
"""One attempt: a handshake with a server that is killed meanwhile hangs, the next one does not."""
CANCEL_AGAIN_S = 0.1
"""Between two cancellations of an attempt that loses one."""
RECONNECT_WAIT_S = 0.1
PING_EVERY_S = 4
"""A server whose host vanishes is given up after two unanswered pings: within three times this."""
REFUSED_WAIT_S_MAX = 10.0
"""Between two tries of a key that was let in before and is not now."""
AUTHORIZATION = "authorization violation"
KEY_FULL = "maximum account active connections exceeded"
"""What nats-server says where a key's share of its connections is in use."""
ERRORS_KEPT_MAX = 64
ANSWERS_WITHIN_S = 1.0
"""A process is ready only where its server answers as fast."""
NAME_BYTES = 16
FLUSH_GIVEN_UP_S = 3_600
"""By then the connection is another one, and its late answer cannot come any more."""

log = structlog.get_logger()


class BusNotReachable(Unavailable):
    """NATS does not answer at the given address, or refuses the key."""

    code = "bus_not_reachable"


class BusKeyRefused(BusNotReachable):
    """NATS answers and does not know the key."""


class NoConnectionLeft(BusNotReachable):
    """NATS knows the key, and as many connections as the key may hold are open."""

    def __init__(self, identity: str) -> None:
        super().__init__(
            f"NATS has no connection left for {identity!r}: programs with this key hold all that "
            "one key may have. End some of them; if they are not yours, the key is stolen: replace "
            "it (docs/security.md)"
        )


class BusLost(DeskError):
    """The connection to NATS is closed permanently: no more messages can be sent or received."""

    code = "bus_lost"

    def __init__(self, identity: str) -> None:
        super().__init__(
            f"{identity}: its connection to NATS was closed permanently; see the log of "
            "nats-server for the reason. Restart it: it continues where it stopped"
        )


class TlsMismatch(nats.errors.Error):
    """One side speaks TLS and the other does not; the text says which."""


class RandomNames(NUID):
    """Names of nats-py's length, each from the system's random source alone."""

    def next(self) -> bytearray:
        """A name of 22 characters, 128 bits of them random, that may be part of a subject."""
        return bytearray(secrets.token_urlsafe(NAME_BYTES), "ascii")


class BusConnection(Client):
    """nats-py, but that TLS is as the address says: by itself it goes on in plain text where a
    `tls://` server does not ask for TLS, and it tries for ever where a certificate is wrong. And
    that a flush is one: by itself it asks the server before it has sent what was published. And
    that a server which ends a connection ends that one only: by itself it never comes back after
    some of the reasons. A key that is no longer let in is tried at growing intervals. And that the
    names of inboxes and the tokens of replies are random: by itself it counts them, so that one
    gives away the next. And that a connection which broke is dropped: by itself it waits 30 s for
    the goodbye of a TLS server whose host is gone, before it asks another one. And that one which
    broke can be closed: by itself it raises, and is not told to be closed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._nuid = RandomNames()

    _was_connected = False
    _refusals = 0
    _is_key_full = False

    @property
    def problem(self) -> str:
        """The reason why nothing can be sent or received now; empty where all is well."""
        if self.is_connected:
            return ""
        if not self._refusals:
            return "not connected"
        if self._is_key_full:
            return "every connection that this key may hold is in use; it is tried again"
        tries = f"{self._refusals} {'try' if self._refusals == 1 else 'tries'}"
        return (
            f"NATS refuses this key ({tries}; it is tried again): is it in the server's nats.conf?"
        )

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        server = self._current_server
        if initial_connection and server is not None:
            _check_tls(server.uri.scheme, bool(info.get("tls_required")))
        await super()._process_info(info, initial_connection)

    async def _process_connect_init(self) -> None:
        try:
            if self._was_connected:
                self._take_key()
            await super()._process_connect_init()
        except (ssl.SSLError, TlsMismatch) as error:
            if self._was_connected:
                raise  # a server that comes back wrongly set up may be set right
            self._close_transport()
            raise _TlsRefused(str(error)) from error
        except nats.errors.Error as error:
            words = str(error).lower()
            self._is_key_full = KEY_FULL in words
            if self._is_key_full and not self._was_connected:
                self._close_transport()
                raise _NoneLeft from error
            if self._was_connected and (self._is_key_full or AUTHORIZATION in words):
                self._refused()
            raise
        self._was_connected, self._refusals = True, 0
        self.options["reconnect_time_wait"] = RECONNECT_WAIT_S

    async def close(self) -> None:
        """Close it. What a server that is gone was not sent is lost, and that is no error here."""
        try:
            await super().close()
        except OSError as error:
            log.info("bus.closed_broken", why=str(error))
            self._close_transport()
            if self._closed_cb is not None:
                await self._closed_cb()

    async def _attempt_reconnect(self) -> None:
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()
        await super()._attempt_reconnect()

    def _close_transport(self) -> None:
        if self._transport is not None:
            self._transport.close()  # type: ignore[no-untyped-call]

    def _refused(self) -> None:
        """The server is there and does not want this key: while it is set up anew, or until
        somebody puts it right."""
        self._refusals += 1
        wait_s = min(RECONNECT_WAIT_S * 2.0**self._refusals, REFUSED_WAIT_S_MAX)
        self.options["reconnect_time_wait"] = wait_s
        log.error(
            "bus.refused", connection=self.options["name"], why=self.problem, again_in_s=wait_s
        )

    def _take_key(self) -> None:
        """The key that stands in its file now: it may have been renewed."""
        try:
            if self._nkeys_seed:
                self._public_nkey = public_key_in(Path(self._nkeys_seed))
        except CredentialError as error:
            raise nats.errors.Error(f"{AUTHORIZATION}: {error}") from error

    async def _process_err(self, err_msg: str) -> None:
        """Log the server's words before it ends a connection that stood; a denied subject ends
        none.

        Authorization is lost where the server is set up anew, connections where it has too many.
        """
        if self.is_connected and PERMISSIONS_ERR not in f"nats: {err_msg}":
            await self._process_op_err(nats.errors.Error(f"nats: {err_msg}"))
            return
        await super()._process_err(err_msg)

    async def _send_ping(self, future: "asyncio.Future[bool] | None" = None) -> None:
        await self._flush_pending(force_flush=True)
        await super()._send_ping(future)


class _TlsRefused(Exception):
    """At the first connection: there is no use in trying again."""


class _NoneLeft(Exception):
    """At the first connection: another key may have one left."""


def _check_tls(scheme: str, server_wants_it: bool) -> None:
    if scheme == "tls" and not server_wants_it:
        raise TlsMismatch("this NATS server does not use TLS, but the address has tls://")
    if scheme != "tls" and server_wants_it:
        raise TlsMismatch("this NATS server requires TLS: write its address with tls://")


def inbox_prefix(identity: str) -> str:
    """The subject on which replies to one identity arrive; nobody else may listen there."""
    return f"_INBOX_{identity}"


class Repeats:
    """Which errors are worth a line: an outage repeats its own with every try, ten a second."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}

    def count(self, error: str) -> int:
        """How often it came since `forget`, at the 1st, 2nd, 4th, 8th ... time; else 0."""
        if error not in self._times and len(self._times) >= ERRORS_KEPT_MAX:
            self.forget()
        times = self._times[error] = self._times.get(error, 0) + 1
        return 0 if times & (times - 1) else times

    def forget(self) -> None:
        """Begin anew, so that the next outage is in the log from its first error on."""
        self._times.clear()


def words_of(error: Exception) -> str:
    """The error as the log and a refused start say it."""
    return f"{type(error).__name__}: {error}"[:300]


def options(
    identity: str, secrets_dir: Path, *, on_lost: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Options of `nats.connect` for one identity; without a seed file no key is used.

    `on_lost` is called where messages may have been missed: the connection broke, or more came than
    could wait.
    """
    seed = nkey_seed_path(secrets_dir, identity)
    repeats = Repeats()

    async def on_error(error: Exception) -> None:
        if isinstance(error, nats.errors.SlowConsumerError):
            if on_lost is not None:
                on_lost()
            kind = type(error).__name__  # one for each message that found no room
        else:
            kind = words_of(error)
        times = repeats.count(kind)
        if times:
            # A denied publish shows only here; the caller sees a time-out.
            log.warning("bus.error", identity=identity, error=words_of(error), times=times)

    async def on_disconnected() -> None:
        repeats.forget()
        if on_lost is not None:
            on_lost()

    return {
        "name": f"deskbus-{identity}",
        "inbox_prefix": inbox_prefix(identity).encode(),
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": RECONNECT_WAIT_S,
        "ping_interval": PING_EVERY_S,
        "error_cb": on_error,
        "disconnected_cb": on_disconnected,
        **({"nkeys_seed": str(seed)} if seed.exists() else {}),
    }


async def connect(
    url: str,
    identity: str,
    secrets_dir: Path,
    *,
    on_closed: Callable[[], Awaitable[None]] | None = None,
    on_lost: Callable[[], None] | None = None,
    timeout_s: float = CONNECT_TIMEOUT_S,
    reconnects: bool = True,
) -> BusConnection:
    """A connection as `identity` that reconnects for ever, or with `reconnects` off is closed once
    it breaks. Raises `BusNotReachable`, after `timeout_s` at the latest.

    `on_lost` as in `options`.

    `url` may name the servers of a cluster, separated by commas; `tls://` speaks TLS, with the
    authorities that libs.keys.tls believes, and never without.
    """
    until = time.monotonic() + timeout_s
    while True:
        client = BusConnection()
        settings = options(identity, secrets_dir, on_lost=on_lost)
        if "tls://" in url:
            settings["tls"] = tls.client_context(secrets_dir)
        first = client.connect(url.split(","), closed_cb=on_closed, **settings)
        try:
            # With endless reconnects a first connect to nowhere would wait for ever too.
            await within(min(until - time.monotonic(), ATTEMPT_TIMEOUT_S), first)
        except _TlsRefused as error:
            why = error.__cause__
            todo = "set DESKBUS_NATS_URL so"
            if isinstance(why, ssl.SSLCertVerificationError):
                todo = tls.todo(secrets_dir, why)
            raise BusNotReachable(
                f"NATS at {url} does not take {identity!r}: {error}; {todo}"
            ) from error
        except _NoneLeft as error:
            raise NoConnectionLeft(identity) from error
        except (OSError, TimeoutError, nats.errors.Error) as error:
            why = client.last_error or error
            is_refused = AUTHORIZATION in str(why).lower()
            if isinstance(error, TimeoutError) and not is_refused and time.monotonic() < until:
                continue  # a handshake that hangs says nothing about the next one
            failed = BusKeyRefused if is_refused else BusNotReachable
            raise failed(_not_reached(url, identity, secrets_dir, why)) from error
        # Not before: the first of several servers may be down.
        client.options["allow_reconnect"] = reconnects
        return client


def _not_reached(url: str, identity: str, secrets_dir: Path, error: Exception) -> str:
    """A sentence for each way in which a connection fails, with what to do."""
    seed = nkey_seed_path(secrets_dir, identity)
    no_key = "" if seed.exists() else f"; key {seed} does not exist"
    if AUTHORIZATION in str(error).lower():
        todo = "set DESKBUS_SECRETS_DIR to the secrets of this server"
        return f"NATS at {url} refuses the key of {identity!r}{no_key}; {todo}"
    return unreachable("NATS", url, "DESKBUS_NATS_URL", error) + no_key


async def within(timeout_s: float, work: Coroutine[Any, Any, None]) -> None:
    """Do the work. Raises TimeoutError where that takes longer.

    Up to Python 3.11 nats-py, which waits by `wait_for`, may lose a cancellation to an answer that
    comes at that moment, and what asks again then goes on for ever: it is cancelled until it ends.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task}, timeout=timeout_s)
        if not task.done():
            raise TimeoutError
        task.result()
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_AGAIN_S)


@contextmanager
def watched(client: BusConnection, identity: str) -> Iterator[None]:
    """While the block runs, the process is ready only where this client is connected and the server
    answers it."""

    async def problem() -> str:
        if client.problem:
            return client.problem
        try:
            await flush(client, ANSWERS_WITHIN_S)
        except (nats.errors.Error, TimeoutError):
            return client.problem or f"NATS does not answer within {ANSWERS_WITHIN_S:g} s"
        return ""

    with readiness.checked(f"nats {identity}", problem):
        yield


async def flush(client: Client, timeout_s: float) -> None:
    """Wait until the server has all that was published. Raises TimeoutError, or what nats-py does.

    nats-py's own time-out leaves a cancelled future behind; the server's late answer then ends the
    loop that reads from the connection, which stays deaf until its pings have failed (seen: 17 s
    after a frozen server went on). So its flush is left to end by itself.
    """
    flushing = asyncio.ensure_future(client.flush(timeout=FLUSH_GIVEN_UP_S))
    flushing.add_done_callback(_seen)
    done, _ = await asyncio.wait({flushing}, timeout=timeout_s)
    if not done:
        raise TimeoutError(f"NATS did not confirm a flush within {timeout_s:g} s")
    flushing.result()


def _seen(flushing: "asyncio.Future[None]") -> None:
    """Look at what a flush that nobody waits for came to, or asyncio reports it as lost."""
    if not flushing.cancelled():
        flushing.exception()
