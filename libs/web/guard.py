"""The guard of HTTP: it admits or refuses a request before an application sees it."""

import asyncio
import hmac
import re
from collections.abc import Callable, Hashable
from enum import Enum, auto
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contracts.message import MESSAGE_BYTES_MAX
from libs.runtime.http_address import HttpAddress, HttpRefused
from libs.runtime.json_keys import repeated_key
from libs.web.concurrency_limit import (
    ClientGone,
    ConcurrencyLimit,
    RequestPace,
    Shared,
    Waiting,
    while_there,
)
from libs.web.connections import let_in
from libs.web.door import BrowserLogin
from libs.web.problem import HttpProblem, unavailable
from libs.web.proposer import BODY_BYTES_MAX as PROPOSER_BODY_BYTES_MAX
from libs.web.proposer import ProposerTokens
from libs.web.stream import EVENT_STREAM, StreamEnded

HEADERS_BYTES_MAX = 32_768
"""Names and values of a request's headers, and its path."""
BODY_S_MAX = 10.0
"""From a request's headers to the end of its body."""
STRANGERS_BODY_BYTES_MAX = 4_096
"""A body of somebody who has not shown the token: a login."""
REQUEST_S_MAX = 20.0
"""From a whole request to its answer: longer than the desk itself waits for anybody."""
IN_FLIGHT_MAX = 4
"""Answers to reads that are being made at once. All share one event loop, so more would not be
faster; and a read that still waits shares its answer with all that ask the same."""
CHANGES_IN_FLIGHT_MAX = 16
"""Requests that change something, at once. No two share an answer, and most wait for the desk."""
FIRST_IN_FLIGHT_MAX = 8
"""Answers about the kill switch at once, beside all others."""
PROPOSERS_IN_FLIGHT_MAX = 4
"""Answers to proposers at once: whatever they send keeps no person waiting."""
STRANGERS_IN_FLIGHT_MAX = 4
"""Answers to strangers at once: the login page, what it loads, and logins."""
OF_THE_CALLER = frozenset({b"authorization", b"cookie", b"user-agent", b"referer", b"connection"})
"""Headers that say who asks, and change nothing in the answer to a read."""
FORM = "application/x-www-form-urlencoded"
READS = frozenset({"GET", "HEAD", "OPTIONS"})
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::[0-9]*)?", re.IGNORECASE)


class Caller(Enum):
    """Whose request it is."""

    OWNER = auto()
    PROPOSER = auto()
    STRANGER = auto()


