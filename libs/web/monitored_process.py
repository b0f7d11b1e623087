"""A process as others watch it: a port of its own, and traces where somebody takes them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from libs.runtime.http_address import metrics_address
from libs.runtime.proxies import is_loopback
from libs.runtime.settings import Settings
from libs.telemetry import readiness
from libs.telemetry.tracing import endpoint, traced


@asynccontextmanager
async def watched_process(settings: Settings, name: str) -> AsyncIterator[asyncio.Event]:
    """This process can be watched while the block runs, where the settings name a port; `name` is
    what its traces call it.

    It is not ready before the event that this gives is set. Raises `HttpRefused`.
    """
    started = asyncio.Event()

    async def problem() -> str:
        return "" if started.is_set() else "not everything has started yet"

    collector = urlsplit(endpoint()).hostname or ""
    async with traced(name, direct=is_loopback(collector)):
        with readiness.checked("start", problem):
            address = metrics_address(settings)
            if address is None:
                yield started
                return
            # Nobody else needs the web's packages.
            from libs.web.monitoring import Watched, nothing_else  # noqa: PLC0415
            from libs.web.server import serving  # noqa: PLC0415

            async with serving(Watched(nothing_else), address):
                yield started
