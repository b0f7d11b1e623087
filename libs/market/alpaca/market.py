"""The live source for holders of an Alpaca account: raw daily prices, and headlines.

Prices are adjusted here, up to as_of, by splits and dividends whose ex-date has come. Names and
sectors are the SEC's (EDGAR), which tells them as they are now: they count for the newest session
alone, from its close to the next open. Alpaca has no figures, filings or earnings dates.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Protocol

import polars as pl
import structlog

from contracts.facts import UNKNOWN_SECTOR
from contracts.types import ExchangeRate
from libs.market.alpaca.calls import SOURCE
from libs.market.alpaca.feed import HISTORY_DAYS, NEWS_A_PAGE, SESSION_DAYS, AlpacaFeed
from libs.market.alpaca.standing import PriceFeed
from libs.market.calendar import DEFAULT_EXCHANGE, ExchangeCalendar
from libs.market.edgar.shapes import CompanyCard
from libs.market.errors import (
    ContactMissing,
    MarketError,
    NoHistory,
    NotInSource,
)
from libs.market.filings.reported import Filing
from libs.market.filings.vintages import Split
from libs.market.rates import Quote
from libs.market.replay.market import action_of, adjusted, at_opens, exact
from libs.market.replay.store import splits_in
from libs.market.sectors import sector_of
from libs.market.source import (
    JUMP_PCT,
    CorporateAction,
    EarningsReport,
    FillPrice,
    Fundamentals,
    Listing,
    NewsItem,
    SessionMove,
    SourceLabel,
    require_session,
)

log = structlog.get_logger(__name__)

DAYS_A_SESSION = 1.6
"""Calendar days that surely hold a session, holidays included."""
CURRENCY = "USD"
NAMED_MAX = 100
"""Listings of one answer that are given names and sectors: each costs the SEC a request."""
TICKERS_SETTING = "DESKBUS_ALPACA_TICKERS"
LABEL = SourceLabel(name=SOURCE, description="Alpaca's market data: live, for your own use only")
OF_IEX = "prices from IEX only, about 2.5% of the volume, so screens by volume are off"


class Companies(Protocol):
    """A source of companies' names and businesses as they are now."""

    async def card(self, ticker: str, as_of: date) -> CompanyCard:
        """The company's card, if it was seen in the night after as_of. Raises NotInSource,
        ContactMissing, SourceUnavailable."""
        ...


