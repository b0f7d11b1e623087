"""How a message fared by what a service answered: whether the text is wrong, or the address. Pure.

Many services say 400 to both. Of a text that is refused nothing is to be hoped: it is given up. An
address that is wrong can be put right: until then its messages wait. So for the services here, what
an answer says decides; of the others 400 is taken for the text's.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from libs.channels.channel import BAD_BODY, RETRY_AFTER_S_MAX, Failed, Sent, by_status

WRONG_ADDRESS = "wrong_address"
LOGIN_REFUSED = "login_refused"
TEXT_REFUSED = "text_refused"
NOT_TAKEN = "not_taken"
BAD_REQUEST = 400

ON_THE_TEXT: Mapping[str, Sequence[str]] = {
    "Telegram": (
        "message is too long",
        "message text is empty",
        "text must be non-empty",
        "can't parse entities",
    ),
    "Slack": ("invalid_payload", "no_text", "msg_too_long", "too_many_attachments"),
    # An error is named after the field that it is of.
    "Discord": ('"content"', '"embeds"', "cannot send an empty message"),
    "ntfy": ("attachments not allowed", "must be utf-8"),
}
"""Words of a refusal that is about the text, by service; any other is about the address."""

SLACK_LOGIN = frozenset(
    {
        "account_inactive",
        "invalid_auth",
        "missing_scope",
        "not_authed",
        "token_expired",
        "token_revoked",
    }
)
SLACK_LATER = frozenset(
    {"fatal_error", "internal_error", "ratelimited", "request_timeout", "service_unavailable"}
)


def failure(service: str, status: int, retry_after: str | None, body: bytes) -> Failed:
    """The failure of a message that was not taken, by the last answer of an HTTP server."""
    failed = by_status(status, retry_after)
    if isinstance(failed, Sent):
        return _of_slacks_bot(body) if service == "Slack" else Failed(NOT_TAKEN)
    waits = [wait_s for wait_s in (failed.retry_after_s, _wait_s(body)) if wait_s is not None]
    words = ON_THE_TEXT.get(service)
    if status == BAD_REQUEST and words is not None and not _speaks_of(words, body):
        return Failed(WRONG_ADDRESS)
    return Failed(failed.code, status in BAD_BODY, max(waits, default=None))


def _of_slacks_bot(body: bytes) -> Failed:
    """Slack answers a bot with 200, and says in the body what was wrong."""
    error = _read(body).get("error")
    if not isinstance(error, str) or error in SLACK_LATER:
        return Failed(NOT_TAKEN)
    if error in SLACK_LOGIN:
        return Failed(LOGIN_REFUSED)
    if error in ON_THE_TEXT["Slack"]:
        return Failed(TEXT_REFUSED, refused=True)
    return Failed(WRONG_ADDRESS)


def _speaks_of(words: Sequence[str], body: bytes) -> bool:
    text = body.decode(errors="replace").lower()
    return any(word in text for word in words)


def _wait_s(body: bytes) -> float | None:
    """The wait that a body asks for: Discord's `retry_after`, Telegram's among `parameters`."""
    answer = _read(body)
    parameters = answer.get("parameters")
    asked = (parameters if isinstance(parameters, dict) else answer).get("retry_after")
    if not isinstance(asked, int | float) or not math.isfinite(asked) or asked < 0:
        return None
    return min(float(asked), RETRY_AFTER_S_MAX)


def _read(body: bytes) -> Mapping[str, Any]:
    """A body that is a JSON object; empty where it is none."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return answer if isinstance(answer, dict) else {}
