"""One connection a process, under that process's own key."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nats.errors
import structlog
from nats.aio.client import Client

from libs.bus.permissions import inbox_prefix
from libs.runtime import tls, watch
from libs.runtime.credentials import nkey_seed_path
from libs.runtime.errors import DeskError, Unavailable

__all__ = ["BusLost", "BusNotReachable", "Client", "connect", "flush", "options", "watched"]

CONNECT_TIMEOUT_S = 10.0
ATTEMPT_TIMEOUT_S = 4.0
"""One attempt: a handshake with a server that is killed meanwhile hangs, the next one does not."""
RECONNECT_WAIT_S = 0.1
PING_EVERY_S = 10
REFUSALS_MAX = 30
"""Refusals of a key that was let in before, one after the other, RECONNECT_WAIT_S apart."""
AUTHORIZATION = "authorization violation"
FLUSH_GIVEN_UP_S = 3_600
"""By then the connection is another one, and its late answer cannot come any more."""

log = structlog.get_logger()


class BusNotReachable(Unavailable):
    """NATS does not answer at the given address, or refuses the key."""

    code = "bus_not_reachable"


class BusLost(DeskError):
    """The connection to NATS was closed for good: nothing can be heard or said any more."""

    code = "bus_lost"

    def __init__(self, identity: str) -> None:
        super().__init__(
            f"{identity}: its connection to NATS was closed for good; the log of nats-server says "
            "why. Start it again: it carries on where it was"
        )


class TlsMismatch(nats.errors.Error):
    """One side speaks TLS and the other does not; the text says which."""


class _Client(Client):
    """nats-py, but that TLS is as the address says: by itself it goes on in plain text where a
    `tls://` server does not ask for TLS, and it tries for ever where a certificate is wrong. And
    that a flush is one: by itself it asks the server before it has sent what was published. And
    that a key which is no longer let in is not tried for ever.
    """

    _was_connected = False
    _refusals = 0
    _giving_up: "asyncio.Task[None] | None" = None

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        server = self._current_server
        if initial_connection and server is not None:
            _check_tls(server.uri.scheme, bool(info.get("tls_required")))
        await super()._process_info(info, initial_connection)

    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        except (ssl.SSLError, TlsMismatch) as error:
            if self._was_connected:
                raise  # a server that comes back wrongly set up may be set right
            if self._transport is not None:
                self._transport.close()  # type: ignore[no-untyped-call]
            raise _TlsRefused(str(error)) from error
        except nats.errors.Error as error:
            if AUTHORIZATION in str(error).lower() and self._was_connected:
                self._refused()
            raise
        self._was_connected, self._refusals = True, 0

    def _refused(self) -> None:
        """The server is there and does not want this key: for a moment while it is set up anew, or
        for good. Then the connection is closed, and whoever started this process starts it again.
        """
        self._refusals += 1
        if self._refusals >= REFUSALS_MAX and self._giving_up is None:
            self._giving_up = asyncio.create_task(self.close())

    async def _send_ping(self, future: "asyncio.Future[bool] | None" = None) -> None:
        await self._flush_pending(force_flush=True)
        await super()._send_ping(future)


class _TlsRefused(Exception):
    """At the first connection: there is no use in trying again."""


def _check_tls(scheme: str, server_wants_it: bool) -> None:
    if scheme == "tls" and not server_wants_it:
        raise TlsMismatch("this NATS speaks no TLS, and the address asks for it by tls://")
    if scheme != "tls" and server_wants_it:
        raise TlsMismatch("this NATS speaks TLS only: write its address with tls://")


def options(identity: str, secrets_dir: Path) -> dict[str, Any]:
    """Options of `nats.connect` for one identity; without a seed file no key is used."""
    seed = nkey_seed_path(secrets_dir, identity)

    async def on_error(error: Exception) -> None:
        # A denied publish shows only here; the caller sees a time-out.
        log.warning("bus.error", identity=identity, error=f"{type(error).__name__}: {error}"[:300])

    return {
        "name": f"deskbus-{identity}",
        "inbox_prefix": inbox_prefix(identity).encode(),
        "max_reconnect_attempts": -1,
        "reconnect_time_wait": RECONNECT_WAIT_S,
        "ping_interval": PING_EVERY_S,
        "error_cb": on_error,
        **({"nkeys_seed": str(seed)} if seed.exists() else {}),
    }


async def connect(
    url: str,
    identity: str,
    secrets_dir: Path,
    *,
    on_closed: Callable[[], Awaitable[None]] | None = None,
) -> Client:
    """A connection as `identity` that reconnects for ever. Raises `BusNotReachable`.

    `url` may name the servers of a cluster, separated by commas; `tls://` speaks TLS, with the
    authorities that libs.runtime.tls believes, and never without.
    """
    client = _Client()
    given = options(identity, secrets_dir)
    if "tls://" in url:
        given["tls"] = tls.client_context(secrets_dir)
    try:
        # With endless reconnects a first connect to nowhere would wait for ever too.
        await asyncio.wait_for(
            client.connect(url.split(","), closed_cb=on_closed, **given), ATTEMPT_TIMEOUT_S
        )
    except _TlsRefused as error:
        is_certificate = isinstance(error.__cause__, ssl.SSLCertVerificationError)
        todo = tls.todo(secrets_dir) if is_certificate else "set DESKBUS_NATS_URL so"
        raise BusNotReachable(
            f"NATS at {url} does not take {identity!r}: {error}; {todo}"
        ) from error
    except (OSError, TimeoutError, nats.errors.Error) as error:
        raise BusNotReachable(
            f"NATS at {url} does not take {identity!r} ({type(error).__name__}: {error}); "
            "is it running, is DESKBUS_NATS_URL right, and are the secrets its own?"
        ) from error
    return client


@contextmanager
def watched(client: Client, identity: str) -> Iterator[None]:
    """While the block runs, the process is ready only where this client is connected."""

    async def problem() -> str:
        return "" if client.is_connected else "not connected"

    with watch.checked(f"nats {identity}", problem):
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
