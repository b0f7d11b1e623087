"""The HTTP API's server: listens while the console runs, and stops without cutting answers off."""

import asyncio
import logging
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial

import structlog
import uvicorn

from contracts.subjects import WEB
from libs.bus.client import open_client
from libs.runtime.http_address import HttpAddress
from libs.runtime.settings import Settings
from services.console.accounts import Closes
from services.console.api import Desk, api
from services.console.guard import Guard
from services.console.passing_on import PassingOn
from services.console.store import Store

STOP_GRACE_S = 3
"""Requests that are being answered may take so long when the desk stops."""
KEEP_ALIVE_S = 15
HEADERS_BYTES_MAX = 32_768

log = structlog.get_logger()


class _Server(uvicorn.Server):
    """Leaves the signals to the desk, which stops its parts in their order."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@asynccontextmanager
async def serving(
    address: HttpAddress, settings: Settings, store: Store, closes: Closes
) -> AsyncIterator[None]:
    """The API at `address` while the block runs. Raises `HttpRefused` where it cannot listen."""
    async with open_client(settings.nats_address, settings.secrets_path, WEB) as client:
        now = partial(datetime.now, UTC)
        desk = Desk(store, closes, PassingOn(client), settings, now)
        # Refused requests and failures are told by events; the server's own words add nothing.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        config = uvicorn.Config(
            Guard(api(desk), address),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_GRACE_S,
            h11_max_incomplete_event_size=HEADERS_BYTES_MAX,
        )
        server = _Server(config)
        with address.listening() as listening:
            task = asyncio.create_task(server.serve(sockets=[listening]))
            log.info("http.listening", url=address.url, token=address.token is not None)
            try:
                yield
            finally:
                server.should_exit = True
                await task
