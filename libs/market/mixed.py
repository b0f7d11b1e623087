"""One market of several sources: prices from one, other kinds of data from whoever was chosen.

Each source keeps its own known-at and refuses what it does not have; nothing falls back to another.
The sessions are those of the prices' source, and so is everything that execution reads.
"""

from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol, TypeVar

import polars as pl

from libs.files.finding import FileFinding
from libs.market.calendar import ExchangeCalendar
from libs.market.choice import DataKind
from libs.market.errors import NoHistory, NotInSource, UnknownTicker
from libs.market.filings.reported import Filing
from libs.market.issuers import Issuers
from libs.market.source import (
    EarningsReport,
    Fundamentals,
    HasFiles,
    Listing,
    ListingSearch,
    MarketData,
    NewsItem,
    SessionMove,
    SessionMoves,
    SourceLabel,
    move_of,
    notes_on,
    whole_volume,
)

T = TypeVar("T")


class Labelled(Protocol):
    """A source that says what it is."""

    @property
    def label(self) -> SourceLabel:
        """See MarketData.label."""
        ...


class CompanySource(Labelled, Protocol):
    """A source of companies' figures, and of their filings with a regulator."""

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        """See MarketData.fundamentals."""
        ...

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:
        """See MarketData.filings."""
        ...


class DatedNews(Labelled, Protocol):
    """A source of headlines and of earnings dates."""

    async def news(
        self, as_of: date, tickers: Collection[str] | None, items_max: int
    ) -> tuple[NewsItem, ...]:
        """See MarketData.news."""
        ...

    async def earnings(
        self, as_of: date, tickers: Collection[str] | None
    ) -> tuple[EarningsReport, ...]:
        """See MarketData.earnings."""
        ...


@dataclass(frozen=True)
class Parts:
    """Who answers the questions that are not about prices."""

    figures: CompanySource
    events: CompanySource
    headlines: DatedNews
    calendar: DatedNews


class MixedMarket:
    """`MarketData`: each question goes to the source of its kind."""

    def __init__(self, prices: MarketData, parts: Parts) -> None:
        self._prices = prices
        self._parts = parts
        self._sources: Mapping[DataKind, Labelled] = {
            DataKind.PRICES: prices,
            DataKind.FUNDAMENTALS: parts.figures,
            DataKind.EVENTS: parts.events,
            DataKind.HEADLINES: parts.headlines,
            DataKind.CALENDAR: parts.calendar,
        }

    @property
    def label(self) -> SourceLabel:
        """The prices' label, whose jumps and made-up prices it tells of."""
        return self._prices.label

    def label_of(self, kind: DataKind) -> SourceLabel:
        """The label of the source that answers this kind of question."""
        return self._sources[kind].label

    @property
    def calendar(self) -> ExchangeCalendar:
        """The sessions that as_of counts in."""
        return self._prices.calendar

    @property
    def faults(self) -> Mapping[str, FileFinding]:
        """See HasFiles.faults: of the prices' files."""
        return self._prices.faults if isinstance(self._prices, HasFiles) else {}

    @property
    def no_listings(self) -> FileFinding | None:
        """See HasFiles.no_listings."""
        return self._prices.no_listings if isinstance(self._prices, HasFiles) else None

    def caveat(self, ticker: str) -> str:
        """See HasFiles.caveat."""
        return self._prices.caveat(ticker) if isinstance(self._prices, HasFiles) else ""

    def session_notes(self, as_of: date) -> Sequence[str]:
        """See SessionNotes.session_notes: of the prices."""
        return notes_on(self._prices, as_of)

    def whole_volume(self) -> bool:
        """See SessionNotes.whole_volume."""
        return whole_volume(self._prices)

    async def session_moves(self, as_of: date, tickers: Iterable[str]) -> Mapping[str, SessionMove]:
        """See SessionMoves.session_moves."""
        if isinstance(self._prices, SessionMoves):
            return await self._prices.session_moves(as_of, tickers)
        return {name: move_of(await self.bars(name, as_of, 2)) for name in tickers}

    async def bars(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """See MarketData.bars."""
        return await self._prices.bars(ticker, as_of, sessions)

    async def universe(
        self, as_of: date, tickers: Collection[str] | None = None
    ) -> tuple[Listing, ...]:
        """See MarketData.universe."""
        return await self._prices.universe(as_of, tickers)

    async def news(
        self, as_of: date, tickers: Collection[str] | None, items_max: int
    ) -> tuple[NewsItem, ...]:
        """See MarketData.news."""
        question = self._parts.headlines.news(as_of, tickers, items_max)
        return await self._asked(self._parts.headlines, DataKind.HEADLINES, question)

    async def issuer(self, ticker: str) -> str:
        """See Issuers.issuer: by the source of figures or of filings that numbers companies."""
        for part in (self._parts.figures, self._parts.events):
            if isinstance(part, Issuers):
                return await part.issuer(ticker)
        return ""

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        """See MarketData.fundamentals."""
        question = self._parts.figures.fundamentals(ticker, as_of)
        return await self._asked(self._parts.figures, DataKind.FUNDAMENTALS, question)

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:
        """See MarketData.filings."""
        question = self._parts.events.filings(ticker, as_of)
        return await self._asked(self._parts.events, DataKind.EVENTS, question)

    async def earnings(
        self, as_of: date, tickers: Collection[str] | None
    ) -> tuple[EarningsReport, ...]:
        """See MarketData.earnings."""
        question = self._parts.calendar.earnings(as_of, tickers)
        return await self._asked(self._parts.calendar, DataKind.CALENDAR, question)

    async def _asked(self, source: Labelled, kind: DataKind, question: Awaitable[T]) -> T:
        """The answer. A ticker or a session that only the prices' source knows is no error: the
        other one has nothing of it."""
        try:
            return await question
        except (UnknownTicker, NoHistory) as error:
            if source is self._prices:
                raise
            remedy = f"{error.message}; its prices come from {self._prices.label.name}"
            raise NotInSource(f"{kind} of it", source.label.name, remedy) from error


class SearchingMixedMarket(MixedMarket):
    """The same over prices from a source that can search."""

    def __init__(self, prices: MarketData, parts: Parts, search: ListingSearch) -> None:
        super().__init__(prices, parts)
        self._search = search

    async def search(self, as_of: date, query: str) -> tuple[Listing, ...]:
        """See ListingSearch.search."""
        return await self._search.search(as_of, query)
