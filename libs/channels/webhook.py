"""Webhooks: notices as JSON, over HTTPS, signed with a key that both sides know.

    POST ...
    Deskbus-Timestamp: 1764032400
    Deskbus-Signature: v1=<HMAC-SHA256 of "<timestamp>.<body>" in hex>

    {"version": 1, "channel": "ops", "notices": [...]}

A redirect is not followed. A private address is spoken to only where the operator wrote it, and the
name that was looked up is the one that is connected to. Without TLS it is spoken to on such an
address alone.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx2
import orjson
from pydantic import SecretStr

from libs.channels.channel import ChannelMessage, ChannelUnusable, MessageLimits, SendOutcome, hush
from libs.runtime.addresses import Address, is_public
from libs.runtime.outgoing import AuthoritiesUnusable, client_tls

TIMESTAMP_HEADER = "Deskbus-Timestamp"
SIGNATURE_HEADER = "Deskbus-Signature"
SIGNATURE_VERSION = "v1"
BODY_CHARS_MAX = 200_000
LOGGERS = ("httpx2", "httpcore2")
LOCAL_NAMES = frozenset({"localhost"})


class Webhook:
    """One webhook. Raises ChannelUnusable where its address or key is none."""

    def __init__(
        self,
        name: str,
        address: SecretStr,
        key: SecretStr,
        timeout_s: float,
        *,
        private: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        hush(*LOGGERS)
        self._name = name
        self._address = address
        self._key = key
        self._timeout_s = timeout_s
        self._clock = clock
        parts = _parts(name, address)
        self._private = private or _is_written_private(parts.hostname or "")
        if parts.scheme == "http" and not self._private:
            raise ChannelUnusable(
                f"webhook {name}: http:// is for private addresses alone; use https://"
            )
        try:
            tls = client_tls()
        except AuthoritiesUnusable as error:
            raise ChannelUnusable(f"webhook {name}: {error}") from error
        self._client = httpx2.AsyncClient(
            timeout=timeout_s, follow_redirects=False, trust_env=False, verify=tls
        )

    def __repr__(self) -> str:
        return f"Webhook({self._name!r})"

    @property
    def limits(self) -> MessageLimits:
        """The text of a message is not sent, only its notices."""
        return MessageLimits(title_chars_max=0, body_chars_max=BODY_CHARS_MAX)

    async def send(self, message: ChannelMessage) -> SendOutcome:
        """Send the notices; what people read stands in each."""
        body = orjson.dumps(
            {
                "version": 1,
                "channel": self._name,
                "notices": [notice.model_dump(mode="json") for notice in message.notices],
            }
        )
        # An error's own text holds the address.
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(body)
        except (TimeoutError, httpx2.TimeoutException):
            return SendOutcome("timeout")
        except httpx2.HTTPError as error:
            return SendOutcome("tls" if _is_tls(error) else "unreachable")
        except OSError:  # the look-up of a name raises one
            return SendOutcome("unreachable")

    async def _post(self, body: bytes) -> SendOutcome:
        parts = _parts(self._name, self._address)
        host, port = parts.hostname or "", parts.port or _port(parts.scheme)
        addresses = await _look_up(host, port)
        if not self._private and not all(map(is_public, addresses)):
            return SendOutcome("private_address")
        stamp = str(int(self._clock()))
        headers = {
            "Host": parts.netloc.rpartition("@")[2],
            "Content-Type": "application/json",
            "User-Agent": "Deskbus",
            TIMESTAMP_HEADER: stamp,
            SIGNATURE_HEADER: f"{SIGNATURE_VERSION}={signature(self._key, stamp, body)}",
        }
        request = self._client.build_request(
            "POST",
            _at(parts, addresses[0], port),
            content=body,
            headers=headers,
            extensions={"sni_hostname": host},
        )
        answer = await self._client.send(request, stream=True)
        try:
            return SendOutcome("" if answer.is_success else f"http_{answer.status_code}")
        finally:
            await answer.aclose()


def signature(key: SecretStr, timestamp: str, body: bytes) -> str:
    """The signature that a receiver computes too, and compares."""
    signed = timestamp.encode() + b"." + body
    return hmac.new(key.get_secret_value().encode(), signed, hashlib.sha256).hexdigest()


def _parts(name: str, address: SecretStr) -> SplitResult:
    try:
        parts = urlsplit(address.get_secret_value())
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0
    except ValueError:
        wrong = True
    if wrong:
        raise ChannelUnusable(f"webhook {name}: its address is none; it begins with https://")
    return parts


def _port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _is_written_private(host: str) -> bool:
    """Whether the operator wrote an address of this machine or network himself."""
    try:
        return not is_public(ipaddress.ip_address(host))
    except ValueError:
        return host in LOCAL_NAMES


async def _look_up(host: str, port: int) -> list[Address]:
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ipaddress.ip_address(str(info[4][0]).partition("%")[0]) for info in infos]


def _at(parts: SplitResult, address: Address, port: int) -> str:
    """The URL with the address in the host's place: no second look-up gives another one."""
    host = f"[{address}]" if address.version == 6 else str(address)
    return urlunsplit((parts.scheme, f"{host}:{port}", parts.path or "/", parts.query, ""))


def _is_tls(error: BaseException) -> bool:
    """Whether an error comes from TLS."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return True
        seen = seen.__cause__ or seen.__context__
    return "SSL" in type(error).__name__
