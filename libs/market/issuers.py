"""The issuer of a ticker, which is one for all share classes of a company."""

from typing import Protocol, runtime_checkable

from libs.market.source import Listing, MarketData


@runtime_checkable
class Issuers(Protocol):
    """A source that numbers companies, beside `MarketData`."""

    async def issuer(self, ticker: str) -> str:
        """The ticker's company, the same text for all of its share classes; empty where the source
        does not have it. Raises SourceUnavailable."""
        ...


async def issuer_of(market: MarketData, listing: Listing) -> str:
    """The issuer as the listing names it, else as the source numbers companies; empty where neither
    knows it. Raises SourceUnavailable."""
    if listing.issuer or not isinstance(market, Issuers):
        return listing.issuer
    return await market.issuer(listing.ticker)
