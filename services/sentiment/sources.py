"""Where candidates come from: each source names tickers with a score, as of a session's close."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import date, timedelta
from typing import Protocol

from libs.market.source import Listing, MarketData, NewsItem
from services.sentiment.logic import EARNINGS, NEWS, SCREENER, Mention, clean_line

LIST_LENGTH = 10
"""Gainers, losers and most active: so many of each."""
NEWS_ITEMS_MAX = 500
NEWS_DAYS = 7
NEWS_TICKERS_MAX = 50
EARNINGS_DAYS = 7
EARNINGS_TICKERS_MAX = 50
NAME_CHARS_MAX = 200


class CandidateSource(Protocol):
    """Names tickers worth a look. A new source is a class with these two and a row in the app."""

    @property
    def name(self) -> str:
        """What requests and the digest call it."""
        ...

    async def find(self, as_of: date, tickers: Collection[str] | None) -> tuple[Mention, ...]:
        """Its mentions, among `tickers` where given. Raises MarketError where it cannot answer."""
        ...


class Screener:
    """Gainers, losers and most active by traded value, of the session before as_of's close."""

    name = SCREENER

    def __init__(self, market: MarketData) -> None:
        self._market = market

    async def find(self, as_of: date, tickers: Collection[str] | None) -> tuple[Mention, ...]:
        """The first LIST_LENGTH of each list; the score is the best rank in any of them."""
        listings = await self._market.universe(as_of, tickers)
        changes, turnover = await self._session(listings, as_of)
        risers = sorted((name for name in changes if changes[name] > 0), key=lambda n: -changes[n])
        fallers = sorted((name for name in changes if changes[name] < 0), key=changes.__getitem__)
        active = sorted(turnover, key=lambda name: (-turnover[name], name))
        scores: dict[str, float] = {}
        for ranking in (risers, fallers, active):
            for place, ticker in enumerate(ranking[:LIST_LENGTH]):
                scores[ticker] = max(scores.get(ticker, 0.0), 1 - place / LIST_LENGTH)
        return tuple(
            _mention(item, scores[item.ticker]) for item in listings if item.ticker in scores
        )

    async def _session(
        self, listings: Sequence[Listing], as_of: date
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Change in percent, for those that traded the session before, and traded value."""
        changes, turnover = {}, {}
        for listing in listings:
            bars = await self._market.bars(listing.ticker, as_of, 2)
            close, volume = bars["close"], bars["volume"]
            turnover[listing.ticker] = close[-1] * volume[-1]
            if bars.height == 2:
                changes[listing.ticker] = (close[-1] / close[0] - 1) * 100
        return changes, turnover


class NewsMentions:
    """The tickers most written about in the week before as_of's close."""

    name = NEWS

    def __init__(self, market: MarketData) -> None:
        self._market = market

    async def find(self, as_of: date, tickers: Collection[str] | None) -> tuple[Mention, ...]:
        """The score is a ticker's share of the most mentioned one's headlines."""
        items = await self._market.news(as_of, None, NEWS_ITEMS_MAX)
        counts = Counter(item.ticker for item in recent(items, as_of))
        listings = await self._market.universe(as_of, _among(counts, tickers))
        ranked = sorted(listings, key=lambda item: (-counts[item.ticker], item.ticker))
        most = max((counts[item.ticker] for item in listings), default=1)
        return tuple(
            _mention(item, counts[item.ticker] / most, counts[item.ticker])
            for item in ranked[:NEWS_TICKERS_MAX]
        )


class EarningsCalendar:
    """The tickers that report within a week after as_of."""

    name = EARNINGS

    def __init__(self, market: MarketData) -> None:
        self._market = market

    async def find(self, as_of: date, tickers: Collection[str] | None) -> tuple[Mention, ...]:
        """The sooner the report, the higher the score."""
        days: dict[str, int] = {}
        for report in await self._market.earnings(as_of, None):
            ahead = (report.report_date - as_of).days
            if report.eps_actual is None and 0 <= ahead <= EARNINGS_DAYS:
                days[report.ticker] = min(days.get(report.ticker, ahead), ahead)
        listings = await self._market.universe(as_of, _among(days, tickers))
        ranked = sorted(listings, key=lambda item: (days[item.ticker], item.ticker))
        return tuple(
            _mention(item, 1 - days[item.ticker] / (EARNINGS_DAYS + 1))
            for item in ranked[:EARNINGS_TICKERS_MAX]
        )


def recent(items: Sequence[NewsItem], as_of: date) -> list[NewsItem]:
    """The items of the NEWS_DAYS days before as_of."""
    return [item for item in items if as_of - item.known_at.date() <= timedelta(days=NEWS_DAYS)]


def _among(found: Collection[str], tickers: Collection[str] | None) -> tuple[str, ...]:
    return tuple(sorted(set(found) if tickers is None else set(found) & set(tickers)))


def _mention(listing: Listing, score: float, mentions: int = 0) -> Mention:
    return Mention(
        ticker=listing.ticker,
        name=clean_line(listing.name, NAME_CHARS_MAX),
        sector=clean_line(listing.sector, NAME_CHARS_MAX) or "unknown",
        score=score,
        mentions=mentions,
    )
