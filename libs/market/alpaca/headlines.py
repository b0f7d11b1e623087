"""Alpaca's articles as headlines. Pure.

Alpaca keeps one wording of an article, the newest, and dates it by `updated_at`; a headline counts
from then. `created_at` would show an edit before it was made.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from libs.market.source import NewsItem
from libs.market.symbols import no_share

TEXT_CHARS_MAX = 2_000
SYMBOLS_MAX = 200
"""Of one article; more are left out."""


def items_of(
    page: Sequence[Mapping[str, Any]], tickers: Collection[str] | None
) -> Sequence[NewsItem]:
    """The headlines of a page, one a ticker of `tickers` (None: all shares) that it is about, in
    the order of the page. Raises KeyError, TypeError, ValueError for another shape."""
    found = []
    for article in page:
        symbols = article["symbols"]
        if not isinstance(symbols, list):
            raise TypeError("symbols that are no list")
        known_at = max(_moment(article["updated_at"]), _moment(article["created_at"]))
        about = [s for s in dict.fromkeys(map(_text, symbols[:SYMBOLS_MAX])) if _is_for(s, tickers)]
        found += [
            NewsItem(
                ticker=symbol,
                title=_text(article["headline"]),
                summary=_text(article.get("summary") or ""),
                publisher=_text(article["source"]),
                url=_text(article.get("url") or ""),
                known_at=known_at,
            )
            for symbol in about
        ]
    return found


def _is_for(symbol: str, tickers: Collection[str] | None) -> bool:
    return not no_share(symbol) if tickers is None else symbol in tickers


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text: {str(value)[:30]}")
    return value[:TEXT_CHARS_MAX]


def _moment(value: Any) -> datetime:
    at = datetime.fromisoformat(_text(value))
    if at.tzinfo is None:
        raise ValueError(f"a time without a zone: {str(value)[:30]}")
    return at.astimezone(UTC)
