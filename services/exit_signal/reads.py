"""What exit signals read of the market: closes up to as_of, never one after it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pydantic import JsonValue

from contracts.operation import CallKind
from contracts.types import Failure
from libs.market.errors import LookAhead, MarketError
from libs.market.source import MarketData, require_session
from libs.runtime.journal import Call, Journal, Reply
from services.exit_signal.history import History, Wanted, history_of, last_complete

READS_AT_ONCE = 16
TICKERS_A_CALL = 50
"""Tickers that one journalled read covers."""

Histories = Mapping[str, History | Failure]


@dataclass(frozen=True)
class Reads:
    """The market as exit signals see it."""

    market: MarketData

    async def histories(self, wanted: Sequence[Wanted], as_of: date) -> Histories:
        """Of each ticker its history, or why there is none. Raises NotASession and LookAhead."""
        require_session(self.market.calendar, as_of)
        slots = asyncio.Semaphore(READS_AT_ONCE)

        async def one(each: Wanted) -> History | Failure:
            async with slots:
                try:
                    return await self._history(each, as_of)
                except LookAhead:
                    raise
                except MarketError as error:
                    return Failure(code=error.code, message=error.message[:400])

        found = await asyncio.gather(*map(one, wanted))
        return {each.ticker: had for each, had in zip(wanted, found, strict=True)}

    async def journalled(
        self, journal: Journal, wanted: Sequence[Wanted], as_of: date
    ) -> Histories:
        """The same, read once whatever dies."""
        parts = [
            wanted[first : first + TICKERS_A_CALL]
            for first in range(0, len(wanted), TICKERS_A_CALL)
        ]
        replies = await journal.calls([self._call(part, as_of) for part in parts])
        return {
            ticker: _history(told)
            for reply in replies
            if isinstance(reply, dict)
            for ticker, told in reply.items()
        }

    def _call(self, part: Sequence[Wanted], as_of: date) -> Call:
        async def run() -> Reply:
            found = await self.histories(part, as_of)
            return Reply({ticker: _told(had) for ticker, had in found.items()})

        request: JsonValue = {
            "as_of": as_of.isoformat(),
            "tickers": {
                each.ticker: each.peak_since.isoformat() if each.peak_since else None
                for each in part
            },
        }
        return Call(CallKind.READ, f"months of {len(part)} tickers", request, run)

    async def _history(self, wanted: Wanted, as_of: date) -> History:
        bars = await self.market.bars(wanted.ticker, as_of, wanted.sessions)
        last = last_complete(as_of, self.market.calendar.next_session(as_of))
        days, closes = bars["date"].to_list(), bars["close"].to_list()
        return history_of(days, closes, last, wanted.peak_since)


def _told(had: History | Failure) -> JsonValue:
    if isinstance(had, Failure):
        return {"failure": had.model_dump(mode="json")}
    return {"months": list(had.months), "close": had.close, "peak": had.peak}


def _history(told: Any) -> History | Failure:
    if "failure" in told:
        return Failure.model_validate(told["failure"])
    return History(tuple(told["months"]), told["close"], told["peak"])
