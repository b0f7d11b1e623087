"""The HTTP client for other people's servers: their answers are bounded, and none leads elsewhere.

    bytes      counted while they are unpacked, in steps of 1 MB, before they are kept
    redirects  not followed: a request, and all that stands in it, goes to the host that was meant
    proxies    as libs.runtime.proxies says

This holds for every answer, also for those that an SDK reads by itself, such as errors.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from libs.runtime.errors import DeskError
from libs.runtime.proxies import Proxy, ProxyUnusable, proxy_for

REFUSAL_BYTES_MAX = 256_000
"""Of an answer with an error's status; the rest is cut off, and the status still counts."""
REFUSED = 400
PROXY_LOGIN = 407
"""The status by which a proxy refuses; a server never sends it."""
PIECE_BYTES_MAX = 16_384
"""Handed on at once: between two pieces everything else in the process has its turn."""
TLS_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")
LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20)
UNPACKED = frozenset({"content-encoding", "content-length"})
"""Headers that are not true of an answer whose bytes are unpacked."""


class AuthoritiesUnusable(DeskError):
    """An environment variable names certificates that cannot be read."""

    code = "authorities_unusable"


def client_tls() -> ssl.SSLContext:
    """TLS with the authorities of this system, or those of SSL_CERT_FILE or SSL_CERT_DIR.

    Raises `AuthoritiesUnusable`.
    """
    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # ssl.SSLError is one
        names = [name for name in TLS_VARIABLES if os.environ.get(name)]
        shown = ", ".join(f"{name} {os.environ[name]}" for name in names) or "this system's"
        raise AuthoritiesUnusable(
            f"the certificates of authorities cannot be used ({error}): correct or unset {shown}"
        ) from error


class AnswerTooLarge(httpx2.TransportError):
    """An answer has more bytes than it may have. The message names the limit, and no address."""


class SentElsewhere(httpx2.TransportError):
    """A server answered with a redirect. The message names the host that it leads to."""


class NotThroughProxy(httpx2.ProxyError):
    """A request did not get through the proxy: nothing of it reached the server. The message names
    the proxy, without its login, and the variable that sets it."""


class BoundedClient(httpx2.AsyncClient):
    """httpx2's client; an answer of more than `bytes_max`, unpacked, raises AnswerTooLarge where it
    is read, and a redirect raises SentElsewhere.

    `tls` is that of `client_tls` where none is given. Raises `AuthoritiesUnusable`.

    `options` are httpx2's own. Its time limits are for single waits: one for the whole answer is
    the caller's (`asyncio.timeout`).
    """

    def __init__(
        self,
        bytes_max: int,
        *,
        tls: ssl.SSLContext | None = None,
        limits: httpx2.Limits = LIMITS,
        **options: Any,
    ) -> None:
        options.setdefault("transport", _Routed(tls or client_tls(), limits))
        super().__init__(**options, follow_redirects=False)
        self.headers["Accept-Encoding"] = "gzip"
        self._bytes_max = bytes_max

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request; its answer is bounded. Raises SentElsewhere, httpx2.HTTPError."""
        options["follow_redirects"] = False
        answer = await super().send(request, stream=True, **options)
        if answer.has_redirect_location:
            await answer.aclose()
            raise SentElsewhere(_elsewhere(request.url, answer))
        headers = answer.headers.multi_items()
        bounded = httpx2.Response(
            answer.status_code,
            headers=[pair for pair in headers if pair[0].lower() not in UNPACKED],
            stream=_Bounded(answer, self._bytes_max),
            request=request,
            extensions=answer.extensions,
        )
        if not stream:
            await bounded.aread()
        return bounded


class _Routed(httpx2.AsyncBaseTransport):
    """Sends each request directly or through the proxy that is set for its address."""

    def __init__(self, tls: ssl.SSLContext, limits: httpx2.Limits) -> None:
        self._tls = tls
        self._limits = limits
        self._ways: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one. Raises httpx2.TransportError, NotThroughProxy among them."""
        try:
            proxy = proxy_for(str(request.url))
        except ProxyUnusable as error:
            raise NotThroughProxy(error.message) from error
        if proxy is None:
            return await self._way(None).handle_async_request(request)
        try:
            answer = await self._way(proxy).handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            why = str(error) or type(error).__name__
            raise NotThroughProxy(f"{why}, through the proxy of {proxy}") from error
        if answer.status_code == PROXY_LOGIN:
            await answer.aclose()
            raise NotThroughProxy(f"the proxy of {proxy} requires a login (HTTP {PROXY_LOGIN})")
        return answer

    def _way(self, proxy: Proxy | None) -> httpx2.AsyncHTTPTransport:
        url = proxy.url if proxy else ""
        if url not in self._ways:
            self._ways[url] = httpx2.AsyncHTTPTransport(
                verify=self._tls, limits=self._limits, proxy=url or None, trust_env=False
            )
        return self._ways[url]

    async def aclose(self) -> None:
        """Let go of all connections."""
        for way in self._ways.values():
            await way.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, as many as it may have."""

    def __init__(self, answer: httpx2.Response, bytes_max: int) -> None:
        self._answer = answer
        self._is_refusal = answer.status_code >= REFUSED
        self._bytes_max = min(bytes_max, REFUSAL_BYTES_MAX) if self._is_refusal else bytes_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for unpacked in self._answer.aiter_bytes():
            room = self._bytes_max - size
            size += len(unpacked)
            for at in range(0, min(len(unpacked), room), PIECE_BYTES_MAX):
                yield unpacked[at : min(at + PIECE_BYTES_MAX, room)]
                await asyncio.sleep(0)
            if size > self._bytes_max:
                await self._answer.aclose()
                if self._is_refusal:
                    return
                limit = f"{self._bytes_max:,} bytes, the limit"
                raise AnswerTooLarge(f"the answer has more than {limit}")

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._answer.aclose()


def _elsewhere(asked: httpx2.URL, answer: httpx2.Response) -> str:
    try:
        host = asked.join(answer.headers["Location"]).host
    except httpx2.InvalidURL:
        host = ""
    where = f"to {host[:100]}" if host else "to no valid address"
    return f"a redirect {where} (HTTP {answer.status_code}) is not followed, nothing was sent there"
