"""Many tickers' bars for work in another process: read once, known by their hash, sent as bytes."""

import hashlib
import io
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import polars as pl
from pydantic import JsonValue, TypeAdapter

from contracts.operation import CallKind
from contracts.strategy import Period
from libs.market.errors import MarketError
from libs.market.source import MarketData
from libs.runtime.journal import Call, Journal, Reply

TICKER = "ticker"
WARM_UP_DAYS = 1_400
"""Calendar days of bars before a period: the slowest average remembers 900 sessions."""


class PricesChanged(MarketError):
    """The source's prices changed during the operation."""

    code = "prices_changed"

    def __init__(self) -> None:
        super().__init__(
            "the market source gives other prices than when this operation began: ask for a new "
            "cycle"
        )


async def bars_of(
    journal: Journal, market: MarketData, tickers: Sequence[str], as_of: date, period: Period
) -> pl.DataFrame:
    """The bars of all tickers (ticker and BAR_SCHEMA) up to as_of, from as long before the period
    as its features need, or from where the last of them began to trade: before that there is no
    session that all have.

    What is put on record is their hash; an operation that starts again must find the same. Raises
    MarketError.
    """
    frames: list[pl.DataFrame] = []
    since = period.first - timedelta(days=WARM_UP_DAYS)

    async def read() -> Reply:
        frames.append(await _read(market, tickers, as_of, since))
        return Reply(_digest(frames[0]))

    request: JsonValue = {
        "tickers": list(tickers),
        "as_of": as_of.isoformat(),
        "since": since.isoformat(),
    }
    known = await journal.call(Call(CallKind.READ, "bars", request, read))
    if not frames:
        await read()
    if _digest(frames[0]) != known:
        raise PricesChanged
    return frames[0]


async def currencies_of(
    journal: Journal, market: MarketData, bars: pl.DataFrame
) -> Mapping[str, str]:
    """The currency of each ticker of `bars_of`. Raises MarketError."""
    last = {row[TICKER]: row["date"] for row in bars.iter_rows(named=True)}

    async def read() -> Reply:
        listed = [await market.universe(day, (ticker,)) for ticker, day in last.items()]
        return Reply({listing.ticker: listing.currency for (listing,) in listed})

    request: JsonValue = {ticker: day.isoformat() for ticker, day in last.items()}
    known = await journal.call(Call(CallKind.READ, "currencies", request, read))
    return TypeAdapter(dict[str, str]).validate_python(known)


async def _read(
    market: MarketData, tickers: Sequence[str], as_of: date, since: date
) -> pl.DataFrame:
    sessions = max(len(market.calendar.sessions(since, as_of)), 1)
    read = [
        (await market.bars(ticker, as_of, sessions)).with_columns(pl.lit(ticker).alias(TICKER))
        for ticker in tickers
    ]
    begin = max(bars["date"][0] for bars in read)
    return pl.concat(read).filter(pl.col("date") >= begin)


def _digest(bars: pl.DataFrame) -> JsonValue:
    return {
        "sha256": hashlib.sha256(to_bytes(bars)).hexdigest(),
        "bars": len(bars),
        "first": str(bars["date"].min()),
        "last": str(bars["date"].max()),
    }


def to_bytes(bars: pl.DataFrame) -> bytes:
    """The bars as an Arrow file; the same bars give the same bytes."""
    buffer = io.BytesIO()
    bars.write_ipc(buffer)
    return buffer.getvalue()
