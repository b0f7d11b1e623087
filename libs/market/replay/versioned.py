"""The replay source over a folder whose files change: each question is answered by the version that
its asker reads (`libs.market.replay.versions`)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date

import polars as pl

from libs.files.finding import FileFinding
from libs.market.calendar import ExchangeCalendar
from libs.market.filings.reported import Filing
from libs.market.filings.vintages import Split
from libs.market.replay.market import ReplayFills, ReplayMarket
from libs.market.replay.store import ReplayStore
from libs.market.replay.versions import HasVersions
from libs.market.source import (
    CorporateAction,
    EarningsReport,
    FillPrice,
    Fundamentals,
    Listing,
    NewsItem,
    SessionMove,
    SourceLabel,
)


class VersionedMarket:
    """`MarketData`, `SessionMoves` and `HasFiles` over a folder's versions."""

    def __init__(self, versions: HasVersions, jump_pct: float) -> None:
        self._versions = versions
        self._jump_pct = jump_pct

    def _make(self, store: ReplayStore) -> ReplayMarket:
        return ReplayMarket(store, self._jump_pct)

    @property
    def _known(self) -> ReplayMarket:
        return self._versions.known.of(self._make)

    async def _read(self) -> ReplayMarket:
        return (await self._versions.read()).of(self._make)

    @property
    def label(self) -> SourceLabel:
        """See MarketData.label."""
        return self._known.label

    @property
    def calendar(self) -> ExchangeCalendar:
        """See MarketData.calendar."""
        return self._known.calendar

    @property
    def faults(self) -> Mapping[str, FileFinding]:
        """See HasFiles.faults."""
        return self._known.faults

    @property
    def no_listings(self) -> FileFinding | None:
        """See HasFiles.no_listings."""
        return self._known.no_listings

    def caveat(self, ticker: str) -> str:
        """See HasFiles.caveat."""
        return self._known.caveat(ticker)

    async def bars(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """See MarketData.bars."""
        return await (await self._read()).bars(ticker, as_of, sessions)

    async def splits(self, ticker: str, as_of: date) -> Sequence[Split]:
        """See ReplayMarket.splits."""
        return await (await self._read()).splits(ticker, as_of)

    async def session_moves(self, as_of: date, tickers: Iterable[str]) -> Mapping[str, SessionMove]:
        """See SessionMoves."""
        return await (await self._read()).session_moves(as_of, tickers)

    async def universe(
        self, as_of: date, tickers: Collection[str] | None = None
    ) -> tuple[Listing, ...]:
        """See MarketData.universe."""
        return await (await self._read()).universe(as_of, tickers)

    async def news(
        self, as_of: date, tickers: Collection[str] | None, items_max: int
    ) -> tuple[NewsItem, ...]:
        """See MarketData.news."""
        return await (await self._read()).news(as_of, tickers, items_max)

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        """See MarketData.fundamentals."""
        return await (await self._read()).fundamentals(ticker, as_of)

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:
        """See MarketData.filings."""
        return await (await self._read()).filings(ticker, as_of)

    async def earnings(
        self, as_of: date, tickers: Collection[str] | None
    ) -> tuple[EarningsReport, ...]:
        """See MarketData.earnings."""
        return await (await self._read()).earnings(as_of, tickers)


class VersionedFills:
    """`FillPrices` over a folder's versions."""

    def __init__(self, versions: HasVersions) -> None:
        self._versions = versions

    async def _read(self) -> ReplayFills:
        return (await self._versions.read()).of(ReplayFills)

    async def next_open(self, ticker: str, after: date) -> FillPrice:
        """See FillPrices.next_open."""
        return await (await self._read()).next_open(ticker, after)

    async def actions(self, ticker: str, after: date, through: date) -> tuple[CorporateAction, ...]:
        """See FillPrices.actions."""
        return await (await self._read()).actions(ticker, after, through)