class AlpacaMarket:
    """`MarketData` over a feed. `tickers` is the universe; none means that it must be named."""

    def __init__(
        self,
        feed: AlpacaFeed,
        tickers: Sequence[str] = (),
        companies: Companies | None = None,
        jump_pct: float = JUMP_PCT,
    ) -> None:
        self.feed = feed
        self._tickers = tuple(tickers)
        self._companies = companies
        self.label = replace(LABEL, jump_pct=jump_pct)
        """What the source is, for people."""

    @property
    def calendar(self) -> ExchangeCalendar:
        """The sessions that as_of counts in: New York's."""
        return self.feed.calendar

    def session_notes(self, as_of: date) -> Sequence[str]:
        """See SessionNotes.session_notes."""
        notes = [] if self.whole_volume() else [OF_IEX]
        if self.feed.is_provisional(as_of):
            notes.append(f"the prices of {as_of} are provisional until the next morning")
        return notes

    def whole_volume(self) -> bool:
        """See SessionNotes.whole_volume."""
        return self.feed.known_feed is not PriceFeed.IEX

    def settled(self) -> date:
        """See Recordable.settled."""
        return self.feed.settled()

    def resting_s(self) -> float | None:
        """See Recordable.resting_s."""
        return self.feed.resting_s()

    async def bars(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """See MarketData.bars."""
        if sessions < 1:
            raise ValueError(f"sessions must be at least 1, not {sessions}")
        days = max(HISTORY_DAYS, round(sessions * DAYS_A_SESSION) + 10)
        return adjusted((await self.raw_bars(ticker, as_of, days)).tail(sessions))

    async def raw_bars(self, ticker: str, as_of: date, days: int = HISTORY_DAYS) -> pl.DataFrame:
        """The raw bars of `days` days up to as_of, the last one of as_of, with splits and
        dividends; raises as `bars` does."""
        require_session(self.calendar, as_of)
        return _ending(ticker, await self.feed.series(ticker, as_of, days), as_of)

    async def session_moves(self, as_of: date, tickers: Iterable[str]) -> Mapping[str, SessionMove]:
        """See SessionMoves.session_moves; without turnover where the account reads IEX alone."""
        frames = await self.feed.frames(tuple(tickers), as_of, SESSION_DAYS)
        is_whole = await self.feed.price_feed() is PriceFeed.SIP
        moves = {}
        for ticker, found in frames.items():
            if isinstance(found, MarketError):
                raise found.with_traceback(None)
            last = adjusted(_ending(ticker, found, as_of).tail(2))
            close, volume = last["close"], last["volume"]
            change_pct = (close[-1] / close[-2] - 1) * 100 if last.height > 1 else None
            turnover = close[-1] * volume[-1] if is_whole else None
            moves[ticker] = SessionMove(turnover, change_pct)
        return moves

    async def universe(
        self, as_of: date, tickers: Collection[str] | None = None
    ) -> tuple[Listing, ...]:
        """See MarketData.universe; of more than NAMED_MAX without names and sectors. Raises
        SourceUnavailable where one of them got no answer."""
        require_session(self.calendar, as_of)
        names = sorted(set(self._named() if tickers is None else tickers))
        frames = await self.feed.frames(names, as_of, SESSION_DAYS)
        traded = [name for name in names if _is_traded(name, frames[name], as_of)]
        if not traded and tickers is None:
            raise NoHistory(
                f"none of the {len(names)} tickers of source {SOURCE} traded on {as_of}; choose "
                f"another session or other tickers ({TICKERS_SETTING})"
            )
        if len(traded) > NAMED_MAX:
            return tuple(map(_unnamed, traded))
        return tuple(await asyncio.gather(*(self._listing(name, as_of) for name in traded)))

    async def news(
        self, as_of: date, tickers: Collection[str] | None, items_max: int
    ) -> tuple[NewsItem, ...]:
        """See MarketData.news; of all tickers means of those of the settings, where there are any.
        A past window lacks what was edited after it."""
        require_session(self.calendar, as_of)
        names = (self._tickers or None) if tickers is None else tuple(tickers)
        return tuple(await self.feed.news(names, as_of, items_max))

    async def headlines(self, ticker: str, as_of: date) -> Sequence[NewsItem]:
        """See Recordable.headlines."""
        return await self.feed.news((ticker,), as_of, NEWS_A_PAGE)

    async def rates(
        self,
        currency: str,  # noqa: ARG002
        into: str,  # noqa: ARG002
        at: datetime,  # noqa: ARG002
        since: date,  # noqa: ARG002
    ) -> Sequence[Quote]:
        """Alpaca has none: NotInSource."""
        raise _not_here("exchange rates", "DESKBUS_MARKET_SOURCE=yahoo")

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:  # noqa: ARG002
        """Alpaca has none: NotInSource."""
        raise _not_here("figures of companies", "DESKBUS_MARKET_FUNDAMENTALS=edgar")

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:  # noqa: ARG002
        """Alpaca has none: NotInSource."""
        raise _not_here("filings", "DESKBUS_MARKET_EVENTS=edgar")

    async def earnings(
        self,
        as_of: date,  # noqa: ARG002
        tickers: Collection[str] | None,  # noqa: ARG002
    ) -> tuple[EarningsReport, ...]:
        """Alpaca has none: NotInSource."""
        raise _not_here("earnings dates", "DESKBUS_MARKET_CALENDAR")

    async def splits(self, ticker: str, as_of: date) -> Sequence[Split]:
        """The splits of the last three years up to as_of, each with the open that it took effect
        at."""
        return at_opens(splits_in(await self.raw_bars(ticker, as_of)), self.calendar)

    def _named(self) -> Sequence[str]:
        if not self._tickers:
            raise NotInSource(
                "list of shares", SOURCE, f"name the tickers (--universe, or {TICKERS_SETTING})"
            )
        return self._tickers

    async def _listing(self, ticker: str, as_of: date) -> Listing:
        card = None
        if self._companies is not None:
            try:
                card = await self._companies.card(ticker, as_of)
            except (NotInSource, ContactMissing) as error:
                log.info("market.unnamed", ticker=ticker, why=error.code)
        if card is None:
            return _unnamed(ticker)
        return Listing(
            ticker=ticker,
            name=card.name or ticker,
            sector=sector_of(card.sic) or UNKNOWN_SECTOR,
            exchange=card.exchange or DEFAULT_EXCHANGE,
            currency=CURRENCY,
            country="",
            issuer=f"CIK {card.cik}",
        )


class AlpacaFills:
    """`FillPrices` over a feed: for execution only, because it reads past as_of."""

    def __init__(self, feed: AlpacaFeed) -> None:
        self._feed = feed

    async def next_open(self, ticker: str, after: date) -> FillPrice:
        """See FillPrices.next_open; NoHistory too where that session is not over yet. No volume
        where the account reads IEX alone."""
        calendar = self._feed.calendar
        session = calendar.next_session(after)
        if session > self._feed.settled():
            raise NoHistory(
                f"{session}, the session after {after}, is not over: source {SOURCE} has no open "
                f"of {ticker} yet; the order waits"
            )
        rows = (await self._feed.series(ticker, session)).filter(pl.col("date") == session)
        if rows.is_empty():
            raise NoHistory(
                f"{ticker} did not trade at the open of {session}, the session after {after}, in "
                f"source {SOURCE}; the order cannot be filled there"
            )
        row = rows.row(0, named=True)
        is_whole = await self._feed.price_feed() is PriceFeed.SIP
        return FillPrice(
            ticker=ticker,
            session=session,
            opens_at=calendar.open(session),
            open=exact(row["open"]),
            currency=CURRENCY,
            action=action_of(ticker, row),
            volume=row["volume"] if is_whole else None,
        )

    async def actions(self, ticker: str, after: date, through: date) -> tuple[CorporateAction, ...]:
        """See FillPrices.actions; NoHistory where `through` is not over yet."""
        if through > self._feed.settled():
            raise NoHistory(f"{through} is not over: source {SOURCE} cannot know its splits yet")
        session = self._feed.calendar.session_on_or_before(through)
        days = (session - after).days + HISTORY_DAYS
        frame = await self._feed.series(ticker, session, days)
        between = frame.filter((pl.col("date") > after) & (pl.col("date") <= through))
        actions = (action_of(ticker, row) for row in between.iter_rows(named=True))
        return tuple(action for action in actions if action is not None)


class NoRates:
    """`ExchangeRates` of a source that has none."""

    async def into(self, currency: str, at: datetime) -> Mapping[str, ExchangeRate]:  # noqa: ARG002
        """See ExchangeRates.into: empty."""
        return {}


def _unnamed(ticker: str) -> Listing:
    return Listing(ticker, ticker, UNKNOWN_SECTOR, DEFAULT_EXCHANGE, CURRENCY, "")


def _is_traded(ticker: str, found: pl.DataFrame | MarketError, as_of: date) -> bool:
    try:
        if isinstance(found, MarketError):
            raise found.with_traceback(None)
        _ending(ticker, found, as_of)
    except MarketError as error:
        log.info("market.not_listed", ticker=ticker, why=error.code)
        return False
    return True


def _ending(ticker: str, frame: pl.DataFrame, as_of: date) -> pl.DataFrame:
    """The frame, if its last bar is as_of's. Raises NoHistory."""
    dates = frame["date"]
    if dates.is_empty():
        raise NoHistory(
            f"{ticker} has no prices at or before {as_of} in source {SOURCE}, under the companies' "
            f"tickers of that day; leave it out"
        )
    if dates[-1] != as_of:
        raise NoHistory.ended(ticker, as_of, SOURCE, dates[-1])
    return frame


def _not_here(what: str, setting: str) -> NotInSource:
    return NotInSource(what, SOURCE, f"choose another source for them ({setting})")
