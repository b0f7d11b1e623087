"""What an endpoint answers instead of a reply, and the error that it becomes."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest
from pydantic import JsonValue, TypeAdapter

from libs.llm import json_values
from libs.llm.endpoints import faults, refusals
from libs.llm.endpoints.endpoint import PRESETS

TABLE = [
    (400, "invalid_request_error", "max_tokens: Field required", "request_refused"),
    (400, "invalid_request_error", "prompt is too long: 1000001 tokens", "task_too_large"),
    (400, "context_length_exceeded", "maximum context length is 8192", "task_too_large"),
    (400, "invalid_request_error", "Your credit balance is too low", "account_exhausted"),
    (401, "authentication_error", "invalid x-api-key", "key_refused"),
    (402, "billing_error", "pay first", "account_exhausted"),
    (403, "permission_error", "not for this key", "key_refused"),
    (404, "not_found_error", "model: claude-nobody", "model_unknown"),
    (408, "timeout", "", "provider_unavailable"),
    (409, "conflict", "", "provider_unavailable"),
    (413, "request_too_large", "", "task_too_large"),
    (422, "unprocessable", "no", "request_refused"),
    (429, "rate_limit_error", "slow down", "provider_unavailable"),
    (429, "insufficient_quota", "You exceeded your current quota", "account_exhausted"),
    (500, "api_error", "Internal server error", "provider_unavailable"),
    (500, "server_error", "does not match the expected peg-native format", "reply_unreadable"),
    (502, "", "", "provider_unavailable"),
    (503, "service_unavailable", "", "provider_unavailable"),
    (504, "timeout_error", "", "provider_unavailable"),
    (529, "overloaded_error", "Overloaded", "provider_unavailable"),
]


@pytest.mark.parametrize(("status", "kind", "told", "code"), TABLE)
def test_every_status_has_its_typed_error(status, kind, told, code):
    error = refusals.refusal("x (m)", status, {"error": {"type": kind, "message": told}}, {})
    assert error.code == code
    assert f"HTTP {status}" in error.message
    assert told in error.message


@pytest.mark.parametrize(
    "body",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
        {"message": "busy", "code": "overloaded_error", "type": "server_error"},
        {"error": "busy overloaded_error"},
        "busy overloaded_error",
    ],
)
def test_the_words_of_an_error_are_found_nested_flat_or_plain(body):
    error = refusals.refusal("x (m)", 529, body, {})
    assert "busy" in error.message
    assert "overloaded_error" in error.message


@pytest.mark.parametrize("body", [None, "", {}, [], {"error": None}, {"error": {"message": None}}])
def test_an_error_without_words_is_an_error_all_the_same(body):
    assert refusals.refusal("x (m)", 500, body, {}).message.startswith("x (m): HTTP 500")


def test_a_page_of_html_is_cut_to_a_line_and_the_request_is_named():
    error = refusals.refusal(
        "x (m)", 502, "<html>\n\x1b[31m" + "a" * 5_000, {"request-id": "req_1"}
    )
    assert len(error.message) < 300
    assert "\n" not in error.message
    assert "\x1b" not in error.message
    assert "req_1" in error.message


def test_an_endpoint_that_says_not_to_ask_again_is_believed():
    headers = {"x-should-retry": "false"}
    assert refusals.refusal("x (m)", 500, {}, headers).code == "request_refused"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e999"}, None),
        ({}, None),
    ],
)
def test_the_wait_asked_for_is_read_in_every_form(headers, seconds):
    assert refusals.retry_after_s(headers) == seconds
    error = refusals.refusal("x (m)", 429, {}, headers)
    assert error.retry_after_s == seconds


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Quota exceeded for metric: x, limit: 10\nPlease retry in 34.07s.", 34.07),
        ("Rate limit reached. Please try again in 886ms. Visit", 0.886),
        ("Please try again in 7m12.5s.", 432.5),
        ("Please try again in 1h2m3s", 3723.0),
        ("Please retry after 86400 seconds.", 86_400.0),
        ("Please try again later.", None),
        ("Please try again in a moment", None),
        ("try again in 1.2.3s", None),
    ],
)
def test_the_wait_asked_for_in_words_is_read_too(words, seconds):
    error = refusals.refusal("x (m)", 429, {"error": {"message": words}}, {})
    assert error.retry_after_s == seconds


def test_a_wait_until_a_date_is_the_time_until_then():
    at = datetime.now(UTC) + timedelta(seconds=30)
    found = refusals.retry_after_s({"retry-after": format_datetime(at, usegmt=True)})
    assert 28 <= found <= 30


@pytest.mark.parametrize(
    ("cause", "paid"),
    [
        (httpx2.ConnectError("refused"), False),
        (httpx2.ConnectTimeout("slow"), False),
        (httpx2.ReadError(""), True),
        (httpx2.RemoteProtocolError("gone"), True),
        (None, True),
    ],
)
def test_only_a_connection_that_never_was_is_surely_unpaid(cause, paid):
    error = faults.lost("x (m)", cause, PRESETS["claude"])
    assert (error.code, error.may_have_cost) == ("provider_unavailable", paid)


def test_a_paid_reply_with_too_deep_a_part_is_used_without_that_part() -> None:
    deep = b"[" * 300 + b"1" + b"]" * 300
    body = b'{"text": "buy", "input": {"deep": %b, "ticker": "AAPL"}, "tokens": 7}' % deep
    reply = faults.reply_in("x (m)", body, TypeAdapter(dict[str, JsonValue]))
    assert (reply["text"], reply["tokens"]) == ("buy", 7)
    arguments = reply["input"]
    assert isinstance(arguments, dict)
    assert arguments["ticker"] == "AAPL"
    assert json_values.storable(arguments) == arguments, "it can be put on record"
    assert json_values.TOO_DEEP in str(arguments["deep"])
