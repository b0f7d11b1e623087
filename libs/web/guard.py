"""Who is let in over HTTP, and with what: looked at before an application sees a request."""

import asyncio
import hmac
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contracts.message import MESSAGE_BYTES_MAX
from libs.runtime.http_address import HttpAddress
from libs.web.door import Door
from libs.web.problem import Refused, unavailable
from libs.web.stream import EVENT_STREAM

REQUEST_S_MAX = 20.0
"""From a request's first byte to its answer: longer than the desk itself waits for anybody."""
IN_FLIGHT_MAX = 64
READS = frozenset({"GET", "HEAD", "OPTIONS"})
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """Lets requests through to `app` as `address` says.

    On loopback a request must name this machine as its host: a page of the web that has made its
    own name point here (DNS rebinding) is refused. What changes something must not come from
    another page's script, which browsers tell in Origin. With a token every request bears it, or
    where there is a `door` for browsers, a session's cookie.
    """

    def __init__(
        self,
        app: ASGIApp,
        address: HttpAddress,
        request_s_max: float | None = None,
        door: Door | None = None,
    ) -> None:
        self._app = app
        self._address = address
        self._door = door
        self._request_s_max = request_s_max
        self._in_flight: set[object] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._admit(scope)
            await self._in_time(scope, receive, send)
        except Refused as refused:
            no = refused.response if self._door is None else self._door.refusal(scope, refused)
            await no(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        """Raises `Refused`."""
        headers = Headers(scope=scope)
        self._check_host(headers)
        self._check_token(scope, headers)
        if scope["method"] not in READS:
            _check_origin(headers)
            _check_content(headers)
        if len(self._in_flight) >= IN_FLIGHT_MAX:
            raise unavailable(f"{IN_FLIGHT_MAX} requests are being answered; come again")

    def _check_host(self, headers: Headers) -> None:
        if not self._address.is_loopback:
            return
        name = _host_name(headers.get("host", ""))
        if name not in LOCAL_NAMES | {self._address.host}:
            raise Refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "host_not_allowed",
                "this server answers to localhost, 127.0.0.1 and [::1] only; for other names let "
                "it listen beyond loopback, with a token",
            )

    def _check_token(self, scope: Scope, headers: Headers) -> None:
        token, door = self._address.token, self._door
        if token is None:
            return
        if door is not None and (door.is_open(scope) or door.knows(headers.get("cookie", ""))):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("latin-1"), token.encode())
        if scheme.lower() != "bearer" or not same:
            raise Refused(
                HTTPStatus.UNAUTHORIZED,
                "unauthorized",
                "send the token that was set for this server: Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )

    async def _in_time(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer in time, or say who was too slow. A stream has answered once it has begun."""
        complete = started = False
        size = 0
        request = object()

        async def heard() -> Message:
            nonlocal complete, size
            message = await receive()
            complete = complete or not message.get("more_body", False)
            size += len(message.get("body", b""))
            _check_size(size)
            return message

        async def said(message: Message) -> None:
            nonlocal started
            started = True
            if _begins_stream(message):
                limit.reschedule(None)
                self._in_flight.discard(request)
            await send(message)

        limit_s = self._request_s_max or REQUEST_S_MAX
        self._in_flight.add(request)
        try:
            async with asyncio.timeout(limit_s) as limit:
                await self._app(scope, heard, said)
        except TimeoutError:
            if started:
                raise
            if complete:
                raise unavailable(f"the desk had no answer within {limit_s:g} s") from None
            text = f"the whole request did not come within {limit_s:g} s"
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, "too_slow", text) from None
        finally:
            self._in_flight.discard(request)


def _begins_stream(message: Message) -> bool:
    if message["type"] != "http.response.start":
        return False
    return Headers(raw=message["headers"]).get("content-type", "").startswith(EVENT_STREAM)


def _check_origin(headers: Headers) -> None:
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "origin_not_allowed",
            "a page of another origin may not change anything here",
        )


def _check_content(headers: Headers) -> None:
    said = headers.get("content-length", "0")
    has_body = said != "0" or "transfer-encoding" in headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if has_body and kind != "application/json":
        raise Refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "send the body as JSON, with Content-Type: application/json",
        )
    _check_size(int(said))


def _check_size(size: int) -> None:
    if size > MESSAGE_BYTES_MAX:
        text = f"the body has more than {MESSAGE_BYTES_MAX:,} bytes: send less in one request"
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", text)


def _host_name(host: str) -> str:
    """The name in a Host header, without port and brackets; empty where it is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
