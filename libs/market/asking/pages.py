"""Pages of a source's host, told apart from JSON that can be used. Pure."""

import re
from typing import Any

import orjson

from contracts.types import shortened
from libs.market.errors import SourceUnavailable

WHY_CHARS_MAX = 160
SHOWN_BYTES = 4_000
"""Of a page that is no JSON: enough to find its title and its words."""
_TITLE = re.compile(r"<title[^>]*>([^<]{1,80})", re.IGNORECASE)


def titled(body: bytes) -> str:
    """A page in words, by its title."""
    match = _TITLE.search(body[:SHOWN_BYTES].decode("utf-8", "replace"))
    return f"a page {' '.join(match[1].split())!r}" if match else "a page"


def no_answer(what: str, status: int, why: str) -> SourceUnavailable:
    """The error of a page that is no answer to the question."""
    return SourceUnavailable(what, shortened(f"HTTP {status} {why}", WHY_CHARS_MAX))


def json_in(kind: str, body: bytes, *, containers_max: int, values_max: int) -> Any:
    """The JSON of a page whose content type is `kind`. Raises ValueError, which says in words what
    it is, where it is none, or one of more objects and lists, or of more values, than any page
    has."""
    if "json" not in kind.lower():
        raise ValueError(f"{titled(body)} instead of JSON")
    containers = body.count(b"{") + body.count(b"[")
    if containers > containers_max or body.count(b",") > values_max:
        raise ValueError("JSON of more values than any page has")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ValueError(f"JSON that ends or breaks after {len(body):,} bytes") from None
