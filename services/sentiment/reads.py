"""What the sentiment service reads of the market, as journalled calls: each happens once."""

from collections.abc import Sequence
from datetime import date

from pydantic import JsonValue

from contracts.operation import CallKind
from contracts.sentiment import Headline
from libs.market.calendar import OutsideCalendar
from libs.market.errors import LookAhead, MarketError, NoHistory, NotASession
from libs.market.source import MarketData
from libs.runtime.journal import Call, Journal, Reply
from services.sentiment.logic import SourceAnswer, headline
from services.sentiment.sources import CandidateSource, recent

HEADLINES_MAX = 5
"""Headlines of one candidate in the digest; the analyst can ask for more."""

# These concern the whole cycle, or the source's honesty; every other failure is one source's own.
_ENDS_THE_OPERATION = (LookAhead, NotASession, NoHistory, OutsideCalendar)


async def ask_sources(
    journal: Journal,
    sources: Sequence[CandidateSource],
    as_of: date,
    tickers: Sequence[str] | None,
) -> list[SourceAnswer]:
    """The answer of every source, asked in parallel; one that cannot answer says why."""
    replies = await journal.calls([_find(source, as_of, tickers) for source in sources])
    return [SourceAnswer.model_validate(reply) for reply in replies]


async def refused_tickers(
    journal: Journal, market: MarketData, as_of: date, tickers: Sequence[str]
) -> dict[str, str]:
    """Those of `tickers` that had no price at as_of, and why."""

    async def run() -> Reply:
        listed = {item.ticker for item in await market.universe(as_of, tickers)}
        reasons: dict[str, JsonValue] = {
            name: await _why_not(market, name, as_of) for name in tickers if name not in listed
        }
        return Reply(reasons)

    request: JsonValue = {"as_of": as_of.isoformat(), "tickers": list(tickers)}
    reply = await journal.call(Call(CallKind.READ, "listing", request, run))
    return {name: str(why) for name, why in reply.items()} if isinstance(reply, dict) else {}


async def headlines_of(
    journal: Journal, market: MarketData, as_of: date, tickers: Sequence[str]
) -> dict[str, list[Headline]]:
    """The newest headlines of each ticker, cleaned."""

    async def run() -> Reply:
        found: dict[str, JsonValue] = {
            name: [item.model_dump(mode="json") for item in await _headlines(market, name, as_of)]
            for name in tickers
        }
        return Reply(found)

    request: JsonValue = {"as_of": as_of.isoformat(), "tickers": list(tickers)}
    reply = await journal.call(Call(CallKind.READ, "headlines", request, run))
    return {
        name: [Headline.model_validate(item) for item in items]
        for name, items in (reply.items() if isinstance(reply, dict) else ())
        if isinstance(items, list)
    }


def _find(source: CandidateSource, as_of: date, tickers: Sequence[str] | None) -> Call:
    async def run() -> Reply:
        answer: dict[str, JsonValue] = {"name": source.name}
        try:
            found = await source.find(as_of, tickers)
        except _ENDS_THE_OPERATION:
            raise
        except MarketError as error:
            answer["error"] = {"code": error.code, "message": error.message}
        else:
            answer["mentions"] = [mention.model_dump(mode="json") for mention in found]
        return Reply(answer)

    request: JsonValue = {
        "as_of": as_of.isoformat(),
        "tickers": None if tickers is None else list(tickers),
    }
    return Call(CallKind.READ, f"source {source.name}", request, run)


async def _why_not(market: MarketData, ticker: str, as_of: date) -> str:
    try:
        await market.bars(ticker, as_of, 1)
    except LookAhead:
        raise
    except MarketError as error:
        return f"{error.code}: {error.message}"
    return "not listed at as_of"


async def _headlines(market: MarketData, ticker: str, as_of: date) -> list[Headline]:
    items = await market.news(as_of, ticker, HEADLINES_MAX)
    return [
        headline(item.title, item.publisher, item.url, item.known_at)
        for item in recent(items, as_of)
    ]
