"""Market data of the sentiment service, as journalled calls: each happens once."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import structlog
from pydantic import JsonValue

from contracts.operation import CallKind
from contracts.reach import OutOfReach
from contracts.sentiment import DroppedTicker, DropRule, Headline
from contracts.types import Failure, Value
from libs.market.calendar import OutsideCalendar
from libs.market.errors import (
    BadReplayData,
    CryptoNotSupported,
    LookAhead,
    MarketError,
    NoHistory,
    NotASession,
    NotInSource,
    SourceUnavailable,
    UnknownTicker,
)
from libs.market.source import HasFiles, MarketData, notes_on
from libs.runtime.errors import DeskError, few
from libs.runtime.journal import Call, Journal, Reply
from libs.runtime.nearest import did_you_mean, nearest
from services.sentiment.logic import Mention, SourceAnswer, dropped_by, headline
from services.sentiment.sources import CandidateSource, recent

log = structlog.get_logger()

MENTIONS_MAX = 500
"""Mentions of one source that are looked at; the lowest scores are left out first."""
REACH_S_MAX = 1.5
"""How long a request may wait for the market to say which of its tickers there are."""
HEADLINES_MAX = 5
"""Headlines of one candidate in the digest; the analyst can ask for more."""

# These concern the whole cycle, or the source's honesty; every other failure is one source's own.
_ENDS_THE_OPERATION = (LookAhead, NotASession, OutsideCalendar, NoHistory)


class SourceTimeout(SourceUnavailable):
    """A candidate source did not answer in time."""

    code = "source_timeout"

    def __init__(self, name: str, timeout_s: float) -> None:
        why = f"no answer within {timeout_s:g} s (candidates.timeout_s)"
        super().__init__(f"candidate source {name}", why)


class TickerWithoutHistory(MarketError):
    """A candidate source needs a ticker that has no prices."""

    code = NoHistory.code


class SourceFailed(MarketError):
    """A candidate source has a fault."""

    code = "source_failed"


class FoundHeadlines(Value):
    """The headlines found, by ticker; `failure` names the tickers that got no answer, and why."""

    found: Mapping[str, tuple[Headline, ...]]
    failure: Failure | None = None


@dataclass(frozen=True)
class Sources:
    """The desk's candidate sources, the market they are checked against, the time each has."""

    by_name: Mapping[str, CandidateSource]
    market: MarketData
    timeout_s: float


async def ask_sources(
    journal: Journal,
    sources: Sources,
    names: Sequence[str],
    as_of: date,
    tickers: Sequence[str] | None,
) -> list[SourceAnswer]:
    """The answers of the sources named, asked in parallel; one that cannot answer says why.

    Raises SourceUnavailable where none has an answer and one cannot be reached.
    """
    replies = await journal.calls([_find(sources, name, as_of, tickers) for name in names])
    return [SourceAnswer.model_validate(reply) for reply in replies]


async def refused_tickers(
    journal: Journal, market: MarketData, as_of: date, tickers: Sequence[str]
) -> dict[str, str]:
    """Those of `tickers` that had no price at as_of, and why."""

    async def run() -> Reply:
        tradable = {item.ticker for item in await market.universe(as_of, tickers)}
        reasons: dict[str, JsonValue] = {
            name: await _why_not(market, name, as_of) for name in tickers if name not in tradable
        }
        return Reply(reasons)

    request: JsonValue = {"as_of": as_of.isoformat(), "tickers": list(tickers)}
    reply = await journal.call(Call(CallKind.READ, "listing", request, run))
    return {name: str(why) for name, why in reply.items()} if isinstance(reply, dict) else {}


async def out_of_reach(
    market: MarketData, as_of: date, tickers: Sequence[str], there: Sequence[str]
) -> tuple[OutOfReach, ...]:
    """Those of `tickers` that the source does not have, or not at as_of; `there` are its own.

    What is not answered within REACH_S_MAX, or got no answer, is not told of.
    """

    async def one(ticker: str) -> OutOfReach | None:
        try:
            await market.bars(ticker, as_of, 1)
        except (UnknownTicker, CryptoNotSupported, NoHistory) as error:
            is_known = isinstance(error, NoHistory)
            near = None if is_known else nearest(ticker, there)
            has = f" (it has {few(there)})" if there and not is_known else ""
            return OutOfReach(
                name=ticker,
                code=error.code,
                message=f"{error.message}{has}{did_you_mean(near)}",
                nearest=near,
                is_known=is_known,
            )
        except MarketError as error:
            log.info("reach.unknown", ticker=ticker, why=error.code)
        return None

    asking = [asyncio.ensure_future(one(ticker)) for ticker in tickers]
    if not asking:
        return ()
    done, late = await asyncio.wait(asking, timeout=REACH_S_MAX)
    for task in late:
        task.cancel()
    errors = [task.result() for task in asking if task in done]
    return tuple(task for task in errors if task is not None)


