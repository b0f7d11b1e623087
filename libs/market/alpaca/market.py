"""The live source for holders of an Alpaca account: raw daily prices, and headlines.

Prices are adjusted here, up to as_of, by splits and dividends whose ex-date has come. Names and
sectors are the SEC's (EDGAR), which tells them as they are now: they count for the newest session
alone, from its close to the next open. Alpaca has no figures, filings or earnings dates.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

import polars as pl
import structlog

from contracts.facts import UNKNOWN_SECTOR
from contracts.types import ExchangeRate
from libs.market.alpaca.feed import NEWS_A_PAGE, SESSION_DAYS, AlpacaFeed
from libs.market.alpaca.pages import SOURCE
from libs.market.alpaca.standing import PriceFeed
from libs.market.asking.feed import HISTORY_DAYS
from libs.market.asking.market import LiveFills, LiveMarket, TradedPrices, ending
from libs.market.calendar import DEFAULT_EXCHANGE
from libs.market.edgar.feed import EdgarFeed
from libs.market.errors import (
    ContactMissing,
    MarketError,
    NoHistory,
    NotInSource,
)
from libs.market.filings.reported import Filing
from libs.market.rates import Quote
from libs.market.replay.market import adjusted
from libs.market.sectors import sector_of
from libs.market.source import (
    JUMP_PCT,
    EarningsReport,
    Fundamentals,
    Listing,
    NewsItem,
    SessionMove,
    SourceLabel,
    move_of,
    require_session,
)

log = structlog.get_logger(__name__)

CURRENCY = "USD"
NAMED_MAX = 100
"""Listings of one answer that are given names and sectors: each costs the SEC a request."""
TICKERS_SETTING = "DESKBUS_ALPACA_TICKERS"
LABEL = SourceLabel(name=SOURCE, description="Alpaca's market data: live, for your own use only")
OF_IEX = "prices from IEX only, about 2.5% of the volume, so screens by volume are off"


class AlpacaMarket(LiveMarket[AlpacaFeed]):
    """`MarketData` over a feed. `tickers` is the universe; none means that it must be named."""

    def __init__(
        self,
        feed: AlpacaFeed,
        tickers: Sequence[str] = (),
        companies: EdgarFeed | None = None,
        jump_pct: float = JUMP_PCT,
    ) -> None:
        super().__init__(feed, tickers, LABEL, jump_pct)
        self._companies = companies

    def session_notes(self, as_of: date) -> Sequence[str]:
        """See SessionNotes.session_notes."""
        notes = [] if self.whole_volume() else [OF_IEX]
        if self.feed.is_provisional(as_of):
            notes.append(f"the prices of {as_of} are provisional until the next morning")
        return notes

    def whole_volume(self) -> bool:
        """See SessionNotes.whole_volume."""
        return self.feed.known_feed is not PriceFeed.IEX

    async def raw_bars(self, ticker: str, as_of: date, days: int = HISTORY_DAYS) -> pl.DataFrame:
        """See LiveMarket.raw_bars."""
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
            move = move_of(adjusted(_ending(ticker, found, as_of).tail(2)))
            moves[ticker] = move if is_whole else replace(move, turnover=None)
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
        """See LiveMarket.headlines."""
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


class AlpacaFills(LiveFills[AlpacaFeed]):
    """`FillPrices` over a feed."""

    async def prices(self, ticker: str, session: date, days: int = HISTORY_DAYS) -> TradedPrices:
        """See LiveFills.prices."""
        frame = await self._feed.series(ticker, session, days)
        is_whole = await self._feed.price_feed() is PriceFeed.SIP
        return TradedPrices(frame, CURRENCY, is_whole)


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
    remedy = ", under the companies' tickers of that day; leave it out"
    return ending(ticker, frame, as_of, SOURCE, remedy)


def _not_here(what: str, setting: str) -> NotInSource:
    return NotInSource(what, SOURCE, f"choose another source for them ({setting})")
