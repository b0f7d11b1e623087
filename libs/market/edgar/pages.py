"""Pages of EDGAR, told apart: an answer, or one of its refusals. Pure.

EDGAR answers JSON, and refuses with HTML pages: undeclared callers, too many requests, maintenance.
A file that its store does not have is refused in the store's own XML; only that is "there is none".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from contracts.types import shortened

WHY_CHARS_MAX = 120
SHOWN_BYTES = 4_000
"""Of a page that is no JSON: enough to find its title and its words."""

CONTAINERS_MAX = 400_000
"""Objects and lists of a page: each takes up to 230 bytes in memory. The figures of a company are
one each; the largest companies have some 100,000."""
VALUES_MAX = 3_000_000

_TOO_MANY = 429
_FORBIDDEN = 403
_NOT_FOUND = 404
_OK = 200
_UNDECLARED = b"undeclared automated tool"
_THRESHOLD = b"request rate threshold exceeded"
_NO_SUCH_FILE = b"<code>nosuchkey</code>"
_TITLE = re.compile(r"<title[^>]*>([^<]{1,80})", re.IGNORECASE)


class EdgarRefusalKind(StrEnum):
    """The meaning of a refusal for the caller."""

    LIMITED = "limited"
    UNDECLARED = "undeclared"
    """EDGAR does not take the User-Agent for a caller that names a contact."""
    UNAVAILABLE = "unavailable"
    NONE = "none"
    """EDGAR's own word for a file that it does not have."""


@dataclass(frozen=True)
class EdgarRefusal:
    """A page that is no answer: what it means, and the reason in its words."""

    sort: EdgarRefusalKind
    why: str


def read(
    status: int, kind: str, body: bytes, holds: Sequence[str] = ()
) -> tuple[Any, EdgarRefusal | None]:
    """The JSON of a page of `kind` (its content type) that has the path `holds`; or its refusal."""
    refusal = _refused(status, body)
    if refusal is not None:
        return None, refusal
    if "json" not in kind.lower():
        return None, _unavailable(status, f"{_titled(body)} instead of JSON")
    containers = body.count(b"{") + body.count(b"[")
    if containers > CONTAINERS_MAX or body.count(b",") > VALUES_MAX:
        return None, _unavailable(status, "JSON of more values than any company has")
    try:
        page = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None, _unavailable(status, f"JSON that ends or breaks after {len(body):,} bytes")
    if not _has(page, holds):
        return None, _unavailable(status, f"JSON without {'.'.join(holds) or 'an object'}")
    return page, None


def _refused(status: int, body: bytes) -> EdgarRefusal | None:
    start = body[:SHOWN_BYTES].lower()
    # The page for undeclared callers speaks of the threshold too, so it is looked for first.
    if _UNDECLARED in start:
        return EdgarRefusal(
            EdgarRefusalKind.UNDECLARED, f"HTTP {status}: undeclared automated tool"
        )
    if status == _TOO_MANY or (_THRESHOLD in start and status in (_OK, _FORBIDDEN)):
        return EdgarRefusal(EdgarRefusalKind.LIMITED, f"HTTP {status}")
    if status == _NOT_FOUND and _NO_SUCH_FILE in start:
        return EdgarRefusal(EdgarRefusalKind.NONE, "NoSuchKey")
    if status != _OK:
        return _unavailable(status, _titled(body))
    return None


def _unavailable(status: int, what: str) -> EdgarRefusal:
    return EdgarRefusal(
        EdgarRefusalKind.UNAVAILABLE, shortened(f"HTTP {status} {what}", WHY_CHARS_MAX)
    )


def _titled(body: bytes) -> str:
    match = _TITLE.search(body[:SHOWN_BYTES].decode("utf-8", "replace"))
    return f"a page {' '.join(match[1].split())!r}" if match else "a page"


def _has(page: Any, holds: Sequence[str]) -> bool:
    for name in holds:
        if not isinstance(page, dict) or name not in page:
            return False
        page = page[name]
    return isinstance(page, dict | list)
