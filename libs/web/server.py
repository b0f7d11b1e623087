"""The server below our HTTP applications: listens while a block runs, and cuts no answer off."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp

from contracts.message import MESSAGE_BYTES_MAX
from libs.runtime.http_address import BACKLOG, HttpAddress
from libs.web.connections import Connections
from libs.web.door import BrowserLogin
from libs.web.guard import HEADERS_BYTES_MAX, Guard
from libs.web.head import Heads
from libs.web.monitoring import Measured
from libs.web.proposer import ProposerTokens

STOP_GRACE_S = 3
"""Requests that are being answered may take so long when the server stops."""
KEEP_ALIVE_S = 15

log = structlog.get_logger()


class _Server(uvicorn.Server):
    """Leaves the signals to the program, which stops its parts in their order."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@asynccontextmanager
async def serving(
    app: ASGIApp,
    address: HttpAddress,
    *,
    request_s_max: float | None = None,
    lifespan: bool = False,
    door: BrowserLogin | None = None,
    body_bytes_max: int = MESSAGE_BYTES_MAX,
    proposers: ProposerTokens | None = None,
    token: Callable[[], str | None] | None = None,
) -> AsyncIterator[None]:
    """`app` at `address` while the block runs. Raises `HttpRefused` where it cannot listen.

    `lifespan`: the application has a start and an end of its own. `door`: browsers come here too.
    `body_bytes_max` bounds the body of a request. `proposers`: they come with tokens of their own.
    `token`: what the owner must bear, where that may change; else it is the address's.
    """
    # Failures are logged where they happen; the server's own words add nothing.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    certificate = address.certificate
    context = None
    if certificate is not None:
        # Few serve TLS, and the package that reads certificates is large.
        from libs.web.certificate import context_of, kept_fresh  # noqa: PLC0415

        context = context_of(certificate)
    protocol: Any = Connections(context).protocol
    config = uvicorn.Config(
        Heads(Measured(Guard(app, address, request_s_max, door, body_bytes_max, proposers, token))),
        http=protocol,
        ws="none",
        lifespan="on" if lifespan else "off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_GRACE_S,
        backlog=BACKLOG,
        h11_max_incomplete_event_size=HEADERS_BYTES_MAX,
    )
    server = _Server(config)
    with address.listening() as listening:
        task = asyncio.create_task(server.serve(sockets=[listening]))
        log.info("http.listening", url=address.listening_url, token=address.token is not None)
        # A port that takes no token, as that of the metrics, has none that could be read.
        if address.token is not None and certificate is None and not address.is_loopback:
            log.warning(
                "http.plain", why="tokens and answers can be read on the way: see docs/http.md"
            )
        looking = None
        if context is not None and certificate is not None:
            looking = asyncio.create_task(kept_fresh(context, certificate))
        try:
            yield
        finally:
            if looking is not None:
                looking.cancel()
            server.should_exit = True
            await task
