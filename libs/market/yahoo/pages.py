"""Yahoo's pages before anyone reads them: an answer, or one of its refusals. Pure.

yfinance reads most error bodies as "there is nothing". So each page is looked at here first: its
HTTP status, then whether it holds what was asked for. A page that does neither is no answer.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from contracts.types import shortened
from libs.market.asking.pages import SHOWN_BYTES, WHY_CHARS_MAX, titled

# What a page of an address has to hold, as a path into its JSON.
_HOLDS: Sequence[tuple[str, Sequence[str | int]]] = (
    ("/v8/finance/chart/", ("chart", "result", 0)),
    ("/v1/finance/search", ("quotes",)),
    ("/xhr/ncp", ("data", "tickerStream", "stream")),
    ("/v1/finance/visualization", ("finance", "result", 0, "documents", 0)),
    ("/v1/finance/screener/", ("finance", "result", 0, "quotes")),
    ("/v10/finance/quoteSummary/", ("quoteSummary", "result", 0)),
    ("/v7/finance/quote", ("quoteResponse", "result")),
    ("/ws/fundamentals-timeseries/", ("timeseries", "result")),
)
_OF_A_TICKER = ("/v8/finance/chart/", "/v10/finance/quoteSummary/")
_EARNINGS = "/calendar/earnings"
# The page has this title with and without rows; a consent or error page never has.
_EARNINGS_TITLE = re.compile(r"<title[^>]*>[^<]*earnings calendar[^<]*</title>", re.IGNORECASE)
_TOO_MANY = (429, 999)
_BAD_REQUEST = 400
_NOT_FOUND = 404


class YahooRefusalKind(StrEnum):
    """The meaning of a refusal for the caller."""

    LIMITED = "limited"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"
    """Yahoo's own word for a ticker that it does not have, or no longer."""
    NO_PRICES = "no_prices"
    """Yahoo's own word for a ticker that it has, without prices in the days asked for."""


@dataclass(frozen=True)
class YahooRefusal:
    """A page that is no answer: what it means, and the reason in Yahoo's words."""

    sort: YahooRefusalKind
    why: str


def refusal_of(url: str, status: int, text: str) -> YahooRefusal | None:
    """The refusal that a page is; None where it is an answer, if only an empty one."""
    if status in _TOO_MANY:
        return YahooRefusal(YahooRefusalKind.LIMITED, f"HTTP {status}")
    path, page = urlsplit(url).path, _json(text)
    error, shown = _error(page), titled(text[:SHOWN_BYTES].encode(errors="replace"))
    own = _own_word(path, page, status, error)
    if own is not None:
        return YahooRefusal(own, _words(error))
    if status >= _BAD_REQUEST or error:
        return YahooRefusal(
            YahooRefusalKind.UNAVAILABLE,
            _status_line(status, _words(error) or shown),
        )
    missing = _missing(path, page, text)
    if missing:
        return YahooRefusal(
            YahooRefusalKind.UNAVAILABLE,
            _status_line(status, f"{shown} without {missing}"),
        )
    return None


def _own_word(path: str, page: Any, status: int, error: dict[str, Any]) -> YahooRefusalKind | None:
    """Yahoo's refusal of the ticker itself, in the envelope of that very address."""
    name = next((part.split("/")[3] for part in _OF_A_TICKER if part in path), None)
    if name is None or not isinstance(page, dict) or name not in page:
        return None
    if status == _NOT_FOUND and error.get("code") == "Not Found":
        return YahooRefusalKind.UNKNOWN
    if status == _BAD_REQUEST and "doesn't exist" in str(error.get("description")):
        return YahooRefusalKind.NO_PRICES
    return None


def _missing(path: str, page: Any, text: str) -> str:
    """The part that a page of this address must have and does not."""
    if path.endswith(_EARNINGS):
        return "" if _EARNINGS_TITLE.search(text) else "an earnings calendar"
    needed = next((holds for part, holds in _HOLDS if part in path), ())
    return "" if _holds(page, needed) else ".".join(str(part) for part in needed)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _error(page: Any) -> dict[str, Any]:
    """The error in an envelope such as {"finance": {"result": null, "error": {...}}}."""
    for inner in page.values() if isinstance(page, dict) else ():
        error = inner.get("error") if isinstance(inner, dict) else None
        if error:
            return error if isinstance(error, dict) else {"description": str(error)}
    return {}


def _holds(page: Any, needed: Sequence[str | int]) -> bool:
    for part in needed:
        try:
            page = page[part]
        except (KeyError, IndexError, TypeError):
            return False
    return page is not None


def _words(error: dict[str, Any]) -> str:
    return ": ".join(str(error[key]) for key in ("code", "description") if error.get(key))


def _status_line(status: int, what: str) -> str:
    return shortened(f"HTTP {status} {what}", WHY_CHARS_MAX)
