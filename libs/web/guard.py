"""The guard of HTTP: it admits or refuses a request before an application sees it."""

import asyncio
import hmac
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contracts.message import MESSAGE_BYTES_MAX
from libs.runtime.http_address import HttpAddress
from libs.web.connections import let_in
from libs.web.door import Door
from libs.web.problem import Refused, unavailable
from libs.web.stream import EVENT_STREAM

HEADERS_BYTES_MAX = 32_768
"""Names and values of a request's headers, and its path."""
BODY_S_MAX = 10.0
"""From a request's headers to the end of its body."""
STRANGERS_BODY_BYTES_MAX = 4_096
"""A body of somebody who has not shown the token: a login."""
REQUEST_S_MAX = 20.0
"""From a whole request to its answer: longer than the desk itself waits for anybody."""
IN_FLIGHT_MAX = 64
STRANGERS_IN_FLIGHT_MAX = 16
"""Answers to strangers at once: the login page, what it loads, and logins."""
FORM = "application/x-www-form-urlencoded"
READS = frozenset({"GET", "HEAD", "OPTIONS"})
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::[0-9]*)?", re.IGNORECASE)


class Seats:
    """So many requests are answered at once; one that finds no seat is told to come again."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[object] = set()

    @contextmanager
    def taken(self) -> Iterator[object]:
        """A seat while the block runs, unless it is left before. Raises `Refused`."""
        if len(self._taken) >= self._most:
            raise unavailable(f"{self._most} requests are being answered; come again")
        seat = object()
        self._taken.add(seat)
        try:
            yield seat
        finally:
            self.leave(seat)

    def leave(self, seat: object) -> None:
        """Give a seat to others before its block ends."""
        self._taken.discard(seat)


class Guard:
    """Lets requests through to `app` as `address` says.

    On loopback a request must name this machine as its host: a page of the web that has made its
    own name point here (DNS rebinding) is refused. What changes something must not come from
    another page's script, which browsers tell in Origin; its body is JSON, which no page sends
    elsewhere unasked, or where the door takes one a form that names this origin. With a token every
    request bears it, or where there is a `door` for browsers, a session's cookie.

    Only a request that is there as a whole takes a seat, and strangers have seats of their own: so
    nobody without the token keeps out who has it.
    """

    def __init__(
        self,
        app: ASGIApp,
        address: HttpAddress,
        request_s_max: float | None = None,
        door: Door | None = None,
        body_bytes_max: int = MESSAGE_BYTES_MAX,
    ) -> None:
        self._app = app
        self._address = address
        self._door = door
        self._request_s_max = request_s_max
        self._body_bytes_max = body_bytes_max
        self._seats, self._strangers_seats = Seats(IN_FLIGHT_MAX), Seats(STRANGERS_IN_FLIGHT_MAX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            is_stranger = self._admit(scope)
            if not is_stranger:
                let_in(scope)
            body = await _whole_body(
                receive, STRANGERS_BODY_BYTES_MAX if is_stranger else self._body_bytes_max
            )
            seats = self._strangers_seats if is_stranger else self._seats
            with seats.taken() as seat:
                await self._in_time(scope, body, receive, send, partial(seats.leave, seat))
        except Refused as refused:
            no = refused.response if self._door is None else self._door.refusal(scope, refused)
            await no(scope, receive, send)

    def _admit(self, scope: Scope) -> bool:
        """True for a stranger who comes to what is open to all. Raises `Refused`."""
        headers = Headers(scope=scope)
        _check_headers(scope)
        self._check_host(headers)
        is_stranger = not self._bears_token(scope, headers)
        if scope["method"] not in READS:
            _check_origin(headers)
            _check_content(headers, self._body_bytes_max, takes_form=self._takes_form(scope))
        return is_stranger

    def _takes_form(self, scope: Scope) -> bool:
        return self._door is not None and self._door.takes_form(scope)

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

    def _bears_token(self, scope: Scope, headers: Headers) -> bool:
        """Whether the request bears the token, a session's cookie, or needs neither here. Raises
        `Refused` where it does not and comes to what is not open to all."""
        token, door = self._address.token, self._door
        if token is None or (door is not None and door.knows(headers.get("cookie", ""))):
            return True
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(credentials.strip().encode("latin-1"), token.encode())
        if scheme.lower() == "bearer" and same:
            return True
        if door is not None and door.is_open(scope):
            return False
        raise Refused(
            HTTPStatus.UNAUTHORIZED,
            "unauthorized",
            "send the token that was set for this server: Authorization: Bearer TOKEN",
            headers={"WWW-Authenticate": "Bearer"},
        )

    async def _in_time(
        self, scope: Scope, body: bytes, receive: Receive, send: Send, leave: Callable[[], None]
    ) -> None:
        """Answer in time, or say that it took too long. The seat is left where the answer begins:
        who reads slowly keeps nobody out. A stream has answered then."""
        started = heard_body = False

        async def receive_body() -> Message:
            nonlocal heard_body
            if heard_body:
                return await receive()
            heard_body = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send_on(message: Message) -> None:
            nonlocal started
            started = True
            leave()
            if _begins_stream(message):
                limit.reschedule(None)
            await send(message)

        limit_s = self._request_s_max or REQUEST_S_MAX
        try:
            async with asyncio.timeout(limit_s) as limit:
                await self._app(scope, receive_body, send_on)
        except TimeoutError:
            if started:
                raise
            raise unavailable(f"the desk had no answer within {limit_s:g} s") from None


async def _whole_body(receive: Receive, most: int) -> bytes:
    """The body once it is there. Raises `Refused` where it is too large, or takes too long."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S_MAX):
            while True:
                message = await receive()
                body += message.get("body", b"")
                _check_size(len(body), most)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        text = f"the whole request did not come within {BODY_S_MAX:g} s"
        raise Refused(HTTPStatus.REQUEST_TIMEOUT, "too_slow", text) from None


