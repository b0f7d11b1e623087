"""EDGAR as a source of two kinds of data: companies' figures, and their filings as dated events.

It has no prices, so the splits between a filing and as_of come from whoever has.
"""

from collections.abc import Sequence
from datetime import date
from typing import Protocol

from libs.market.edgar.feed import EdgarFeed
from libs.market.edgar.pages import SOURCE
from libs.market.filings.reported import Filing
from libs.market.filings.vintages import Split, Vintages
from libs.market.fundamentals import fundamentals_of
from libs.market.source import Fundamentals, SourceLabel

LABEL = SourceLabel(
    name=SOURCE,
    description="the SEC's EDGAR: filings and figures of US filers, live",
)


class Splits(Protocol):
    """A source of prices that knows the splits in them."""

    async def splits(self, ticker: str, as_of: date) -> Sequence[Split]:
        """The splits up to as_of, each with the open that it took effect at."""
        ...


class EdgarMarket:
    """EDGAR as `MixedMarket`'s source of figures and filings."""

    label = LABEL

    def __init__(self, feed: EdgarFeed, prices: Splits) -> None:
        self._feed = feed
        self._prices = prices

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        """See MarketData.fundamentals. Raises as EdgarFeed.reported does."""
        splits = await self._prices.splits(ticker, as_of)
        filings = await self._feed.filings(ticker, as_of)
        facts = await self._feed.reported(ticker, as_of)
        known = Vintages(filings, facts, self._feed.calendar.close(as_of), splits)
        return fundamentals_of(ticker, known, as_of)

    async def issuer(self, ticker: str) -> str:
        """See Issuers.issuer: the company's number (CIK), by the tickers that it has today."""
        return await self._feed.issuer(ticker)

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:
        """See MarketData.filings: of the three years before as_of."""
        return await self._feed.filings(ticker, as_of)
