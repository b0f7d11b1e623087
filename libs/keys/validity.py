"""Whether certificates can be used now: those in files, and those that servers show."""

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from cryptography import x509

WARN = timedelta(days=14)
"""So long before its end a certificate is a problem."""
ANSWER_S_MAX = 2.0
LINE_BYTES_MAX = 65_536
POSTGRES_TLS = bytes.fromhex("0000000804d2162f")
"""SSLRequest of Postgres' protocol: the server answers S, or N where it speaks no TLS."""
NATS_PORT, POSTGRES_PORT = 4222, 5432
RENEW = "make a new one (docs/tls.md), put it in place and restart what shows it"


log = structlog.get_logger()


class ServerProtocol(Enum):
    """The protocol that comes before TLS on a connection."""

    HTTPS = "https"
    NATS = "nats"
    POSTGRES = "postgres"


@dataclass(frozen=True)
class TlsServer:
    """A server that may show a certificate."""

    speaks: ServerProtocol
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def problem_of(certificate: x509.Certificate, host: str | None, now: datetime) -> str:
    """The problem of a certificate for clients that name the server `host` (None: unknown);
    empty where nothing is."""
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begins:
        return f"it is valid from {begins:%Y-%m-%d %H:%M} UTC on, and that is not yet"
    if now >= ends:
        return f"it expired on {ends:%Y-%m-%d %H:%M} UTC"
    if host is not None and not _names(certificate, host):
        return f"it does not name {host}"
    if ends - now < WARN:
        days = (ends - now).days
        return (
            f"it expires on {ends:%Y-%m-%d %H:%M} UTC, in {days} {'day' if days == 1 else 'days'}"
        )
    return ""


def certificate_in(path: Path) -> x509.Certificate:
    """The first certificate of a PEM file. Raises OSError and ValueError."""
    return x509.load_pem_x509_certificate(path.read_bytes())


async def shown_by(place: TlsServer) -> x509.Certificate | None:
    """The certificate that a server shows, whoever signed it; None where it speaks no TLS.

    Raises OSError (ssl.SSLError and TimeoutError among them) where it does not answer so.
    """
    return await asyncio.to_thread(_shown_by, place)


def places_in(url: str, speaks: ServerProtocol, port: int) -> Sequence[TlsServer]:
    """The servers of a URL, which may name several, separated by commas; `port` is the usual one.
    One that is reached over a Unix socket is left out."""
    authority = re.sub(r"\w+://", "", url).split("/")[0].split("?")[0].rpartition("@")[2]
    parts = [urlsplit(f"//{one}") for one in authority.split(",")]
    return [TlsServer(speaks, part.hostname, part.port or port) for part in parts if part.hostname]


def servers_in(nats_url: str, dsn: str | None) -> Sequence[TlsServer]:
    """NATS, where its address asks for TLS, and Postgres, which may speak it."""
    nats = places_in(nats_url, ServerProtocol.NATS, NATS_PORT) if "tls://" in nats_url else ()
    return (*nats, *places_in(dsn or "", ServerProtocol.POSTGRES, POSTGRES_PORT))


async def log_problems(places: Sequence[TlsServer]) -> None:
    """Log an error for each server that shows a certificate which clients refuse, or soon will. A
    server that does not answer is reported elsewhere."""
    for place in places:
        try:
            certificate = await shown_by(place)
        except (OSError, ValueError):
            continue
        why = problem_of(certificate, place.host, now_utc()) if certificate else ""
        if why:
            log.error("server.certificate", server=place.speaks.value, place=str(place), why=why)


def _names(certificate: x509.Certificate, host: str) -> bool:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        names = extension.value.get_values_for_type(x509.DNSName)
        _, _, parent = host.lower().partition(".")
        return any(name.lower() in {host.lower(), f"*.{parent}"} for name in names)
    return address in extension.value.get_values_for_type(x509.IPAddress)


def _shown_by(place: TlsServer) -> x509.Certificate | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # what is shown is looked at, and nothing is said
    with socket.create_connection((place.host, place.port), timeout=ANSWER_S_MAX) as plain:
        if place.speaks is ServerProtocol.POSTGRES:
            plain.sendall(POSTGRES_TLS)
            if plain.recv(1) != b"S":
                return None
        elif place.speaks is ServerProtocol.NATS and b'"tls_required":true' not in _line(plain):
            return None
        with context.wrap_socket(plain, server_hostname=place.host) as secured:
            shown = secured.getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(shown) if shown else None


def _line(plain: socket.socket) -> bytes:
    line = b""
    # Byte by byte: what comes behind the line is TLS.
    while not line.endswith(b"\n") and len(line) < LINE_BYTES_MAX:
        byte = plain.recv(1)
        if not byte:
            break
        line += byte
    return line


def now_utc() -> datetime:
    """The time by which certificates are judged."""
    return datetime.now(UTC)