def _begins_stream(message: Message) -> bool:
    if message["type"] != "http.response.start":
        return False
    return Headers(raw=message["headers"]).get("content-type", "").startswith(EVENT_STREAM)


def _check_headers(scope: Scope) -> None:
    # The server below looks only at headers that come in pieces.
    size = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    size += sum(len(name) + len(value) for name, value in scope["headers"])
    if size > HEADERS_BYTES_MAX:
        text = f"path and headers have more than {HEADERS_BYTES_MAX:,} bytes"
        code = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        raise Refused(code, "headers_too_large", text)


def _check_origin(headers: Headers) -> None:
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    # Word for word: an Origin that cannot be read is another one too.
    if origin is not None and origin.lower() not in {f"http://{host}", f"https://{host}"}:
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "origin_not_allowed",
            "a page of another origin may not change anything here",
        )


def _check_content(headers: Headers, bytes_max: int, *, takes_form: bool) -> None:
    length = headers.get("content-length", "0")
    has_body = length != "0" or "transfer-encoding" in headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if takes_form and kind == FORM:
        _check_form(headers)
    elif has_body and kind != "application/json":
        raise Refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "send the body as JSON, with Content-Type: application/json",
        )
    _check_size(int(length), bytes_max)


def _check_form(headers: Headers) -> None:
    # A browser sends a form to anybody, unasked: only Origin, compared already, says from where.
    if "origin" not in headers:
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "origin_not_allowed",
            "a form is taken from the desk's own page only, and this browser does not say which "
            "page sent it; send JSON to the API instead",
        )


def _check_size(size: int, most: int) -> None:
    if size > most:
        text = f"the body has more than {most:,} bytes: send less in one request"
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", text)


def _host_name(host: str) -> str:
    """The name in a Host header, without port and brackets; empty where it holds anything else."""
    match = HOST.fullmatch(host)
    return (match["v6"] or match["name"]).lower() if match else ""
