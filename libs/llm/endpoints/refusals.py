"""From an endpoint's refusal to the error that says what to do about it.

Vendors put the same few troubles under different statuses and into different words; the words count
first, then the status. Texts from outside are cut to one short line.
"""

import email.utils
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from libs.llm.errors import (
    AccountExhausted,
    KeyRefused,
    ModelError,
    ModelRefused,
    ModelUnknown,
    ProviderUnavailable,
    ReplyUnreadable,
    RequestRefused,
    TaskTooLarge,
)

TOLD_CHARS_MAX = 300
"""Of an endpoint's own words in an error."""
READ_CHARS_MAX = 4_000
"""Of an endpoint's own words that are searched for their meaning."""
AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})
WAIT_IN_WORDS = re.compile(
    r"(?:try again|retry) (?:in|after) (?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+) ?(ms|s))?"
)
WAIT_UNITS_S = {"ms": 0.001, "s": 1.0}


@dataclass(frozen=True)
class Meaning:
    """The meaning of any of these words of an endpoint, in lower case, and what a person can do."""

    words: Sequence[str]
    error: type[ModelError]
    do: str


ADD_CREDIT = "add credit or quota at the provider"
ASK_LESS = "ask for fewer tickers, lower output_tokens_max, or use a model or tier that takes more"
MEND_KEY = "check the key: `deskbus doctor` says where it comes from"
MODELS = "`models` of its [providers.NAME] in deskbus.toml (docs/providers.md)"
NAME_MODEL = f"name another model in {MODELS}"
MEND_URL = f"check base_url (most end in /v1), or name another model in {MODELS}"

MEANINGS: Sequence[Meaning] = (
    Meaning(
        (
            "tool_use_failed",
            "json_validate_failed",
            "output_parse_failed",
            "does not match the expected",
            "failed to parse input",
            "failed to parse tool call",
        ),
        ReplyUnreadable,
        "try a larger model for this stage",
    ),
    # A minute's quota is called a quota too, but comes with a wait: see `_meaning_of`.
    Meaning(
        (
            "insufficient_quota",
            "insufficient_balance",
            "insufficient balance",
            "insufficient credit",
            "credit balance",
            "more credits",
            "api usage limits",
            "billing_error",
            "billing_hard_limit",
            "billing hard limit",
            "billing_not_active",
            "check your billing",
            "exceeded_current_quota",
            "exceeded your current quota",
            "quota exceeded",
            "余额不足",
        ),
        AccountExhausted,
        ADD_CREDIT,
    ),
    Meaning(
        (
            "prompt is too long",
            "input is too long",
            "context length",
            "context_length",
            "context window",
            "context size",
            "context_size",
            "context limit",
            "long context requests",
            "request too large",
            "request_too_large",
            "reduce the length",
            "input token count",
            "max_tokens must be at least 1, got -",
            "string_above_max_length",
        ),
        TaskTooLarge,
        ASK_LESS,
    ),
    Meaning(
        ("api key not valid", "api_key_invalid", "invalid_api_key", "incorrect api key"),
        KeyRefused,
        MEND_KEY,
    ),
    Meaning(
        (
            "unsupported_country",
            "country, region",
            "available in your country",
            "location is not supported",
        ),
        RequestRefused,
        "use another provider: this one does not serve your place",
    ),
    Meaning(
        ("enable-auto-tool-choice", "tool-call-parser"),
        ModelUnknown,
        "start vLLM with --enable-auto-tool-choice and --tool-call-parser NAME",
    ),
    Meaning(
        ("--jinja",),
        ModelUnknown,
        "start llama-server with --jinja: without it no model can call tools",
    ),
    Meaning(
        (
            "does not support tools",
            "does not support function",
            "support tool use",
            "tools are not supported",
        ),
        ModelUnknown,
        f"name a model that can call tools in {MODELS}",
    ),
    Meaning(
        (
            "model_not_found",
            "not_found_error",
            "deploymentnotfound",
            "invalid_model",
            "invalid model:",
            "unknown model",
            "the model `",
            "try pulling it",
            "model not exist",
            "not a valid model",
            "does not have access to model",
        ),
        ModelUnknown,
        NAME_MODEL,
    ),
    Meaning(
        (
            "content_filter",
            "content management policy",
            "content exists risk",
            "sensitive content",
            "new_sensitive",
            "invalid_prompt",
        ),
        ModelRefused,
        "try another provider for this stage: the filter of this one refused what was sent",
    ),
)
PER_DAY = "perday"
"""Gemini's name of a quota that is back tomorrow, however soon it says to try again."""


@dataclass(frozen=True)
class ErrorBody:
    """An error body: its kind, its words, and the hints that its meaning is read from."""

    kind: str
    words: str
    hints: str

    def line(self, who: str, status: int) -> str:
        """The kind and the words after who answered, and how."""
        words = one_line(self.words)
        parts = (f"{who}: HTTP {status}", self.kind, f"({words})" if words else "")
        return " ".join(part for part in parts if part)


