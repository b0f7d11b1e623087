"""From what an endpoint answered instead of a reply to the error that says what to do about it.

Both SDKs raise the same family of exceptions over the same HTTP client; what they mean is said
here once. Texts from outside are cut to one short line.
"""

import asyncio
import email.utils
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import httpx2
from pydantic import ValidationError

from libs.llm.errors import (
    AccountExhausted,
    KeyRefused,
    ModelError,
    ModelUnknown,
    ProviderFault,
    ProviderUnavailable,
    RequestRefused,
    TaskTooLarge,
)

TOLD_CHARS_MAX = 300
"""Of an endpoint's own words in an error."""
START_BYTES = 60
"""Shown of a body that is no reply."""
NO_CREDIT = ("insufficient_quota", "billing_error", "credit balance", "quota exceeded")
TOO_LONG = ("prompt is too long", "context length", "context window", "context_length_exceeded")
GARBLED = "does not match the expected"
"""llama.cpp says so, with HTTP 500, where a model's tool call could not be read."""
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})


@asynccontextmanager
async def told_by(sdk: Any, who: str, timeout_s: float) -> AsyncIterator[None]:
    """A call through an SDK, given by its module: its errors, and its silence, as ModelErrors.

    `who` names endpoint and model.
    """
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except (sdk.APITimeoutError, TimeoutError):
        raise too_slow(who, timeout_s) from None
    except sdk.APIStatusError as error:
        raise refusal(who, error.status_code, error.body, error.response.headers) from None
    except sdk.APIConnectionError as error:
        raise lost(who, error.__cause__) from None


def refusal(who: str, status: int, body: object, headers: Mapping[str, str]) -> ModelError:
    """The error for an HTTP status that is no success."""
    kind, told = _told(body)
    request_id = headers.get("request-id") or headers.get("x-request-id")
    what = " ".join(
        part for part in (f"{who}: HTTP {status}", kind, f"({told})" if told else "") if part
    )
    what += f" [request {one_line(request_id, 80)}]" if request_id else ""
    hints = f"{kind} {told}".lower()
    if any(word in hints for word in NO_CREDIT):
        return AccountExhausted(f"{what}; add credit or quota at the provider")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in AGAIN:
        return _passing(what, status, hints, headers)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or any(word in hints for word in TOO_LONG):
        return TaskTooLarge(f"{what}; ask for fewer tickers, or use a model with a longer context")
    return _final(what, status)


def _passing(what: str, status: int, hints: str, headers: Mapping[str, str]) -> ModelError:
    if GARBLED in hints:
        return ProviderFault(what, may_have_cost=True)
    if headers.get("x-should-retry") == "false":
        return RequestRefused(f"{what}; the endpoint says that asking again would not help")
    # A gateway that gave up waiting does not know what the model behind it did.
    may_have_cost = status == HTTPStatus.GATEWAY_TIMEOUT
    return ProviderUnavailable(
        what, retry_after_s=retry_after_s(headers), may_have_cost=may_have_cost
    )


def _final(what: str, status: int) -> ModelError:
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return KeyRefused(f"{what}; `deskbus doctor` names where the key comes from")
        case HTTPStatus.PAYMENT_REQUIRED:
            return AccountExhausted(f"{what}; add credit or quota at the provider")
        case HTTPStatus.NOT_FOUND:
            return ModelUnknown(f"{what}; name another model, or mend the base_url")
        case _:
            return RequestRefused(what)


def lost(who: str, cause: BaseException | None) -> ProviderUnavailable:
    """No connection, or one that ended before the reply: whether that was paid nobody knows."""
    why = one_line(str(cause) or type(cause).__name__)
    if isinstance(cause, NEVER_SENT):
        return ProviderUnavailable(f"{who}: cannot be reached ({why})")
    return ProviderUnavailable(
        f"{who}: the connection was lost before the reply ({why})", may_have_cost=True
    )


def too_slow(who: str, timeout_s: float) -> ProviderUnavailable:
    """No reply in time: whether it was paid nobody knows."""
    return ProviderUnavailable(
        f"{who}: no reply within {timeout_s:g} s (DESKBUS_MODEL_TIMEOUT_S)", may_have_cost=True
    )


def no_reply(who: str, body: bytes, error: ValidationError) -> ProviderFault:
    """HTTP 200 with something that is no reply."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"]) or "body"
    start = one_line(body[:START_BYTES].decode(errors="replace"))
    return ProviderFault(
        f"{who}: answered with no reply ({place}: {one_line(first['msg'])}); it begins {start!r}",
        may_have_cost=True,
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The wait that is asked for, in seconds: milliseconds, seconds or a date; None without one."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            asked_s = float(headers[name]) * unit_s
        except (KeyError, ValueError):
            continue
        return max(0.0, asked_s) if math.isfinite(asked_s) else None
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return max(0.0, date.timestamp() - time.time())


def one_line(text: object, chars_max: int = TOLD_CHARS_MAX) -> str:
    """Words from outside as a short line without control characters."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return clean if len(clean) <= chars_max else f"{clean[: chars_max - 3]}..."


def _told(body: object) -> tuple[str, str]:
    """The error's kind and its words: both wire formats, nested or flat, or a page of HTML."""
    if not isinstance(body, dict):
        return "", one_line(body or "", 120)
    inner: Any = body.get("error", body)
    if not isinstance(inner, dict):
        return "", one_line(inner)
    kind = one_line(inner.get("code") or inner.get("type") or "", 80)
    return kind, one_line(inner.get("message") or "")
