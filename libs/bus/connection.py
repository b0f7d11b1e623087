"""One connection a process, under that process's own key."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import nats
import nats.errors
import structlog
from nats.aio.client import Client

from libs.bus.permissions import inbox_prefix
from libs.runtime.credentials import nkey_seed_path
from libs.runtime.errors import DeskError

__all__ = ["BusLost", "BusNotReachable", "Client", "connect", "flush", "options"]

CONNECT_TIMEOUT_S = 10.0
ATTEMPT_TIMEOUT_S = 4.0
"""One attempt: a handshake with a server that is killed meanwhile hangs, the next one does not."""
RECONNECT_WAIT_S = 0.1
PING_EVERY_S = 10
FLUSH_GIVEN_UP_S = 3_600
"""By then the connection is another one, and its late answer cannot come any more."""

log = structlog.get_logger()


class BusNotReachable(DeskError):
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
    """A connection as `identity` that reconnects for ever. Raises `BusNotReachable`."""
    try:
        # With endless reconnects a first connect to nowhere would wait for ever too.
        return await asyncio.wait_for(
            nats.connect(url, closed_cb=on_closed, **options(identity, secrets_dir)),
            ATTEMPT_TIMEOUT_S,
        )
    except (OSError, TimeoutError, nats.errors.Error) as error:
        raise BusNotReachable(
            f"NATS at {url} does not take {identity!r} ({type(error).__name__}: {error}); "
            "is it running, is DESKBUS_NATS_URL right, and are the secrets its own?"
        ) from error


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
