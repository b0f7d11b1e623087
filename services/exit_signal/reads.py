"""Market data of exit signals: closes up to as_of, never one after it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pydantic import JsonValue

from contracts.operation import CallKind
from contracts.types import Failure
from libs.market.errors import LookAhead, MarketError, SourceUnavailable, is_silence
from libs.market.exits import history
from libs.market.source import MarketData, notes_on, require_session
from libs.quant.exits.history import HistoryRequest, PriceHistory
from libs.runtime.errors import DeskError
from libs.runtime.journal import Call, Journal, Reply

READS_AT_ONCE = 16
TICKERS_A_CALL = 50
"""Tickers that one journalled read covers."""

NOTES = "price_notes"
"""Beside the tickers of a reply, which are in capitals."""

Histories = Mapping[str, PriceHistory | Failure]


@dataclass(frozen=True)
class ExitReads:
    """The market as exit signals see it."""

    market: MarketData

    async def histories(self, requests: Sequence[HistoryRequest], as_of: date) -> Histories:
        """Of each ticker its history, or why there is none. Raises NotASession and LookAhead."""
        require_session(self.market.calendar, as_of)
        slots = asyncio.Semaphore(READS_AT_ONCE)

        async def one(request: HistoryRequest) -> PriceHistory | Failure:
            async with slots:
                try:
                    return await history(self.market, request, as_of)
                except LookAhead:
                    raise
                except MarketError as error:
                    return Failure(code=error.code, message=error.message[:400])

        results = await asyncio.gather(*map(one, requests))
        return {request.ticker: result for request, result in zip(requests, results, strict=True)}

    async def journalled(
        self, journal: Journal, requests: Sequence[HistoryRequest], as_of: date
    ) -> tuple[Histories, Sequence[str]]:
        """The same, read once whatever dies, and what was to be known of the prices then. Raises
        SourceUnavailable where no ticker has an answer and the source cannot be reached."""
        parts = [
            requests[first : first + TICKERS_A_CALL]
            for first in range(0, len(requests), TICKERS_A_CALL)
        ]
        replies = await journal.calls([self._call(part, as_of) for part in parts])
        told = [reply for reply in replies if isinstance(reply, dict)]
        notes: Any = next((reply[NOTES] for reply in told if NOTES in reply), ())
        entries = (pair for reply in told for pair in reply.items() if pair[0] != NOTES)
        return {ticker: _history(entry) for ticker, entry in entries}, notes

    def _call(self, part: Sequence[HistoryRequest], as_of: date) -> Call:
        async def run() -> Reply:
            results = await self.histories(part, as_of)
            silent = [had for had in results.values() if is_silence(had)]
            if silent and all(isinstance(had, Failure) for had in results.values()):
                raise SourceUnavailable(f"{len(part)} tickers", silent[0].message)
            notes: JsonValue = [*notes_on(self.market, as_of)]
            said = {NOTES: notes} if notes else {}
            return Reply({**{ticker: _as_json(had) for ticker, had in results.items()}, **said})

        def failed(error: DeskError) -> Reply:
            if not isinstance(error, SourceUnavailable):
                raise error
            failure = Failure(code=error.code, message=error.message)
            return Reply({request.ticker: _as_json(failure) for request in part})

        request: JsonValue = {
            "as_of": as_of.isoformat(),
            "tickers": {request.ticker: _asked(request) for request in part},
        }
        name = f"months of {len(part)} tickers"
        return Call(CallKind.READ, name, request, run, failed=failed)


def _asked(request: HistoryRequest) -> JsonValue:
    peak_since = request.peak_since.isoformat() if request.peak_since else None
    if request.closes_since is None:
        return peak_since
    return {"peak_since": peak_since, "closes_since": request.closes_since.isoformat()}


def _as_json(had: PriceHistory | Failure) -> JsonValue:
    if isinstance(had, Failure):
        return {"failure": had.model_dump(mode="json")}
    values: dict[str, JsonValue] = {
        "months": list(had.months),
        "close": had.close,
        "peak": had.peak,
    }
    if had.closes_since:
        values["closes_since"] = {day.isoformat(): c for day, c in had.closes_since.items()}
    return values


def _history(entry: Any) -> PriceHistory | Failure:
    if "failure" in entry:
        return Failure.model_validate(entry["failure"])
    since = entry.get("closes_since", {}).items()
    closes_since = {date.fromisoformat(day): close for day, close in since}
    return PriceHistory(tuple(entry["months"]), entry["close"], entry["peak"], closes_since)
