"""The closes that tickers' movements are measured by, read from a market source."""

from collections.abc import Iterable
from datetime import date

import polars as pl
from pydantic import JsonValue

from contracts.facts import MOVES_TICKERS_MAX, Moves
from contracts.operation import CallKind
from libs.market.errors import UNPRICED
from libs.market.source import MarketData
from libs.quant.risk.moves import MOVES_CLOSES_WANTED, moves
from libs.runtime.journal import Call, Journal, Reply


async def moves_of(market: MarketData, tickers: Iterable[str], as_of: date) -> Moves:
    """How the tickers moved together up to as_of's close; the rules take one without prices for the
    worst. Raises what says nothing about a ticker, such as a source that is away."""
    bars: dict[str, pl.DataFrame] = {}
    for ticker in sorted(set(tickers))[:MOVES_TICKERS_MAX]:
        try:
            bars[ticker] = await market.bars(ticker, as_of, MOVES_CLOSES_WANTED)
        except UNPRICED:
            continue
    return moves(bars)


async def moves_read(
    journal: Journal, market: MarketData, tickers: Iterable[str], as_of: date
) -> Moves:
    """The same, put on record."""
    names = sorted(set(tickers))

    async def run() -> Reply:
        return Reply((await moves_of(market, names, as_of)).model_dump(mode="json"))

    request: JsonValue = {"tickers": list(names), "as_of": as_of.isoformat()}
    return Moves.model_validate(await journal.call(Call(CallKind.READ, "moves", request, run)))
