"""Where candidates come from: each source names tickers with a score, as of a session's close.

`REGISTRY` has those that come with the desk. One of your own is a class made with the market data,
named in the setting `candidates.sources` as `package.module:Class`; docs/digest.md has one.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from contracts.types import Name
from libs.market.source import (
    EarningsReport,
    Listing,
    MarketData,
    NewsItem,
    SessionMoves,
    move_of,
)
from libs.runtime.errors import DeskError
from libs.runtime.own_code import own_module
from libs.runtime.untrusted import clean_line
from services.sentiment.logic import EARNINGS, NEWS, SCREENER, Mention

LIST_LENGTH = 10
"""Gainers, losers and most active: so many of each."""
NEWS_ITEMS_MAX = 500
NEWS_DAYS = 7
NEWS_TICKERS_MAX = 50
EARNINGS_DAYS = 7
EARNINGS_TICKERS_MAX = 50
NAME_CHARS_MAX = 200


class CandidateSource(Protocol):
    """Names tickers worth a look, with the time each rests on: nothing newer than as_of's close."""

    @property
    def name(self) -> str:
        """Its name in requests and in the digest."""
        ...

    async def find(self, as_of: date, tickers: Collection[str] | None) -> tuple[Mention, ...]:
        """Its mentions, among `tickers` where given. Raises DeskError where it cannot answer."""
        ...


class BadCandidateSource(DeskError):
    """The setting candidates.sources names an invalid candidate source."""

    code = "bad_candidate_source"

    def __init__(self, row: str, what: str) -> None:
        super().__init__(
            f"candidates.sources: {row[:80]!r} {what}; use {', '.join(REGISTRY)} "
            f"or package.module:Class"
        )


