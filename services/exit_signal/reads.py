"""What exit signals read of the market: closes up to as_of, never one after it."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date

from contracts.account import Position
from contracts.exit_signal import Holdings
from libs.market.errors import LookAhead, MarketError
from libs.market.source import MarketData, require_session
from services.exit_signal.history import (
    PEAK_SESSIONS_MAX,
    SESSIONS_MIN,
    History,
    history_of,
    last_complete,
)
from services.exit_signal.rules import Facts
from services.exit_signal.terms import ExitTerms

BASKET_HELD_MAX = 100
"""Positions, the largest first, that make the basket where the terms name none."""
READS_AT_ONCE = 16


@dataclass(frozen=True)
class Reads:
    """The market as exit signals see it."""

    market: MarketData

    async def facts(self, position: Position, holdings: Holdings, terms: ExitTerms) -> Facts:
        """All that the rules may look at for one position. Raises MarketError for its own prices;
        a member of the basket without prices is left out, and the regime's words count it.
        """
        as_of = holdings.as_of
        require_session(self.market.calendar, as_of)
        held = self._sessions_held(position, as_of)
        since = position.opened_on if terms.trailing_stop is not None else None
        own = await self._history(position.ticker, as_of, since, held)
        members = basket_of(terms, holdings)
        basket = await self.histories([t for t in members if t != position.ticker], as_of)
        return Facts(
            months=own.months,
            basket={t: own.months if t == position.ticker else basket[t].months for t in members},
            price=float(position.price.amount),
            average_cost=float(position.average_cost.amount),
            opened_on=position.opened_on,
            sessions_held=held,
            close=own.close,
            peak=own.peak,
        )

    async def histories(self, tickers: Collection[str], as_of: date) -> Mapping[str, History]:
        """Of each ticker its months; none of them where it has no prices. Raises LookAhead."""
        slots = asyncio.Semaphore(READS_AT_ONCE)

        async def one(ticker: str) -> History:
            async with slots:
                try:
                    return await self._history(ticker, as_of, None, None)
                except LookAhead:
                    raise
                except MarketError:
                    return History()

        found = await asyncio.gather(*map(one, tickers))
        return dict(zip(tickers, found, strict=True))

    async def _history(
        self, ticker: str, as_of: date, since: date | None, held: int | None
    ) -> History:
        wanted = SESSIONS_MIN
        if since is not None and held is not None:
            wanted = max(wanted, min(held + 1, PEAK_SESSIONS_MAX))
        bars = await self.market.bars(ticker, as_of, wanted)
        last = last_complete(as_of, self.market.calendar.next_session(as_of))
        return history_of(bars["date"].to_list(), bars["close"].to_list(), last, since)

    def _sessions_held(self, position: Position, as_of: date) -> int | None:
        if position.opened_on is None or position.opened_on > as_of:
            return None
        return len(self.market.calendar.sessions(position.opened_on, as_of)) - 1


def basket_of(terms: ExitTerms, holdings: Holdings) -> tuple[str, ...]:
    """The tickers that the regime looks at: those of the terms, else the largest positions."""
    if terms.basket:
        return tuple(dict.fromkeys(terms.basket))
    largest = sorted(holdings.positions, key=lambda held: (-held.value, held.ticker))
    return tuple(held.ticker for held in largest[:BASKET_HELD_MAX])
