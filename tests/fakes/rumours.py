"""A candidate source of somebody's own that gets things wrong, for tests of what is dropped."""

from collections.abc import Collection
from datetime import date

from libs.market.source import MarketData
from services.sentiment.logic import Mention

UNDATED, UNPRICED, ANYWAY = "INDI", "HTEL", "BRVO"
"""Named without a date; named though it no longer trades; named whatever was asked for."""


class Rumours:
    """Names the same three, whoever asks."""

    name = "rumours"

    def __init__(self, market: MarketData) -> None:
        self._market = market

    async def find(self, as_of: date, tickers: Collection[str] | None) -> tuple[Mention, ...]:
        """One mention of each sort; the last only where a universe was asked for."""
        heard = self._market.calendar.close(as_of)
        said = (
            Mention(ticker=UNDATED, score=0.5, reason="heard it somewhere"),
            Mention(ticker=UNPRICED, score=0.5, reason="heard it yesterday", known_at=heard),
        )
        if tickers is None:
            return said
        return (*said, Mention(ticker=ANYWAY, score=0.5, reason="everybody knows", known_at=heard))
