"""The smallest market source: ACME costs 100 USD in every session of 2024.

docs/extending.md says where such a file goes and what names it.
"""

# ruff: noqa: ARG002 - a source takes what the Protocols give it, also where it needs none of it

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

import polars as pl

from contracts.types import ExchangeRate
from libs.market.calendar import ExchangeCalendar, exchange_calendar
from libs.market.errors import NotInSource, UnknownTicker
from libs.market.filings.reported import Filing
from libs.market.filings.vintages import Split
from libs.market.sessions import SessionSpan
from libs.market.source import (
    BAR_SCHEMA,
    CorporateAction,
    EarningsReport,
    FillPrice,
    Fundamentals,
    Listing,
    NewsItem,
    SourceLabel,
    require_session,
)

FIRST, LAST = date(2024, 1, 2), date(2024, 12, 30)
ACME = Listing("ACME", "Acme", "industrials", "XNYS", "USD", "US")


class SteadyMarket:
    """`MarketData`: what was known at the close of as_of."""

    def __init__(self) -> None:
        self._calendar = exchange_calendar("XNYS", FIRST, LAST)

    @property
    def label(self) -> SourceLabel:
        """What it is called."""
        return SourceLabel("steady", "synthetic prices: ACME at 100 USD", synthetic=True)

    @property
    def calendar(self) -> ExchangeCalendar:
        """The sessions that as_of counts in."""
        return self._calendar

    async def bars(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """See MarketData.bars."""
        require_session(self._calendar, as_of)
        if ticker != ACME.ticker:
            raise UnknownTicker(ticker, self.label.name)
        days = self._calendar.sessions(FIRST, as_of)[-sessions:]
        rows = [(day, 100.0, 100.0, 100.0, 100.0, 1_000.0) for day in days]
        return pl.DataFrame(rows, schema=BAR_SCHEMA, orient="row")

    async def universe(
        self, as_of: date, tickers: Collection[str] | None = None
    ) -> tuple[Listing, ...]:
        """See MarketData.universe."""
        require_session(self._calendar, as_of)
        return (ACME,) if tickers is None or ACME.ticker in tickers else ()

    async def news(
        self, as_of: date, tickers: Collection[str] | None, items_max: int
    ) -> tuple[NewsItem, ...]:
        """It has none."""
        raise NotInSource("news", self.label.name, "use a source that has it")

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        """It has none."""
        raise NotInSource("fundamentals", self.label.name, "use a source that has them")

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:
        """It has none."""
        raise NotInSource("filings", self.label.name, "use a source that has them")

    async def earnings(
        self, as_of: date, tickers: Collection[str] | None
    ) -> tuple[EarningsReport, ...]:
        """It has none."""
        raise NotInSource("earnings dates", self.label.name, "use a source that has them")

    async def splits(self, ticker: str, as_of: date) -> Sequence[Split]:
        """It has none; EDGAR's figures a share ask beside which source of prices they stand."""
        return ()


class SteadyFills:
    """`FillPrices`: the next open, for execution only."""

    async def next_open(self, ticker: str, after: date) -> FillPrice:
        """See FillPrices.next_open."""
        calendar = SteadyMarket().calendar
        session = calendar.next_session(after)
        return FillPrice(ticker, session, calendar.open(session), Decimal(100), "USD", None)

    async def actions(self, ticker: str, after: date, through: date) -> tuple[CorporateAction, ...]:
        """It has none."""
        return ()


class NoRates:
    """`ExchangeRates` of a source without any."""

    async def into(self, currency: str, at: datetime) -> Mapping[str, ExchangeRate]:
        """None."""
        return {}


async def span() -> SessionSpan:
    """The sessions that may be asked for; a request without a date means the last."""
    return SessionSpan(FIRST, LAST)
