"""A call through an SDK that brought no reply, as the error that says what to do about it.

Both SDKs raise the same family of exceptions over the same HTTP client; what they mean is said
here once, and what an endpoint's own words mean in `refusals`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
from pydantic import JsonValue, TypeAdapter, ValidationError

from libs.llm.endpoints import refusals
from libs.llm.endpoints.endpoint import ModelEndpoint
from libs.llm.endpoints.refusals import one_line
from libs.llm.errors import (
    ModelError,
    ProviderFault,
    ProviderNotUsable,
    ProviderUnavailable,
    ReplyTooLarge,
)
from libs.llm.json_values import loaded, storable, without_depths
from libs.runtime.outgoing import (
    AnswerTooLarge,
    AuthoritiesUnusable,
    BoundedClient,
    SentElsewhere,
)

T = TypeVar("T")
OnAnswer = Callable[[httpx2.Response], Awaitable[None]]

CONNECT_TIMEOUT_S = 20.0
CONNECTIONS_MAX = 1_000
STREAM_BYTES_MAX = 16_000_000
"""Of one reply in pieces, with all that is around them: some 300 bytes for each token."""
CHECK_URL = "check base_url (most end in /v1), and what answers there"
START_SERVER = "start the model's server, or correct base_url"
UNREACHED = (
    ("certificate", "have the server's certificate trusted here (SSL_CERT_FILE)"),
    ("proxy", "correct or unset that variable, or add the host to NO_PROXY"),
    ("wrong_version_number", "write http:// in base_url: the server does not speak TLS"),
    ("record layer failure", "write http:// in base_url: the server does not speak TLS"),
    ("name or service", "correct the host in base_url: it has no address"),
    ("nodename nor servname", "correct the host in base_url: it has no address"),
)
"""Words of an error that came before any request, and what to do; the first that fit count."""
START_BYTES = 60
"""Shown of a body that is no reply."""
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)


def time_limits(endpoint: ModelEndpoint) -> httpx2.Timeout:
    """The time that an SDK's client waits for a connection and for each next byte."""
    connect_s = min(CONNECT_TIMEOUT_S, endpoint.timeout_s)
    return httpx2.Timeout(endpoint.read_timeout_s, connect=connect_s)


@asynccontextmanager
async def told_by(sdk: Any, who: str, endpoint: ModelEndpoint) -> AsyncIterator[None]:
    """A call through an SDK, given by its module: its errors, and its silence, as ModelErrors.

    `who` names endpoint and model.
    """
    try:
        async with asyncio.timeout(endpoint.timeout_s):
            yield
    except TimeoutError:
        raise too_slow(who, endpoint.timeout_s) from None
    except sdk.APIStatusError as error:
        raise refusals.refusal(who, error.status_code, error.body, error.response.headers) from None
    except sdk.APIConnectionError as error:
        cause = error.__cause__
        raise _refused_answer(who, cause) or lost(who, cause, endpoint) from None
    except httpx2.TransportError as error:
        raise _refused_answer(who, error) or lost(who, error, endpoint) from None


def _refused_answer(who: str, cause: BaseException | None) -> ModelError | None:
    """The fault of an answer that the desk's own client did not take."""
    if isinstance(cause, SentElsewhere):
        return ProviderFault(f"set base_url to the address that answers itself; {who}: {cause}")
    if isinstance(cause, AnswerTooLarge):
        return ReplyTooLarge(f"{CHECK_URL}; {who}: {cause}")
    return None


def client(endpoint: ModelEndpoint, on_answer: OnAnswer | None = None) -> BoundedClient:
    """The HTTP client for an SDK; `on_answer` is given each answer before its body is read. Raises
    ProviderNotUsable where this machine has no certificates to check a server by."""
    try:
        return BoundedClient(
            STREAM_BYTES_MAX,
            event_hooks={"response": [on_answer] if on_answer else []},
            timeout=time_limits(endpoint),
            limits=httpx2.Limits(max_connections=CONNECTIONS_MAX),
        )
    except AuthoritiesUnusable as error:
        raise ProviderNotUsable(f"{endpoint.name}: {error}") from error


def lost(who: str, cause: BaseException | None, endpoint: ModelEndpoint) -> ProviderUnavailable:
    """No connection, one that ended before the reply, or one on which nothing came for too long:
    whether that was paid nobody knows, but for a connection that never was."""
    why = one_line(str(cause) or type(cause).__name__)
    if isinstance(cause, NEVER_SENT):
        do = next((advice for words, advice in UNREACHED if words in why.lower()), START_SERVER)
        return ProviderUnavailable(f"{do}; {who}: cannot be reached at {endpoint.base_url} ({why})")
    if isinstance(cause, httpx2.TimeoutException):
        return silent(who, endpoint)
    return ProviderUnavailable(
        f"{who}: the connection was lost before the reply ({why})", may_have_cost=True
    )


def silent(who: str, endpoint: ModelEndpoint) -> ProviderUnavailable:
    """The endpoint said nothing for as long as it may."""
    if not endpoint.tells_while_it_works:
        return too_slow(who, endpoint.timeout_s)
    return ProviderUnavailable(
        f"raise silence_s, or check the model's server; {who}: said nothing for "
        f"{endpoint.silence_s:g} s (DESKBUS_MODEL_SILENCE_S)",
        may_have_cost=True,
    )


def too_slow(who: str, timeout_s: float) -> ProviderUnavailable:
    """No whole reply in time: whether it was paid nobody knows."""
    return ProviderUnavailable(
        f"raise timeout_s, or use a faster model; {who}: no reply within {timeout_s:g} s "
        "(DESKBUS_MODEL_TIMEOUT_S)",
        may_have_cost=True,
    )


def reply_in(who: str, body: bytes, form: TypeAdapter[T]) -> T:
    """The reply that a body holds, with nothing in it that cannot be kept: the one place where the
    text of a model comes in. Raises ProviderFault where there is none, and what an error means."""
    value: JsonValue = None
    try:
        value = storable(without_depths(loaded(body)))
        return form.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "body"
        raise _no_reply(who, body, value, f"{place}: {first['msg']}") from None
    except ValueError as error:
        raise _no_reply(who, body, value, f"body: {error}") from None


def _no_reply(who: str, body: bytes, value: JsonValue, why: str) -> ModelError:
    """HTTP 200 with something that is no reply, or with an error that should have been a status."""
    start = one_line(body[:START_BYTES].decode(errors="replace"))
    what = f"{CHECK_URL}; {who}: answered with no reply ({one_line(why)}); it begins {start!r}"
    refusal = refusals.error_body(value)
    return refusals.meant(refusal.line(who, 200), refusal, {}) or ProviderFault(
        what, may_have_cost=True
    )


def in_stream(who: str, event: dict[str, Any]) -> ModelError:
    """An error that came after HTTP 200, within the stream: what was written may be paid."""
    inner = event.get("error")
    code = inner.get("code") if isinstance(inner, dict) else None
    kind = inner.get("type") if isinstance(inner, dict) else None
    status = code if isinstance(code, int) and code in range(400, 600) else None
    error = refusals.refusal(who, status or STATUS_OF.get(str(kind), 500), event, {})
    if isinstance(error, ProviderUnavailable):
        error.may_have_cost = True
    return error


STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Anthropic's kinds of error, which a stream names without their status."""
