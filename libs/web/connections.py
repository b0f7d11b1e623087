"""Connections, bounded: those that have shown the token, and strangers.

A connection takes a file descriptor before it has shown the token. So there are only so many. When
there is one too many, the oldest stranger is closed. When too many have shown the token, the one
that has asked nothing for longest is closed: so a thousand of either kind keep nobody out.
"""

import asyncio
import resource
import ssl
from collections.abc import Callable
from typing import Any

import structlog
from starlette.types import Scope
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

CONNECTIONS_MAX = 2_048
KNOWN_PART = 0.75
"""At most this part of them for those that have shown the token: a new one comes as a stranger."""
DESCRIPTORS_PART = 4
"""At most this part of the descriptors that the process may open: the desk needs some itself, and
new connections come in bunches."""
HEADERS_S_MAX = 10.0
"""From a connection, or a further request's first byte, to the end of its headers; and for the
handshake of TLS."""
LET_IN = "deskbus.let_in"
"""In a request's state: what to call once it is known whose it is."""

log = structlog.get_logger()


class Connections:
    """All connections of one server."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self._most = min(CONNECTIONS_MAX, _descriptors() // DESCRIPTORS_PART)
        self._context = context
        self._known_most = max(1, int(self._most * KNOWN_PART))
        self._strangers: dict[HttpConnection, None] = {}  # the oldest first
        self._known: dict[HttpConnection, None] = {}  # the one that asked last is last

    def protocol(self, config: Config, server_state: ServerState, **more: Any) -> "HttpConnection":
        """The server's end of a new connection, as uvicorn asks for it."""
        return HttpConnection(self, self._context, config, server_state, **more)

    def opened(self, connection: "HttpConnection") -> None:
        """One more is there; another one may have to go."""
        self._strangers[connection] = None
        if len(self._strangers) + len(self._known) > self._most:
            self._leaver().abort()

    def let_in(self, connection: "HttpConnection") -> None:
        """It has shown the token, with this request."""
        for pool in (self._strangers, self._known):
            if connection in pool:
                del pool[connection]
                self._known[connection] = None
        if len(self._known) > self._known_most:
            self._longest_silent().abort()

    def closed(self, connection: "HttpConnection") -> None:
        """It is gone."""
        self._strangers.pop(connection, None)
        self._known.pop(connection, None)

    def _leaver(self) -> "HttpConnection":
        # One that was to be closed waits for ever for a client that does not read what is left.
        left_open = (connection for connection in self._known if connection.is_closing)
        return next(left_open, None) or next(iter(self._strangers))

    def _longest_silent(self) -> "HttpConnection":
        silent = (connection for connection in self._known if not connection.is_answering)
        return next(silent, None) or next(iter(self._known))


class HttpConnection(H11Protocol):
    """uvicorn's protocol, with a time for the headers, and a handshake that holds nobody up."""

    def __init__(
        self,
        among: Connections,
        context: ssl.SSLContext | None,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        state = {**app_state, LET_IN: self._let_in}
        super().__init__(config, server_state, state, _loop or asyncio.get_running_loop())
        self._among = among
        self._context = context
        self._raw: asyncio.Transport | None = None
        self._securing: asyncio.Task[None] | None = None
        self._before_tls = bytearray()
        self._early = b""
        self._headers_end: asyncio.TimerHandle | None = None
        self._is_secured = False

    @property
    def is_closing(self) -> bool:
        """True where it only waits for its client to take what is left."""
        return self._raw is not None and self._raw.is_closing()

    def abort(self) -> None:
        """Close it now, whatever the client does."""
        self._among.closed(self)
        if self._raw is not None:
            self._raw.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection was accepted."""
        self._raw = transport
        self._among.opened(self)
        if self._context is None:
            self._begin(transport)
        else:
            self._securing = self.loop.create_task(self._secure(transport, self._context))

    async def _secure(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        """Speak TLS from here on. The connection is counted already: with TLS from the start, it
        would not be before its handshake."""
        starting = self.loop.create_task(
            self.loop.start_tls(
                transport, self, context, server_side=True, ssl_handshake_timeout=HEADERS_S_MAX
            )
        )
        try:
            # In two turns of the loop TLS is where the bytes go; uvloop has read some before.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            _hand_over(self._before_tls, transport.get_protocol())
            self._is_secured = True
            secured = await starting
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            log.info("http.no_handshake", error=f"{type(error).__name__}: {error}"[:200])
            self.abort()
            return
        if secured is not None and not transport.is_closing():
            self._begin(secured)

    def _begin(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._await_headers()
        if self._early:
            early, self._early = self._early, b""
            self.data_received(early)

    def data_received(self, data: bytes) -> None:
        """Something came: the headers in time, or nothing of it counts."""
        if self.transport is None:
            if self._context is not None and not self._is_secured:
                self._before_tls += data  # the client was faster than the start of TLS
            else:
                self._early += data  # right behind the handshake
            return
        if self._headers_end is None and not self.is_answering:
            self._await_headers()
        super().data_received(data)
        if self.is_answering:
            self._headers_came()
            if not self.cycle.more_body and self.conn.trailing_data[0]:
                # The next request came before the answer to this one: no browser does that. Those
                # who do may send a thousand and read no answer. They get this one.
                self.cycle.keep_alive = False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._among.closed(self)
        self._headers_came()
        if self.transport is not None:
            super().connection_lost(exc)

    @property
    def is_answering(self) -> bool:
        """True from the end of a request's headers to the end of its answer."""
        return self.cycle is not None and not self.cycle.response_complete

    def _await_headers(self) -> None:
        self._headers_end = self.loop.call_later(HEADERS_S_MAX, self.abort)

    def _headers_came(self) -> None:
        if self._headers_end is not None:
            self._headers_end.cancel()
            self._headers_end = None

    def _let_in(self) -> None:
        self._among.let_in(self)


def _descriptors() -> int:
    """The descriptors that this process may open: as many as are wanted, where the system's own
    (hard) limit allows them. Many shells start programs with 1,024."""
    wanted = CONNECTIONS_MAX * DESCRIPTORS_PART
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    if soft in limits and soft < wanted:
        soft = min([wanted, *limits[1:]])
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft


def _hand_over(data: bytearray, protocol: Any) -> None:
    """Give bytes that were read already to the protocol of TLS: an `asyncio.BufferedProtocol`,
    which uvloop's is without saying so."""
    while data:
        buffer = protocol.get_buffer(len(data))
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        protocol.buffer_updated(size)
        del data[:size]


def let_in(scope: Scope) -> None:
    """Whoever sends this request may be here: his connection is not closed for strangers'."""
    tell: Callable[[], None] | None = scope.get("state", {}).get(LET_IN)
    if tell is not None:
        tell()
