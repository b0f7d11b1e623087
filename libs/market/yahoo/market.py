"""The live source: Yahoo Finance through yfinance, point-in-time as far as it can honestly be.

Prices are asked raw and answered for any as_of. Headlines carry their time. All else Yahoo tells
only as it is now, so it is answered for the newest session alone, from its close to the next open,
and refused (NotInSource) for any other: see libs/market/yahoo/feed.py.
"""

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Sequence
from datetime import date, datetime
from typing import Any, TypeVar

import polars as pl
import structlog

from libs.market.asking.feed import HISTORY_DAYS
from libs.market.asking.market import LiveFills, LiveMarket, TradedPrices, ending
from libs.market.errors import MarketError, NoHistory, NotInSource, SourceUnavailable
from libs.market.filings.reported import Filing
from libs.market.rates import Quote
from libs.market.source import (
    JUMP_PCT,
    EarningsReport,
    Fundamentals,
    Listing,
    NewsItem,
    SourceLabel,
    require_session,
)
from libs.market.yahoo.bars import YahooSeries
from libs.market.yahoo.calls import SOURCE, YahooReport
from libs.market.yahoo.feed import YahooFeed, symbol_of
from libs.market.yahoo.shapes import (
    earnings_of,
    fundamentals_of,
    listing_of,
    unnamed,
)

log = structlog.get_logger(__name__)

T = TypeVar("T")

SCREENS = ("day_gainers", "day_losers", "most_actives")
"""Yahoo's own screens that make the universe where no tickers are set."""
SCREEN_ROWS = 10
"""Tickers of each screen: as many as the desk's screener names of each kind."""

LABEL = SourceLabel(
    name=SOURCE,
    description="Yahoo Finance through yfinance: live, unofficial, for your own use only; "
    "names, figures and calendars only for the newest session",
)


