"""The console's door stays open for its owner, whatever strangers do before it.

Real sockets and a real console; times and bounds are made smaller, so that the attacks are too.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2
import pytest
from pydantic import SecretStr

from libs.keys.certificates import ensure_certificates
from libs.web import connections, guard
from tests.integration.console.over_http import serving

if TYPE_CHECKING:
    from pathlib import Path

    from libs.runtime.settings import Settings

TOKEN = "a-token-of-some-length"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SLOW_S = 0.3
SOME = 20
"""The owner's requests during an attack."""
HOLD_S_MAX = 10.0
LOGIN_HEAD = (
    b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b'Content-Length: 50\r\n\r\n{"to'
)
HALF_A_HEAD = b"GET /login HTTP/1.1\r\nHost: localh"

Socket = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Strangers:
    """Sockets that send a beginning and no more."""

    def __init__(self, url: str) -> None:
        self._place = urlsplit(url)
        self._open: list[Socket] = []

    async def come(self, count: int, sending: bytes) -> None:
        for _ in range(count):
            reader, writer = await asyncio.open_connection(self._place.hostname, self._place.port)
            writer.write(sending)
            await writer.drain()
            self._open.append((reader, writer))

    async def oldest_is_sent_away(self) -> bool:
        """Whether the first that came was closed; it is waited for."""
        reader, _ = self._open[0]
        async with asyncio.timeout(HOLD_S_MAX):
            try:
                return await reader.read(1) == b""
            except ConnectionResetError:
                return True

    async def answers(self) -> list[bytes]:
        """The first line that each is sent, in the order in which they came."""
        async with asyncio.timeout(HOLD_S_MAX):
            return [await reader.readline() for reader, _ in self._open]

    def leave(self) -> None:
        for _, writer in self._open:
            writer.close()


@asynccontextmanager
async def attacked(settings: Settings, **given: object) -> AsyncIterator[tuple[str, Strangers]]:
    """A console with a token, and strangers before it."""
    with_token = {"http_token": SecretStr(TOKEN), **given}
    async with serving(settings, **with_token) as url:
        strangers = Strangers(url)
        try:
            yield url, strangers
        finally:
            strangers.leave()


async def statuses(url: str, **how: object) -> set[int]:
    """What the owner is answered: by the header, and by logging in; a new connection each."""
    found = set()
    for _ in range(SOME):
        async with httpx2.AsyncClient(base_url=url, timeout=5, **how) as http:  # type: ignore[arg-type]
            found.add((await http.get("/api/v1/budget", headers=BEARER)).status_code)
            found.add((await http.post("/api/v1/session", json={"token": TOKEN})).status_code)
    return found


async def test_logins_that_never_end_take_no_seat_of_the_owners(settings: Settings) -> None:
    async with attacked(settings) as (url, strangers):
        await strangers.come(guard.IN_FLIGHT_MAX + guard.STRANGERS_IN_FLIGHT_MAX + 4, LOGIN_HEAD)
        assert await statuses(url, verify=False) == {200, 204}


async def test_a_login_that_never_ends_is_told_so_in_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "BODY_S_MAX", SLOW_S)
    async with attacked(settings) as (_, strangers):
        await strangers.come(3, LOGIN_HEAD)
        assert all(b" 408 " in line for line in await strangers.answers())


async def test_a_strangers_body_is_bounded_below_the_owners(settings: Settings) -> None:
    large = {"token": "x" * guard.STRANGERS_BODY_BYTES_MAX}
    async with attacked(settings) as (url, _), httpx2.AsyncClient(base_url=url) as http:
        assert (await http.post("/api/v1/session", json=large)).status_code == 413


async def test_headers_that_never_end_are_cut_off_in_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADERS_S_MAX", SLOW_S)
    async with attacked(settings) as (_, strangers):
        await strangers.come(3, HALF_A_HEAD)
        assert await strangers.answers() == [b"", b"", b""]


