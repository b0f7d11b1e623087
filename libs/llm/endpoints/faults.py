"""A call through an SDK that brought no reply, as the error that says what to do about it.

Both SDKs raise the same family of exceptions over the same HTTP client; what they mean is said
here once, and what an endpoint's own words mean in `refusals`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import orjson
from pydantic import ValidationError

from libs.llm.endpoints import refusals
from libs.llm.endpoints.endpoint import Endpoint
from libs.llm.endpoints.refusals import one_line
from libs.llm.errors import ModelError, ProviderFault, ProviderUnavailable

CONNECT_TIMEOUT_S = 20.0
START_BYTES = 60
"""Shown of a body that is no reply."""
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


def time_limits(endpoint: Endpoint) -> httpx2.Timeout:
    """The time that an SDK's client waits for a connection and for each next byte."""
    connect_s = min(CONNECT_TIMEOUT_S, endpoint.timeout_s)
    return httpx2.Timeout(endpoint.read_timeout_s, connect=connect_s)


@asynccontextmanager
async def told_by(sdk: Any, who: str, endpoint: Endpoint) -> AsyncIterator[None]:
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
        raise lost(who, error.__cause__, endpoint) from None
    except httpx2.TransportError as error:
        raise lost(who, error, endpoint) from None


def lost(who: str, cause: BaseException | None, endpoint: Endpoint) -> ProviderUnavailable:
    """No connection, one that ended before the reply, or one on which nothing came for too long:
    whether that was paid nobody knows, but for a connection that never was."""
    why = one_line(str(cause) or type(cause).__name__)
    if isinstance(cause, NEVER_SENT):
        return ProviderUnavailable(f"{who}: cannot be reached ({why})")
    if isinstance(cause, httpx2.TimeoutException):
        return silent(who, endpoint)
    return ProviderUnavailable(
        f"{who}: the connection was lost before the reply ({why})", may_have_cost=True
    )


def silent(who: str, endpoint: Endpoint) -> ProviderUnavailable:
    """The endpoint said nothing for as long as it may."""
    if not endpoint.tells_while_it_works:
        return too_slow(who, endpoint.timeout_s)
    return ProviderUnavailable(
        f"{who}: said nothing for {endpoint.silence_s:g} s (DESKBUS_MODEL_SILENCE_S)",
        may_have_cost=True,
    )


def too_slow(who: str, timeout_s: float) -> ProviderUnavailable:
    """No whole reply in time: whether it was paid nobody knows."""
    return ProviderUnavailable(
        f"{who}: no reply within {timeout_s:g} s (DESKBUS_MODEL_TIMEOUT_S)", may_have_cost=True
    )


def no_reply(who: str, body: bytes, error: ValidationError) -> ModelError:
    """HTTP 200 with something that is no reply, or with an error that should have been a status."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"]) or "body"
    start = one_line(body[:START_BYTES].decode(errors="replace"))
    what = f"{who}: answered with no reply ({place}: {one_line(first['msg'])}); it begins {start!r}"
    what += "; check the base_url, and what answers there"
    refusal = refusals.error_body(_as_json(body))
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


def _as_json(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except ValueError:
        return None
