"""The market source's prices over time, as the console's views ask for them."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

import polars as pl

from contracts.http import PriceBar
from libs.market.errors import UNPRICED
from libs.market.source import MarketData, bars_until


class MarketHistory:
    """The market source's closes over time."""

    def __init__(self, market: MarketData) -> None:
        self._market = market

    @property
    def described(self) -> str:
        """The source's own words for itself."""
        return self._market.label.in_words

    async def bars(self, ticker: str, as_of: date, sessions: int) -> Sequence[PriceBar]:
        """The newest bars up to the session's close. Raises `MarketError`."""
        bars = await self._market.bars(ticker, as_of, sessions)
        return [PriceBar(session=row.pop("date"), **row) for row in bars.to_dicts()]

    async def frame(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """The newest bars up to the session's close (BAR_SCHEMA), of a share that traded no more
        those up to its last one. Raises `MarketError`."""
        return await bars_until(self._market, ticker, as_of, sessions)

    async def currency(self, ticker: str, as_of: date) -> str:
        """The currency that the ticker trades in. Raises `MarketError`."""
        (listing,) = await self._market.universe(as_of, (ticker,))
        return listing.currency

    async def closes(self, ticker: str, first: date, last: date) -> Mapping[date, Decimal]:
        """The closes from `first` to `last`, adjusted up to it; empty where the source has none.
        Raises `MarketError` where it could not say."""
        sessions = self._market.calendar.sessions(first, last)
        try:
            bars = await bars_until(self._market, ticker, last, len(sessions))
        except UNPRICED:
            return {}
        closes = zip(bars["date"].to_list(), bars["close"].to_list(), strict=True)
        return {day: Decimal(str(close)) for day, close in closes if day >= first}
