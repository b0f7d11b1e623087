"""Certificates are judged when they are used: their time, their names, and what is shown."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from libs.keys.certificates import CERTIFICATE_DAYS, ensure_certificates
from libs.keys.validity import (
    ServerProtocol,
    TlsServer,
    certificate_in,
    log_problems,
    places_in,
    problem_of,
    servers_in,
    shown_by,
)
from tests.fakes.log_lines import log_lines

MADE = datetime(2026, 1, 1, tzinfo=UTC)
ENDS = MADE + timedelta(days=CERTIFICATE_DAYS)
HOSTS = ("desk.example", "*.desk.example", "127.0.0.1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    ensure_certificates(tmp_path, {"http": HOSTS}, MADE)
    return tmp_path / "http.pem"


@pytest.mark.parametrize(
    ("host", "now", "said"),
    [
        ("desk.example", MADE, ""),
        ("DESK.example", ENDS - timedelta(days=15), ""),
        ("a.desk.example", MADE, ""),
        ("127.0.0.1", MADE, ""),
        (None, MADE, ""),
        ("a.b.desk.example", MADE, "it does not name a.b.desk.example"),
        ("127.0.0.2", MADE, "it does not name 127.0.0.2"),
        ("desk.example", MADE - timedelta(days=2), "and that is not yet"),
        (None, ENDS - timedelta(days=13, hours=1), "in 13 days"),
        (None, ENDS - timedelta(days=1), "in 1 day"),
        (None, ENDS, "it expired on 2028-04-05"),
    ],
)
def test_what_is_wrong_with_a_certificate(
    file: Path, host: str | None, now: datetime, said: str
) -> None:
    found = problem_of(certificate_in(file), host, now)
    assert said in found
    assert bool(found) == bool(said)


def test_what_is_no_certificate_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text("no certificate")
    with pytest.raises(ValueError, match="PEM"):
        certificate_in(tmp_path / "a.pem")


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("tls://a:1,tls://b:2", [("a", 1), ("b", 2)]),
        ("tls://a,b:2", [("a", 9), ("b", 2)]),
        ("postgresql://me:x@a:1,b/desk?sslmode=require", [("a", 1), ("b", 9)]),
        ("https://[::1]:8000", [("::1", 8000)]),
        ("postgresql:///desk?host=/run", []),
    ],
)
def test_the_servers_of_a_url(url: str, found: list[tuple[str, int]]) -> None:
    assert [(each.host, each.port) for each in places_in(url, ServerProtocol.NATS, 9)] == found


@asynccontextmanager
async def server(
    file: Path, speaks: ServerProtocol, *, tls: bool = True
) -> AsyncIterator[TlsServer]:
    """A server with the certificate, behind what its protocol says first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, file.with_suffix(".key"))

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if speaks is ServerProtocol.NATS:
            writer.write(b'INFO {"tls_required":true}\r\n' if tls else b"INFO {}\r\n")
        if speaks is ServerProtocol.POSTGRES:
            await reader.readexactly(8)
            writer.write(b"S" if tls else b"N")
        if tls:
            await writer.start_tls(context)
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with listening:
        yield TlsServer(speaks, "127.0.0.1", listening.sockets[0].getsockname()[1])


@pytest.mark.parametrize("speaks", ServerProtocol)
async def test_the_certificate_that_a_server_shows_is_read_expired_or_not(
    file: Path, speaks: ServerProtocol
) -> None:
    async with server(file, speaks) as place:
        assert await shown_by(place) == certificate_in(file)


async def test_a_certificate_that_clients_refuse_is_logged_and_a_server_that_is_away_is_not(
    file: Path, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    ensure_certificates(tmp_path / "old", {"http": HOSTS}, datetime(2020, 1, 1, tzinfo=UTC))
    old = tmp_path / "old" / "http.pem"
    async with (
        server(old, ServerProtocol.NATS) as nats,
        server(old, ServerProtocol.POSTGRES) as postgres,
    ):
        nowhere = TlsServer(ServerProtocol.NATS, "127.0.0.1", 1)
        with log_lines() as logs:
            await log_problems([nowhere, nats, postgres])
    assert [(line["server"], line["place"]) for line in logs] == [
        ("nats", str(nats)),
        ("postgres", str(postgres)),
    ]
    assert all("it expired on 2022-04-05" in line["why"] for line in logs)
    assert {line["log_level"] for line in logs} == {"error"}


def test_nats_without_tls_is_not_asked_for_a_certificate() -> None:
    dsn = "postgresql://b/desk?sslmode=verify-full"
    assert [*map(str, servers_in("nats://a:1", dsn))] == ["b:5432"]
    assert [*map(str, servers_in("tls://a,tls://c:1", None))] == ["a:4222", "c:1"]


@pytest.mark.parametrize("speaks", [ServerProtocol.NATS, ServerProtocol.POSTGRES])
async def test_a_server_without_tls_shows_none(file: Path, speaks: ServerProtocol) -> None:
    async with server(file, speaks, tls=False) as place:
        assert await shown_by(place) is None