def refusal(who: str, status: int, body: object, headers: Mapping[str, str]) -> ModelError:
    """The error for an HTTP status that is no success."""
    error = error_body(body)
    what = error.line(who, status)
    request_id = headers.get("request-id") or headers.get("x-request-id")
    what += f" [request {one_line(request_id, 80)}]" if request_id else ""
    return meant(what, error, headers) or _by_status(what, status, error, headers)


def meant(what: str, error: ErrorBody, headers: Mapping[str, str]) -> ModelError | None:
    """The error that the words stand for, whatever the status; None where they say nothing."""
    meaning = next((row for row in MEANINGS if any(w in error.hints for w in row.words)), None)
    if meaning is None:
        return None
    passes = _wait_s(error, headers) is not None and PER_DAY not in error.hints
    if meaning.error is AccountExhausted and passes:
        # So Gemini words the limit of a minute; an account without credit names no wait.
        return None
    return meaning.error(f"{meaning.do}; {what}")


def _by_status(what: str, status: int, error: ErrorBody, headers: Mapping[str, str]) -> ModelError:
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return KeyRefused(f"{MEND_KEY}; {what}")
        case HTTPStatus.PAYMENT_REQUIRED:
            return AccountExhausted(f"{ADD_CREDIT}; {what}")
        case HTTPStatus.NOT_FOUND:
            return ModelUnknown(f"{MEND_URL}; {what}")
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return TaskTooLarge(f"{ASK_LESS}; {what}")
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in AGAIN:
            return _passing(what, status, error, headers)
        case _:
            return RequestRefused(what)


def _passing(what: str, status: int, error: ErrorBody, headers: Mapping[str, str]) -> ModelError:
    if headers.get("x-should-retry") == "false":
        return RequestRefused(f"{what}; the endpoint says that asking again would not help")
    return ProviderUnavailable(
        what,
        retry_after_s=_wait_s(error, headers),
        # A gateway that gave up waiting does not know what the model behind it did.
        may_have_cost=status == HTTPStatus.GATEWAY_TIMEOUT,
    )


def _wait_s(error: ErrorBody, headers: Mapping[str, str]) -> float | None:
    wait_s = retry_after_s(headers)
    return _wait_in_words(error.hints) if wait_s is None else wait_s


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


def _wait_in_words(hints: str) -> float | None:
    """As "please retry in 34.07s" or "try again in 7m12s" say it."""
    match = WAIT_IN_WORDS.search(hints)
    if match is None or not any(match.groups()):
        return None
    hours, minutes, number, unit = match.groups()
    try:
        seconds = float(number or 0) * WAIT_UNITS_S[unit or "s"]
    except ValueError:
        return None
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + seconds


def one_line(text: object, chars_max: int = TOLD_CHARS_MAX) -> str:
    """Words from outside as a short line without control characters."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return clean if len(clean) <= chars_max else f"{clean[: chars_max - 3]}..."


def error_body(body: object) -> ErrorBody:
    """Read an error body: nested, flat, in a list (Gemini), or a page of HTML."""
    body = body[0] if isinstance(body, list) and body else body
    if not isinstance(body, dict):
        words = one_line(body or "", 120)
        return ErrorBody("", words, words.lower())
    inner: Any = body.get("error", body)
    if not isinstance(inner, dict):
        words = one_line(inner or "", READ_CHARS_MAX)
        return ErrorBody("", words, words.lower())
    base = inner.get("base_resp")
    if isinstance(base, dict):
        # MiniMax says so beside empty choices.
        inner = {"message": base.get("status_msg"), "code": base.get("status_code")}
    kinds = [one_line(inner.get(name) or "", 80) for name in ("code", "type", "status")]
    named = [kind for kind in kinds if kind and not kind.isdigit()]
    kind = next(iter(named), next(filter(None, kinds), ""))
    words = " ".join(filter(None, (_as_text(inner.get("message")), _behind(inner))))
    words = one_line(words or _as_text(inner.get("detail")), READ_CHARS_MAX)
    return ErrorBody(kind, words, " ".join((*kinds, words, _details(inner))).lower())


def _behind(inner: Mapping[str, Any]) -> str:
    """The words of the provider behind a router, which itself says "Provider returned error"."""
    metadata = inner.get("metadata")
    return _as_text(metadata.get("raw")) if isinstance(metadata, dict) else ""


def _details(inner: Mapping[str, Any]) -> str:
    """Google's reasons and the names of its quotas."""
    details = inner.get("details")
    names: list[str] = []
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            violations = detail.get("violations")
            broken = violations if isinstance(violations, list) else ()
            names += [str(detail.get("reason") or "")]
            names += [str(v.get("quotaId") or "") for v in broken if isinstance(v, dict)]
    return one_line(" ".join(names), READ_CHARS_MAX)


def _as_text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return str(value)