class Screener:
    """Gainers, losers and most active by traded value, of the session before as_of's close."""

    name = SCREENER

    def __init__(self, market: MarketData) -> None:
        self._market = market

    async def find(self, as_of: date, tickers: Collection[str] | None) -> tuple[Mention, ...]:
        """The first LIST_LENGTH of each list; the score is the best rank in any of them."""
        listings = await self._market.universe(as_of, tickers)
        close = self._market.calendar.close(as_of)
        changes, turnover = await self._session(listings, as_of)
        risers = sorted((name for name in changes if changes[name] > 0), key=lambda n: -changes[n])
        fallers = sorted((name for name in changes if changes[name] < 0), key=changes.__getitem__)
        active = sorted(turnover, key=lambda name: -turnover[name])
        scores: dict[str, float] = {}
        reasons: dict[str, list[str]] = {}
        lists = (
            ("gainer", risers, changes),
            ("loser", fallers, changes),
            ("most active", active, turnover),
        )
        for word, ranking, values in lists:
            level = [values[name] for name in ranking]
            for ticker in ranking[:LIST_LENGTH]:
                # Equals share a place: a name makes nobody the better one.
                place = level.index(values[ticker])
                scores[ticker] = max(scores.get(ticker, 0.0), 1 - place / LIST_LENGTH)
                change = "" if ranking is active else f" ({changes[ticker]:+.2f}%)"
                reasons.setdefault(ticker, []).append(f"{word} {place + 1}{change}")
        return tuple(
            _mention(item, scores[item.ticker], close, ", ".join(reasons[item.ticker]))
            for item in listings
            if item.ticker in scores
        )

    async def _session(
        self, listings: Sequence[Listing], as_of: date
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Change in percent, for those that traded the session before; and traded value, for none
        where the source knows only a part of it."""
        names = [listing.ticker for listing in listings]
        if isinstance(self._market, SessionMoves):
            moves = await self._market.session_moves(as_of, names)
        else:
            moves = {name: move_of(await self._market.bars(name, as_of, 2)) for name in names}
        changes = {n: move.change_pct for n, move in moves.items() if move.change_pct is not None}
        turnover = {n: move.turnover for n, move in moves.items() if move.turnover is not None}
        return changes, turnover


class NewsMentions:
    """The tickers most written about in the week before as_of's close."""

    name = NEWS

    def __init__(self, market: MarketData) -> None:
        self._market = market

    async def find(self, as_of: date, tickers: Collection[str] | None) -> tuple[Mention, ...]:
        """The score is a ticker's share of the most mentioned one's headlines."""
        universe = await _listed(self._market, as_of, tickers)
        items = recent(await self._market.news(as_of, universe, NEWS_ITEMS_MAX), as_of)
        counts = Counter(item.ticker for item in items)
        newest = {item.ticker: item.known_at for item in reversed(items)}
        listings = await self._market.universe(as_of, sorted(counts))
        ranked = sorted(listings, key=lambda item: (-counts[item.ticker], item.ticker))
        most = max((counts[item.ticker] for item in listings), default=1)
        return tuple(
            _mention(
                item,
                counts[item.ticker] / most,
                newest[item.ticker],
                f"headlines in {NEWS_DAYS} days: {counts[item.ticker]}",
                counts[item.ticker],
            )
            for item in ranked[:NEWS_TICKERS_MAX]
        )


class EarningsSource:
    """The tickers that report within a week after as_of."""

    name = EARNINGS

    def __init__(self, market: MarketData) -> None:
        self._market = market

    async def find(self, as_of: date, tickers: Collection[str] | None) -> tuple[Mention, ...]:
        """The sooner the report, the higher the score."""
        due: dict[str, EarningsReport] = {}
        universe = await _listed(self._market, as_of, tickers)
        for report in await self._market.earnings(as_of, universe):
            ahead = (report.report_date - as_of).days
            if report.eps_actual is None and 0 <= ahead <= EARNINGS_DAYS:
                due.setdefault(report.ticker, report)  # they come sorted by report date
        listings = await self._market.universe(as_of, sorted(due))
        ranked = sorted(listings, key=lambda item: (due[item.ticker].report_date, item.ticker))
        return tuple(_due(item, due[item.ticker], as_of) for item in ranked[:EARNINGS_TICKERS_MAX])


REGISTRY: Mapping[str, Callable[[MarketData], CandidateSource]] = {
    SCREENER: Screener,
    NEWS: NewsMentions,
    EARNINGS: EarningsSource,
}


def sources_of(rows: str, market: MarketData) -> dict[str, CandidateSource]:
    """The sources that a comma-separated setting names, by their names, in its order.

    Raises BadCandidateSource for a row that is none, and for a name that comes twice.
    """
    sources: dict[str, CandidateSource] = {}
    for row in filter(None, (part.strip() for part in rows.split(","))):
        source = _source_of(row, market)
        if source.name in sources:
            raise BadCandidateSource(row, f"has the name {source.name}, which is there already")
        sources[source.name] = source
    if not sources:
        raise BadCandidateSource(rows, "names no source")
    return sources


def _source_of(row: str, market: MarketData) -> CandidateSource:
    module, colon, attribute = row.partition(":")
    try:
        factory = getattr(own_module(module), attribute) if colon else REGISTRY[row]
        source: CandidateSource = factory(market)
        TypeAdapter(Name).validate_python(source.name)
    except KeyError as error:
        raise BadCandidateSource(row, "is not a source of the desk") from error
    except ValidationError as error:
        raise BadCandidateSource(row, "has an invalid name") from error
    except (ImportError, AttributeError, TypeError) as error:
        raise BadCandidateSource(row, f"cannot be made ({str(error)[:120]})") from error
    return source


def recent(items: Sequence[NewsItem], as_of: date) -> list[NewsItem]:
    """The items of the NEWS_DAYS days before as_of."""
    return [item for item in items if as_of - item.known_at.date() <= timedelta(days=NEWS_DAYS)]


async def _listed(
    market: MarketData, as_of: date, tickers: Collection[str] | None
) -> Sequence[str] | None:
    """Those of a named universe that had a price at as_of: who is asked about, and nobody else."""
    if tickers is None:
        return None
    return [listing.ticker for listing in await market.universe(as_of, tickers)]


def _due(listing: Listing, report: EarningsReport, as_of: date) -> Mention:
    days = (report.report_date - as_of).days
    return _mention(
        listing,
        1 - days / (EARNINGS_DAYS + 1),
        report.known_at,
        f"reports on {report.report_date}",
    )


def _mention(
    listing: Listing, score: float, known_at: datetime, reason: str, mentions: int = 0
) -> Mention:
    return Mention(
        ticker=listing.ticker,
        name=clean_line(listing.name, NAME_CHARS_MAX),
        sector=clean_line(listing.sector, NAME_CHARS_MAX) or "unknown",
        score=score,
        mentions=mentions,
        reason=reason,
        known_at=known_at,
    )
