"""Pages of Alpaca's data host, told apart: an answer, or one of its refusals. Pure.

It answers JSON and refuses in JSON (`message`); what stands before it refuses with HTML.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from contracts.types import shortened

WHY_CHARS_MAX = 160
SHOWN_BYTES = 4_000
"""Of a page that is no JSON: enough to find its title."""
CONTAINERS_MAX = 60_000
"""Objects and lists of a page: a page of bars has 10,000, one of headlines some 500."""
WAIT_S = (1.0, 900.0)
"""The shortest and the longest rest that a header may ask for."""

_OK = 200
_UNAUTHORIZED = 401
_FORBIDDEN = 403
_TOO_MANY = 429
_MISTAKES = frozenset({400, 422})
_TITLE = re.compile(r"<title[^>]*>([^<]{1,80})", re.IGNORECASE)
_INVALID_SYMBOL = re.compile(r"invalid symbol:? ?([A-Za-z0-9./:_-]{1,40})")


class AlpacaRefusalKind(StrEnum):
    """The meaning of a refusal for the caller."""

    LIMITED = "limited"
    KEY = "key"
    """The key is wrong, or was deleted with its account."""
    FORBIDDEN = "forbidden"
    """The account may not read it: the tape of all exchanges, or so late a part of it."""
    SYMBOL = "symbol"
    """A symbol is none; `why` is the symbol."""
    QUESTION = "question"
    """The question is not taken as it stands: to ask again is no use."""
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class AlpacaRefusal:
    """A page that is no answer: what it means, and the reason in its words."""

    kind: AlpacaRefusalKind
    why: str


@dataclass(frozen=True, slots=True)
class RateSeen:
    """The account's rate, as an answer's headers tell it; `resets_at` in seconds since 1970."""

    limit: int
    remaining: int
    resets_at: int

    def wait_s(self, now_s: float) -> float:
        """The rest until the rate begins anew, within WAIT_S."""
        least, most = WAIT_S
        return min(most, max(least, self.resets_at - now_s))


def rate_in(headers: Mapping[str, str]) -> RateSeen | None:
    """The rate that an answer tells; None where it tells none that can be read."""
    names = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
    values = [headers.get(name, "") for name in names]
    if not all(value.isascii() and value.isdigit() and len(value) <= 12 for value in values):
        return None
    return RateSeen(*map(int, values))


def read(
    status: int, kind: str, body: bytes, holds: str, shape: type
) -> tuple[Any, AlpacaRefusal | None]:
    """The JSON of a page whose `holds` is of `shape` (list or dict) and that names a next page or
    none; or its refusal. `kind` is its content type."""
    page, broken = _json(kind, body)
    if status != _OK:
        return None, _refused(status, page, body)
    if broken:
        return None, _unavailable(status, broken if page is None else str(page))
    if not isinstance(page, dict) or not isinstance(page.get(holds), shape):
        said = _message(page)
        return None, _unavailable(status, said or f"JSON without {holds}")
    token = page.get("next_page_token")
    if token is not None and not (isinstance(token, str) and 0 < len(token) <= 1_000):
        return None, _unavailable(status, "JSON whose next_page_token is no text")
    return page, None


def _json(kind: str, body: bytes) -> tuple[Any, str]:
    """The page, and why it is none."""
    if "json" not in kind.lower():
        return None, f"{_titled(body)} instead of JSON"
    if body.count(b"{") + body.count(b"[") > CONTAINERS_MAX:
        return None, "JSON of more values than any page has"
    try:
        return orjson.loads(body), ""
    except orjson.JSONDecodeError:
        return None, f"JSON that ends or breaks after {len(body):,} bytes"


def _refused(status: int, page: Any, body: bytes) -> AlpacaRefusal:
    said = _message(page)
    if status == _TOO_MANY:
        return AlpacaRefusal(AlpacaRefusalKind.LIMITED, said or "too many requests")
    if status == _UNAUTHORIZED:
        return AlpacaRefusal(AlpacaRefusalKind.KEY, said or _titled(body))
    if status == _FORBIDDEN and said:
        return AlpacaRefusal(AlpacaRefusalKind.FORBIDDEN, said)
    if status in _MISTAKES and said:
        if match := _INVALID_SYMBOL.search(said):
            return AlpacaRefusal(AlpacaRefusalKind.SYMBOL, match[1])
        return AlpacaRefusal(AlpacaRefusalKind.QUESTION, shortened(said, WHY_CHARS_MAX))
    return _unavailable(status, said or _titled(body))


def _unavailable(status: int, what: str) -> AlpacaRefusal:
    said = shortened(f"HTTP {status} {what}", WHY_CHARS_MAX)
    return AlpacaRefusal(AlpacaRefusalKind.UNAVAILABLE, said)


def _message(page: Any) -> str:
    said = page.get("message") if isinstance(page, dict) else None
    return shortened(" ".join(said.split()), WHY_CHARS_MAX) if isinstance(said, str) else ""


def _titled(body: bytes) -> str:
    match = _TITLE.search(body[:SHOWN_BYTES].decode("utf-8", "replace"))
    return f"a page {' '.join(match[1].split())!r}" if match else "a page"