class YahooMarket(LiveMarket[YahooFeed]):
    """`MarketData` over a feed. `tickers` is the universe; none means Yahoo's screens."""

    def __init__(
        self, feed: YahooFeed, tickers: Sequence[str] = (), jump_pct: float = JUMP_PCT
    ) -> None:
        super().__init__(feed, tickers, LABEL, jump_pct)

    async def universe(
        self, as_of: date, tickers: Collection[str] | None = None
    ) -> tuple[Listing, ...]:
        """See MarketData.universe. Raises SourceUnavailable where one of them got no answer."""
        self.feed.require_settled(as_of)
        names = await self._names(as_of) if tickers is None else tickers
        answers = await _all(self._listing(ticker, as_of) for ticker in sorted(set(names)))
        listings = tuple(listing for listing in answers if listing is not None)
        if not listings and tickers is None:
            raise NoHistory(
                f"none of the {len(names)} tickers of source {SOURCE} traded on {as_of}; "
                f"choose another session or other tickers (DESKBUS_YAHOO_TICKERS)"
            )
        return listings

    async def news(
        self, as_of: date, tickers: Collection[str] | None, items_max: int
    ) -> tuple[NewsItem, ...]:
        """See MarketData.news; of all tickers means of those of the universe."""
        names = await self._named(as_of, tickers)
        close = self.calendar.close(as_of)
        pages = await _any(self.feed.news(name, as_of) for name in names)
        known = [item for page in pages for item in page if item.known_at <= close]
        known.sort(key=lambda item: item.known_at, reverse=True)
        return tuple(known[:items_max])

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        """See MarketData.fundamentals."""
        series = await self.raw(ticker, as_of)
        answer = await self.feed.info(ticker, as_of)
        close = self.calendar.close(as_of)
        return fundamentals_of(series, answer.value or {}, as_of, close, answer.at)

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:  # noqa: ARG002
        """Yahoo has none: NotInSource."""
        raise NotInSource("filings", SOURCE, "use a source of filings")

    async def raw_bars(self, ticker: str, as_of: date, days: int = HISTORY_DAYS) -> pl.DataFrame:
        """See LiveMarket.raw_bars."""
        return (await self.raw(ticker, as_of, days)).frame

    async def headlines(self, ticker: str, as_of: date) -> Sequence[NewsItem]:
        """See LiveMarket.headlines."""
        return await self.feed.news(ticker, as_of)

    async def rates(self, currency: str, into: str, at: datetime, since: date) -> Sequence[Quote]:
        """See LiveMarket.rates."""
        return await self.feed.rates(currency, into, at, since)

    async def earnings(
        self, as_of: date, tickers: Collection[str] | None
    ) -> tuple[EarningsReport, ...]:
        """See MarketData.earnings; of all tickers means the largest companies that report soon."""
        require_session(self.calendar, as_of)
        if tickers is not None:
            names = await self._named(as_of, tickers)
            pages = await _any(self.feed.reports(name, as_of) for name in names)
            reports: Sequence[YahooReport] = [report for page in pages for report in page]
        else:
            reports = await self.feed.due(as_of)
            if self._tickers:
                reports = [report for report in reports if report.ticker in self._tickers]
        return earnings_of(reports, self.calendar.close(as_of), self.calendar.zone)

    async def search(self, as_of: date, query: str) -> tuple[Listing, ...]:
        """See ListingSearch.search."""
        require_session(self.calendar, as_of)
        rows = await self.feed.search(query, as_of)
        names = [str(row["symbol"]) for row in rows if row.get("quoteType") in {"EQUITY", "ETF"}]
        return await self.universe(as_of, names)

    async def _named(self, as_of: date, tickers: Collection[str] | None) -> Collection[str]:
        """The tickers asked about, each of them with a price at as_of; or the universe's."""
        if tickers is None:
            return [listing.ticker for listing in await self.universe(as_of)]
        await _all(self.raw(ticker, as_of) for ticker in tickers)
        return tickers

    async def _names(self, as_of: date) -> Collection[str]:
        if self._tickers:
            return self._tickers
        try:
            lists = await _all(self.feed.screen(screen, as_of, SCREEN_ROWS) for screen in SCREENS)
        except NotInSource as error:
            remedy = "name the tickers (--universe, or DESKBUS_YAHOO_TICKERS)"
            raise NotInSource(f"universe as of {as_of}", SOURCE, remedy) from error
        return {ticker for tickers in lists for ticker in tickers}

    async def _listing(self, ticker: str, as_of: date) -> Listing | None:
        try:
            series = await self.raw(ticker, as_of)
        except SourceUnavailable:
            raise
        except MarketError as error:
            log.info("market.not_listed", ticker=ticker, why=error.code)
            return None
        try:
            symbol = symbol_of(ticker)
            return listing_of(series, symbol, await self.feed.search(symbol, as_of))
        except NotInSource:
            # Today's name and sector would tell an older as_of of mergers to come.
            return unnamed(series)

    async def raw(self, ticker: str, as_of: date, days: int = HISTORY_DAYS) -> YahooSeries:
        """The raw bars of `days` days up to as_of, the last one of as_of; raises as `bars` does."""
        self.feed.require_settled(as_of)
        series = (await self.feed.series(ticker, as_of, days)).until(as_of)
        remedy = "; choose a later session or leave it out"
        ending(ticker, series.frame, as_of, SOURCE, remedy)
        if series.closed(as_of) > self.calendar.close(as_of):
            raise NoHistory(
                f"{ticker} trades on after the close of {self.calendar.exchange} on {as_of}, so "
                f"its price of that day was not known then; leave it out"
            )
        return series


class YahooFills(LiveFills[YahooFeed]):
    """`FillPrices` over a feed."""

    async def prices(self, ticker: str, session: date, days: int = HISTORY_DAYS) -> TradedPrices:
        """See LiveFills.prices."""
        series = await self._feed.series(ticker, session, days)
        return TradedPrices(series.frame, series.currency, whole_volume=True)


async def _any(questions: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The answers of those that the source has it of. Raises NotInSource where it is of none."""
    answers = await _all(_or_none(question) for question in questions)
    known = [answer for answer in answers if not isinstance(answer, NotInSource)]
    if answers and not known:
        raise next(answer for answer in answers if isinstance(answer, NotInSource))
    return known


async def _or_none(question: Coroutine[Any, Any, T]) -> T | NotInSource:
    try:
        return await question
    except NotInSource as error:
        return error


async def _all(questions: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All answers in order. The first failure ends the rest, so that nothing is left running."""
    tasks = [asyncio.ensure_future(question) for question in questions]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
