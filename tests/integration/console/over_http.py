"""A console that answers HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from libs.runtime.http_address import http_address
from libs.runtime.ports import choose_port
from libs.runtime.settings import Settings
from services.console.app import service


@asynccontextmanager
async def serving(settings: Settings, **given: Any) -> AsyncIterator[str]:
    """One with these settings besides, while the block runs; gives its address."""
    on = {"http": True, "http_port": choose_port(None, set()), **given}
    made = settings.model_copy(update=on)
    address = http_address(made)
    assert address is not None
    async with service(made):
        yield address.url