async def headlines_of(
    journal: Journal, market: MarketData, as_of: date, tickers: Sequence[str]
) -> FoundHeadlines:
    """The newest headlines of each ticker, cleaned; and why some got no answer, where they did."""

    async def run() -> Reply:
        headlines: dict[str, JsonValue] = {}
        failed: dict[str, MarketError] = {}
        for name in tickers:
            try:
                items = await _headlines(market, name, as_of)
            except (NotInSource, SourceUnavailable) as error:
                failed[name] = error
            else:
                headlines[name] = [item.model_dump(mode="json") for item in items]
        return Reply({"found": headlines, "failure": _failure(failed, tickers)})

    request: JsonValue = {"as_of": as_of.isoformat(), "tickers": list(tickers)}
    reply = await journal.call(Call(CallKind.READ, "headlines", request, run))
    return FoundHeadlines.model_validate(reply)


def _failure(failed: Mapping[str, MarketError], tickers: Sequence[str]) -> JsonValue:
    """One failure for all that got no answer: the first one's, with the others' names."""
    if not failed:
        return None
    error = next(iter(failed.values()))
    some = "" if len(failed) == len(tickers) else f" (no answer about {', '.join(failed)})"
    return {"code": error.code, "message": f"{error.message}{some}"}


def _find(sources: Sources, name: str, as_of: date, tickers: Sequence[str] | None) -> Call:
    async def run() -> Reply:
        try:
            async with asyncio.timeout(sources.timeout_s):
                offered = await sources.by_name[name].find(as_of, tickers)
                fit, unfit = await _fit_and_unfit(sources.market, name, offered, as_of, tickers)
                if tickers is None:
                    unfit += _unreadable(sources.market)
        except NoHistory as error:
            # Of one ticker it is the source's own failure; a date without any prices is everyone's.
            await sources.market.universe(as_of)
            raise TickerWithoutHistory(error.message) from error
        except DeskError:
            raise
        except TimeoutError:
            raise SourceTimeout(name, sources.timeout_s) from None
        except Exception as error:
            # Sources are other people's code: whatever goes wrong in one is told in the digest.
            log.exception("digest.source_failed", source=name)
            raise SourceFailed(f"{type(error).__name__}: {str(error)[:200]}") from error
        mentions: JsonValue = [mention.model_dump(mode="json") for mention in fit]
        dropped: JsonValue = [item.model_dump(mode="json") for item in unfit]
        notes: JsonValue = [*notes_on(sources.market, as_of)]
        said = {"price_notes": notes} if notes else {}
        return Reply({"name": name, "mentions": mentions, "dropped": dropped, **said})

    def failed(error: DeskError) -> Reply:
        if isinstance(error, _ENDS_THE_OPERATION):
            raise error
        return Reply({"name": name, "error": {"code": error.code, "message": error.message}})

    request: JsonValue = {
        "as_of": as_of.isoformat(),
        "tickers": None if tickers is None else list(tickers),
    }
    return Call(CallKind.READ, f"source {name}", request, run, failed=failed)


async def _fit_and_unfit(
    market: MarketData,
    source: str,
    mentions: Sequence[Mention],
    as_of: date,
    tickers: Sequence[str] | None,
) -> tuple[list[Mention], list[DroppedTicker]]:
    """The best MENTIONS_MAX mentions that are dated, asked for and tradable; the others with why.

    Raises LookAhead for one that rests on a datum after the close of as_of.
    """
    close = market.calendar.close(as_of)
    best = sorted(mentions, key=lambda mention: -mention.score)[:MENTIONS_MAX]
    tradable = {item.ticker for item in await market.universe(as_of, [m.ticker for m in best])}
    fit, unfit = [], []
    for mention in best:
        if mention.known_at is not None and mention.known_at > close:
            what = f"the mention of {mention.ticker} by candidate source {source}"
            raise LookAhead(what, mention.known_at, as_of)
        if mention.known_at is None:
            rule, why = DropRule.UNDATED, "undated: nothing says that it was known at as_of"
        elif tickers is not None and mention.ticker not in tickers:
            rule, why = DropRule.OUTSIDE_UNIVERSE, "outside the universe that was asked for"
        elif mention.ticker not in tradable:
            rule = DropRule.NAMED_WITHOUT_PRICE
            why = await _why_not(market, mention.ticker, as_of)
        else:
            fit.append(mention)
            continue
        unfit.append(dropped_by(rule, mention.ticker, f"surfaced by {source}; {why}"))
    return fit, unfit


def _unreadable(market: MarketData) -> list[DroppedTicker]:
    """The tickers of a whole market whose file of prices cannot be used."""
    faults = market.faults if isinstance(market, HasFiles) else {}
    return [
        dropped_by(DropRule.ASKED_WITHOUT_PRICE, name, f"{BadReplayData.code}: {fault}")
        for name, fault in sorted(faults.items())
        if name == name.upper()  # kinds of records are in lower case
    ]


async def _why_not(market: MarketData, ticker: str, as_of: date) -> str:
    try:
        await market.bars(ticker, as_of, 1)
    except LookAhead:
        raise
    except MarketError as error:
        return f"{error.code}: {error.message}"
    return "not listed at as_of"


async def _headlines(market: MarketData, ticker: str, as_of: date) -> list[Headline]:
    items = await market.news(as_of, (ticker,), HEADLINES_MAX)
    return [
        headline(item.title, item.publisher, item.url, item.known_at)
        for item in recent(items, as_of)
    ]
