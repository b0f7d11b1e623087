"""What live sources of prices do alike, over raw daily bars with their splits and dividends."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Generic, TypeVar

import polars as pl

from libs.market.asking.feed import HISTORY_DAYS, SourceFeed
from libs.market.calendar import ExchangeCalendar
from libs.market.errors import NoHistory
from libs.market.filings.vintages import Split
from libs.market.rates import Quote
from libs.market.replay.market import action_of, actions_in, adjusted, at_opens, exact
from libs.market.replay.store import splits_in
from libs.market.source import (
    CorporateAction,
    EarningsReport,
    FillPrice,
    Fundamentals,
    Listing,
    NewsItem,
    SourceLabel,
)

DAYS_A_SESSION = 1.6
"""Calendar days that surely hold a session, holidays included."""

Feed = TypeVar("Feed", bound=SourceFeed)


class LiveMarket(ABC, Generic[Feed]):
    """`MarketData` over a feed of raw bars, which can be recorded; each question raises
    MarketError."""

    def __init__(
        self, feed: Feed, tickers: Sequence[str], label: SourceLabel, jump_pct: float
    ) -> None:
        self.feed = feed
        self.label = replace(label, jump_pct=jump_pct)
        """What the source is, for people."""
        self._tickers = tuple(tickers)

    @property
    def calendar(self) -> ExchangeCalendar:
        """The sessions that as_of counts in: New York's."""
        return self.feed.calendar

    def settled(self) -> date:
        """The newest session that can be asked about."""
        return self.feed.settled()

    def resting_s(self) -> float | None:
        """The seconds for which the source is left alone after a rate limit or faults, if it is."""
        return self.feed.resting_s()

    @abstractmethod
    async def raw_bars(self, ticker: str, as_of: date, days: int = HISTORY_DAYS) -> pl.DataFrame:
        """The raw bars of `days` days up to as_of, the last one of as_of, with splits and
        dividends; raises as `bars` does."""

    @abstractmethod
    async def headlines(self, ticker: str, as_of: date) -> Sequence[NewsItem]:
        """The dated headlines that the source still has."""

    @abstractmethod
    async def rates(self, currency: str, into: str, at: datetime, since: date) -> Sequence[Quote]:
        """Daily rates from `since` on, ascending, with all that were known at `at`."""

    @abstractmethod
    async def universe(
        self, as_of: date, tickers: Collection[str] | None = None
    ) -> tuple[Listing, ...]:
        """See MarketData.universe."""

    @abstractmethod
    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        """See MarketData.fundamentals."""

    @abstractmethod
    async def earnings(
        self, as_of: date, tickers: Collection[str] | None
    ) -> tuple[EarningsReport, ...]:
        """See MarketData.earnings."""

    async def bars(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """See MarketData.bars."""
        if sessions < 1:
            raise ValueError(f"sessions must be at least 1, not {sessions}")
        days = max(HISTORY_DAYS, round(sessions * DAYS_A_SESSION) + 10)
        return adjusted((await self.raw_bars(ticker, as_of, days)).tail(sessions))

    async def splits(self, ticker: str, as_of: date) -> Sequence[Split]:
        """The splits of the last three years up to as_of, each with the open that it took effect
        at."""
        return at_opens(splits_in(await self.raw_bars(ticker, as_of)), self.calendar)


@dataclass(frozen=True, slots=True)
class TradedPrices:
    """Raw bars with their currency, and whether their volume is that of all exchanges."""

    frame: pl.DataFrame
    currency: str
    whole_volume: bool


class LiveFills(ABC, Generic[Feed]):
    """`FillPrices` over a feed: for execution only, because it reads past as_of."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    @abstractmethod
    async def prices(self, ticker: str, session: date, days: int = HISTORY_DAYS) -> TradedPrices:
        """The bars of `days` days up to a session that is over, and maybe later ones."""

    async def next_open(self, ticker: str, after: date) -> FillPrice:
        """See FillPrices.next_open; NoHistory too where that session is not over yet. No volume
        where the source has only a part of it."""
        calendar, source = self._feed.calendar, self._feed.name
        session = calendar.next_session(after)
        if session > self._feed.settled():
            raise NoHistory(
                f"{session}, the session after {after}, is not over: source {source} has no final "
                f"open of {ticker} yet; the order waits"
            )
        known = await self.prices(ticker, session)
        rows = known.frame.filter(pl.col("date") == session)
        if rows.is_empty():
            raise NoHistory(
                f"{ticker} did not trade at the open of {session}, the session after {after}, in "
                f"source {source}; the order cannot be filled there"
            )
        row = rows.row(0, named=True)
        return FillPrice(
            ticker=ticker,
            session=session,
            opens_at=calendar.open(session),
            open=exact(row["open"]),
            currency=known.currency,
            action=action_of(ticker, row),
            volume=row["volume"] if known.whole_volume else None,
        )

    async def actions(self, ticker: str, after: date, through: date) -> tuple[CorporateAction, ...]:
        """See FillPrices.actions; NoHistory where `through` is not over yet."""
        if through > self._feed.settled():
            raise NoHistory(
                f"{through} is not over: source {self._feed.name} cannot know its splits yet"
            )
        session = self._feed.calendar.session_on_or_before(through)
        frame = (await self.prices(ticker, session, (session - after).days + HISTORY_DAYS)).frame
        between = frame.filter((pl.col("date") > after) & (pl.col("date") <= through))
        return actions_in(ticker, between)


def ending(ticker: str, frame: pl.DataFrame, as_of: date, source: str, remedy: str) -> pl.DataFrame:
    """The frame, if its last bar is as_of's. Raises NoHistory, with `remedy` where it is empty."""
    dates = frame["date"]
    if dates.is_empty():
        raise NoHistory(f"{ticker} has no prices at or before {as_of} in source {source}{remedy}")
    if dates[-1] != as_of:
        raise NoHistory.ended(ticker, as_of, source, dates[-1])
    return frame