class Guard:
    """Lets requests through to `app` as `address` says.

    On loopback a request must name this machine as its host: a page of the web that has made its
    own name point here (DNS rebinding) is refused. What changes something must not come from
    another page's script, which browsers tell in Origin; its body is JSON, which no page sends
    elsewhere unasked, or where the door takes one a form that names this origin. With a token every
    request bears it, or where there is a `door` for browsers, a session's cookie. `token` gives it
    where it may come later than the address: from then on it is asked for, and streams that began
    without it end.

    Only a request that is there as a whole takes a seat. Seats are kept apart by what is asked: the
    kill switch, what changes something, reads. Requests without the token have seats of their own
    and a pace: they take little time from those with it. So have proposers,
    whose own tokens open a few paths alone.
    """

    def __init__(
        self,
        app: ASGIApp,
        address: HttpAddress,
        request_s_max: float | None = None,
        door: BrowserLogin | None = None,
        body_bytes_max: int = MESSAGE_BYTES_MAX,
        proposers: ProposerTokens | None = None,
        token: Callable[[], str | None] | None = None,
    ) -> None:
        self._app = app
        self._token_now = token or (lambda: address.token)
        self._proposers = proposers
        self._address = address
        self._door = door
        self._request_s_max = request_s_max
        self._body_bytes_max = body_bytes_max
        self._first, self._strangers, self._proposing = (
            ConcurrencyLimit(FIRST_IN_FLIGHT_MAX),
            ConcurrencyLimit(STRANGERS_IN_FLIGHT_MAX),
            ConcurrencyLimit(PROPOSERS_IN_FLIGHT_MAX),
        )
        self._reads, self._changes = (
            ConcurrencyLimit(IN_FLIGHT_MAX),
            ConcurrencyLimit(CHANGES_IN_FLIGHT_MAX),
        )
        self._paces = {True: RequestPace(), False: RequestPace()}
        self._waiting = Waiting()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._answer(scope, receive, send)
        except ClientGone:
            return
        except HttpProblem as refused:
            no = refused.response if self._door is None else self._door.refusal(scope, refused)
            await no(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            who = self._admit(scope)
        except HttpProblem:
            await self._pace(scope, receive)
            raise
        if who is Caller.STRANGER:
            body = await _whole_body(scope, receive, STRANGERS_BODY_BYTES_MAX)
            await self._pace(scope, receive)
            await self._seated(self._strangers, scope, body, receive, send)
            return
        let_in(scope)
        if who is Caller.PROPOSER:
            # Its reads share an answer with nobody: who asks changes it.
            body = await _whole_body(scope, receive, PROPOSER_BODY_BYTES_MAX)
            await self._seated(self._proposing, scope, body, receive, send)
            return
        body = await _whole_body(scope, receive, self._body_bytes_max)
        if self._door is not None and self._door.goes_first(scope):
            await self._seated(self._first, scope, body, receive, send)
        elif scope["method"] not in READS:
            await self._seated(self._changes, scope, body, receive, send)
        elif self._door is None or self._door.is_open(scope):
            await self._seated(self._reads, scope, body, receive, send)
        else:
            await self._read(scope, body, receive, send)

    async def _pace(self, scope: Scope, receive: Receive) -> None:
        """Wait for a stranger's turn; who logs in does not wait for those who look."""
        if self._token() is not None:
            pace = self._paces[scope["method"] in READS]
            await while_there(receive, pace.turn())

    async def _seated(
        self, seats: ConcurrencyLimit, scope: Scope, body: bytes, receive: Receive, send: Send
    ) -> None:
        async with seats.taken(receive) as leave:
            await self._in_time(scope, body, receive, send, leave)

    async def _read(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Answer a read; where one that asks the same waits for its seat, by the same answer."""
        question = _question(scope)
        waiting = self._waiting.find(question)
        if waiting is not None:
            answer = await while_there(receive, waiting.of_another(scope))
            if answer is None:
                await self._seated(self._reads, scope, body, receive, send)
                return
        else:
            with self._waiting.open(question, scope) as shared:
                async with self._reads.taken(receive) as leave:
                    self._waiting.close(question, shared)
                    if not shared.followers:
                        await self._in_time(scope, body, receive, send, leave)
                        return
                    collected = Collected(shared, send)
                    await self._in_time(scope, body, receive, collected.send, leave)
                answer = collected.answer
                shared.give(answer)
        for message in answer:
            await send(message)

    def _admit(self, scope: Scope) -> Caller:
        """Who comes: a stranger to what is open to all, a proposer to what is open to it. Raises
        `HttpProblem`."""
        headers = Headers(scope=scope)
        _check_headers(scope)
        self._check_host(headers)
        body_bytes_max = self._body_bytes_max
        if self._proposers is not None and self._proposers.admit(scope, headers):
            who, body_bytes_max = Caller.PROPOSER, PROPOSER_BODY_BYTES_MAX
        else:
            who = Caller.OWNER if self._bears_token(scope, headers) else Caller.STRANGER
        if scope["method"] not in READS:
            _check_origin(headers)
            _check_content(headers, body_bytes_max, takes_form=self._takes_form(scope))
        return who

    def _token(self) -> str | None:
        """The token that a request must bear now. Raises `HttpProblem` where it cannot be read."""
        try:
            return self._token_now()
        except HttpRefused as error:
            raise unavailable(error.message) from error

    def _takes_form(self, scope: Scope) -> bool:
        return self._door is not None and self._door.takes_form(scope)

    def _check_host(self, headers: Headers) -> None:
        if not self._address.is_loopback:
            return
        name = _host_name(headers.get("host", ""))
        if name not in LOCAL_NAMES | {self._address.host}:
            raise HttpProblem(
                HTTPStatus.MISDIRECTED_REQUEST,
                "host_not_allowed",
                "this server answers to localhost, 127.0.0.1 and [::1] only; for other names let "
                "it listen beyond loopback, with a token",
            )

    def _bears_token(self, scope: Scope, headers: Headers) -> bool:
        """Whether the request bears the token, a session's cookie, or needs neither here. Raises
        `HttpProblem` where it does not and comes to what is not open to all."""
        token, door = self._token(), self._door
        if token is None or (door is not None and door.knows(headers.get("cookie", ""))):
            return True
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(credentials.strip().encode("latin-1"), token.encode())
        if scheme.lower() == "bearer" and same:
            return True
        if door is not None and door.is_open(scope):
            return False
        raise HttpProblem(
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
        started = heard_body = streams = False
        is_open_to_all = self._token() is None

        async def receive_body() -> Message:
            nonlocal heard_body
            if heard_body:
                return await receive()
            heard_body = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send_on(message: Message) -> None:
            nonlocal started, streams
            started = True
            leave()
            if _begins_stream(message):
                streams = True
                limit.reschedule(None)
            if streams and is_open_to_all and self._token() is not None:
                raise StreamEnded("a token is needed since it began")
            await send(message)

        limit_s = self._request_s_max or REQUEST_S_MAX
        try:
            async with asyncio.timeout(limit_s) as limit:
                await self._app(scope, receive_body, send_on)
        except TimeoutError:
            if started:
                raise
            raise unavailable(f"the desk had no answer within {limit_s:g} s") from None


class Collected:
    """An answer, collected to be sent to several: a client that reads slowly holds up no other. A
    stream is no such answer, and is sent on to the first that asked."""

    def __init__(self, shared: Shared, send: Send) -> None:
        self._shared = shared
        self._send: Send | None = None
        self._to_first = send
        self.answer: list[Message] = []

    async def send(self, message: Message) -> None:
        """The next part of the answer."""
        if _begins_stream(message):
            self._shared.give(None)
            self._send = self._to_first
        if self._send is not None:
            await self._send(message)
        else:
            self.answer.append(message)


def _question(scope: Scope) -> Hashable:
    """Equal for requests of people with the token that get the same answer."""
    headers = (header for header in scope["headers"] if header[0] not in OF_THE_CALLER)
    return scope["path"], scope.get("query_string", b""), tuple(sorted(headers))


async def _whole_body(scope: Scope, receive: Receive, most: int) -> bytes:
    """The body once it is there. Raises `HttpProblem` where it is too large, takes too long, or
    says one thing twice."""
    body = await _received(receive, most)
    if scope["method"] not in READS and repeated_key(body) is not None:
        text = "a name stands twice in one object of the body; send it once"
        raise HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", text)
    return body


async def _received(receive: Receive, most: int) -> bytes:
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
        raise HttpProblem(HTTPStatus.REQUEST_TIMEOUT, "too_slow", text) from None


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
        raise HttpProblem(code, "headers_too_large", text)


def _check_origin(headers: Headers) -> None:
    origin, host = headers.get("origin"), headers.get("host", "").lower()
    # Word for word: an Origin that cannot be read is another one too.
    if origin is not None and origin.lower() not in {f"http://{host}", f"https://{host}"}:
        raise HttpProblem(
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
        raise HttpProblem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "send the body as JSON, with Content-Type: application/json",
        )
    _check_size(int(length), bytes_max)


def _check_form(headers: Headers) -> None:
    # A browser sends a form to anybody, unasked: only Origin, compared already, says from where.
    if "origin" not in headers:
        raise HttpProblem(
            HTTPStatus.FORBIDDEN,
            "origin_not_allowed",
            "a form is taken from the desk's own page only, and this browser does not say which "
            "page sent it; send JSON to the API instead",
        )


def _check_size(size: int, most: int) -> None:
    if size > most:
        text = f"the body has more than {most:,} bytes: send less in one request"
        raise HttpProblem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", text)


def _host_name(host: str) -> str:
    """The name in a Host header, without port and brackets; empty where it holds anything else."""
    match = HOST.fullmatch(host)
    return (match["v6"] or match["name"]).lower() if match else ""
