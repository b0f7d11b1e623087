"""A console that answers HTTP, and what it answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from libs.runtime.http_address import http_address
from libs.runtime.ports import choose_port
from libs.runtime.settings import Settings
from services.console.app import service
from tests.flat_settings import changed


@asynccontextmanager
async def serving(settings: Settings, **given: Any) -> AsyncIterator[str]:
    """One with these settings besides, while the block runs; gives its address."""
    on = {"http_enabled": True, "http_port": choose_port(None, set()), **given}
    made = changed(settings, **on)
    address = http_address(made)
    assert address is not None
    async with service(made):
        yield address.url


def client_of(url: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=url, verify=False, timeout=30)


def problem(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """The answer's problem, which is as RFC 9457 says."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said: dict[str, Any] = answer.json()
    assert (said["status"], said["code"]) == (status, code)
    assert said["type"] == f"urn:deskbus:problem:{code}"
    assert said["title"]
    assert said["detail"]
    return said