async def test_a_second_request_on_a_connection_must_come_in_time_too(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADERS_S_MAX", SLOW_S)
    whole = b"GET /api/v1/budget HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with attacked(settings) as (url, _):
        place = urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(whole)
        assert b" 401 " in await reader.readline()
        writer.write(HALF_A_HEAD)
        async with asyncio.timeout(HOLD_S_MAX):
            await reader.read(-1)  # until it is closed
        writer.close()


@pytest.mark.parametrize("sending", [b"", HALF_A_HEAD, LOGIN_HEAD], ids=["mute", "head", "login"])
async def test_of_too_many_connections_the_oldest_stranger_leaves_and_the_owner_comes_in(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, sending: bytes
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 30)
    async with attacked(settings) as (url, strangers):
        await strangers.come(120, sending)
        assert await statuses(url, verify=False) == {200, 204}
        assert await strangers.oldest_is_sent_away()


async def test_a_connection_of_the_owners_outlives_any_number_of_strangers(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 10)
    async with AsyncExitStack() as stack:
        url, strangers = await stack.enter_async_context(attacked(settings))
        http = await stack.enter_async_context(httpx2.AsyncClient(base_url=url, timeout=30))
        stream = http.stream("GET", "/api/v1/events/stream", headers=BEARER)
        frames = (await stack.enter_async_context(stream)).aiter_raw()
        await anext(frames)
        await strangers.come(50, HALF_A_HEAD)
        assert await strangers.oldest_is_sent_away()
        assert await anext(frames), "the stream goes on"


GET_LOGIN = b"GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n"
GET_BUDGET = (
    f"GET /api/v1/budget HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
).encode()


@pytest.mark.parametrize("sending", [GET_LOGIN, GET_BUDGET], ids=["stranger", "token"])
async def test_requests_one_behind_the_other_get_the_first_answer_and_are_closed(
    settings: Settings, sending: bytes
) -> None:
    async with attacked(settings) as (_, strangers):
        await strangers.come(1, sending * 100)
        reader, _ = strangers._open[0]
        async with asyncio.timeout(HOLD_S_MAX):
            answered = await reader.read(-1)  # until it is closed
        assert answered.count(b"HTTP/1.1 200") == 1


async def test_more_connections_than_there_may_be_that_show_the_token_keep_no_owner_out(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 30)
    async with attacked(settings) as (url, strangers):
        await strangers.come(100, GET_BUDGET)
        assert await statuses(url, verify=False) == {200, 204}
        reader, _ = strangers._open[0]
        async with asyncio.timeout(HOLD_S_MAX):
            await reader.read(-1)  # the one that was silent for longest was closed


async def test_handshakes_that_never_end_shut_nobody_out(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 30)
    ensure_certificates(tmp_path, {"http": ("localhost", "127.0.0.1")})
    trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    pair = {"http_cert_file": tmp_path / "http.pem", "http_key_file": tmp_path / "http.key"}
    async with attacked(settings, **pair) as (url, strangers):
        assert url.startswith("https://")
        await strangers.come(100, b"\x16\x03\x01")
        assert await statuses(url, verify=trusted) == {200, 204}
        assert await strangers.oldest_is_sent_away()


async def test_wrong_tokens_never_lock_out_the_right_one(settings: Settings) -> None:
    async with attacked(settings) as (url, _), httpx2.AsyncClient(base_url=url) as http:
        wrong = [await http.post("/api/v1/session", json={"token": "x" * 16}) for _ in range(12)]
        assert {each.status_code for each in wrong} == {401, 429}
        assert (await http.post("/api/v1/session", json={"token": TOKEN})).status_code == 204


@pytest.mark.parametrize("path", ["/", "/bus", "/api/v1/budget", "/livez", "/api/v1/events/stream"])
async def test_what_can_be_read_can_be_asked_for_its_headers_alone(
    settings: Settings, path: str
) -> None:
    async with attacked(settings) as (url, _), httpx2.AsyncClient(base_url=url, timeout=5) as http:
        for _ in range(2):  # the connection is as good as before
            answer = await http.head(path, headers=BEARER)
            assert (answer.status_code, answer.content) == (200, b"")


async def test_headers_over_the_limit_are_refused_in_however_many_pieces_they_come(
    settings: Settings,
) -> None:
    async with attacked(settings) as (url, _), httpx2.AsyncClient(base_url=url) as http:
        large = {**BEARER, "X-Large": "x" * (guard.HEADERS_BYTES_MAX + 1)}
        answer = await http.get("/api/v1/budget", headers=large)
        assert (answer.status_code, answer.json()["code"]) == (431, "headers_too_large")
        small = {**BEARER, "X-Large": "x" * (guard.HEADERS_BYTES_MAX // 2)}
        assert (await http.get("/api/v1/budget", headers=small)).status_code == 200
