"""Yahoo's answers, asked with care and kept for a while: what `YahooMarket` reads from.

One feed a process, since its questions share pace, breaker and memory (see
libs/market/asking/questions.py).

An answer is kept with the moment it was given, and that moment decides what it may be used for:

- bars and headlines that were given after a session's close are complete for that session and
  all before it;
- what Yahoo does not date (names, sectors, figures, calendars, screens) counts as known at the
  close if it was given between that close and the next open, and else not at all.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import structlog

from libs.market.asking.call_policy import TokenBucket
from libs.market.asking.feed import HISTORY_DAYS, SourceFeed
from libs.market.asking.kept_answers import KeptAnswer
from libs.market.asking.questions import REAL_TIME, SourceQuestions, Timing
from libs.market.errors import NoHistory, NotInSource
from libs.market.rates import Quote
from libs.market.source import NewsItem, refuse_crypto
from libs.market.symbols import venue_of
from libs.market.yahoo.bars import SETTLED_AFTER, YahooSeries, quotes_of, series_of
from libs.market.yahoo.calls import SOURCE, YahooCalls, YahooReport
from libs.market.yahoo.shapes import news_of

log = structlog.get_logger(__name__)

RATE_DAYS = 30
"""Days before the moment asked about, and on to the start of that year, of exchange rates."""
NEWS_MAX = 50
"""Headlines of one ticker; Yahoo has no older ones to ask for."""
SEARCH_MAX = 10
"""Results of one search."""
CALENDAR_DAYS = 14
CALENDAR_ROWS_MAX = 50

# HTTP requests of one question, for the pace: what yfinance 1.7 sends at most when all goes well.
_COST = {"chart": 2, "search": 1, "info": 3, "news": 1, "reports": 1, "calendar": 1, "screen": 1}


class YahooFeed(SourceFeed):
    """Questions with pace, retries, breaker and memory."""

    def __init__(
        self, calls: YahooCalls, requests_per_s: float, timing: Timing = REAL_TIME
    ) -> None:
        pace = TokenBucket(requests_per_s, timing.clock)
        super().__init__(SOURCE, SourceQuestions("Yahoo", pace, timing, _COST), SETTLED_AFTER)
        self._calls = calls

    # --- questions ----------------------------------------------------------------------------

    async def series(self, ticker: str, as_of: date, days: int = HISTORY_DAYS) -> YahooSeries:
        """Raw bars with at least `days` days before as_of, all settled ones up to as_of.

        Raises UnknownTicker, CryptoNotSupported, NotAnEquity, NoHistory, and SourceUnavailable
        where there is no answer, unless an older one already covers the question.
        """
        refuse_crypto(ticker)
        symbol = symbol_of(ticker)
        # By whole years, so that a question a day later finds the same answer.
        since = date((as_of - timedelta(days=max(days, HISTORY_DAYS))).year, 1, 1)

        def covers(answer: KeptAnswer) -> bool:
            settled = self.calendar.last_closed(answer.at - SETTLED_AFTER)
            if answer.refused is not None:
                # Of other years there may be prices.
                return not isinstance(answer.refused, NoHistory)
            return bool(answer.value.since <= since and as_of <= settled)

        def load() -> tuple[YahooSeries, int]:
            now = self.now()
            until = now.date() + timedelta(days=2)
            chart = self._calls.chart(symbol, since, until)
            series = series_of(ticker, chart, since, now, self.calendar)
            return series, int(series.frame.estimated_size())

        known: YahooSeries = (await self._questions.ask(("chart", symbol), load, covers)).value
        return known

    async def rates(
        self, currency: str, into: str, at: datetime, since: date | None = None
    ) -> Sequence[Quote]:
        """Daily rates, ascending, with all that were known at `at` and maybe later ones."""
        symbol = f"{currency}{into}=X"
        first = since or date((at - timedelta(days=RATE_DAYS)).year, 1, 1)

        def covers(answer: KeptAnswer) -> bool:
            return answer.refused is not None or bool(answer.at >= at and answer.value[0] <= first)

        def load() -> tuple[tuple[date, Sequence[Quote]], int]:
            now = self.now()
            chart = self._calls.chart(symbol, first, now.date() + timedelta(days=2))
            quotes = quotes_of(symbol, chart, now)
            return (first, quotes), 120 * len(quotes)

        known: Sequence[Quote] = (await self._questions.ask(("chart", symbol), load, covers)).value[
            1
        ]
        return known

    async def news(self, ticker: str, as_of: date) -> Sequence[NewsItem]:
        """The dated headlines of one ticker that Yahoo still has, newest first.

        Raises NotInSource where its oldest is newer than as_of's close, unless as_of is the newest
        session: an old date's silence would say nothing.
        """
        close = self.calendar.close(as_of)
        symbol = symbol_of(ticker)

        def load() -> tuple[Sequence[NewsItem], int]:
            items, dropped = news_of(ticker, self._calls.news(symbol, NEWS_MAX))
            if dropped:
                log.warning("market.undated_dropped", ticker=ticker, rows=dropped)
            return items, sum(len(item.title) + len(item.summary) + 400 for item in items)

        answer = await self._questions.ask(
            ("news", symbol), load, lambda answer: answer.at >= close
        )
        items: Sequence[NewsItem] = answer.value
        reaches = bool(items) and items[-1].known_at <= close
        # A page that is far from full has all there is.
        is_all = len(items) < NEWS_MAX // 2 and as_of == self.calendar.last_closed(answer.at)
        if not reaches and not is_all:
            remedy = "Yahoo keeps only the newest ones; replay recorded data for other days"
            raise NotInSource(f"headlines of {ticker} back to {as_of}", SOURCE, remedy)
        return items

    async def search(self, words: str, as_of: date) -> Sequence[Mapping[str, Any]]:
        """The rows that Yahoo's search finds, as of the close."""
        rows: Sequence[Mapping[str, Any]] = (
            await self._undated(
                "search", words, as_of, lambda: self._calls.search(words, SEARCH_MAX)
            )
        ).value
        return rows

    async def info(self, ticker: str, as_of: date) -> KeptAnswer:
        """The present figures of a company, as of the close."""
        symbol = symbol_of(ticker)
        return await self._undated("info", symbol, as_of, lambda: self._calls.info(symbol))

    async def reports(self, ticker: str, as_of: date) -> Sequence[YahooReport]:
        """The earnings reports of one ticker, as of the close; NotInSource where none are told."""
        symbol = symbol_of(ticker)
        answer = await self._undated("reports", symbol, as_of, lambda: self._calls.reports(symbol))
        if answer.value is None:
            remedy = "a fund or a young listing has none; leave it out"
            raise NotInSource(f"earnings dates of {ticker}", SOURCE, remedy)
        reports: Sequence[YahooReport] = answer.value
        return reports

    async def due(self, as_of: date) -> Sequence[YahooReport]:
        """The reports of the largest US companies in the days after as_of, as of the close."""
        last = as_of + timedelta(days=CALENDAR_DAYS)
        answer = await self._undated(
            "calendar", "", as_of, lambda: self._calls.calendar(as_of, last, CALENDAR_ROWS_MAX)
        )
        reports: Sequence[YahooReport] = answer.value
        return reports

    async def screen(self, name: str, as_of: date, rows_max: int) -> Sequence[str]:
        """The tickers of a predefined screen, as of the close."""
        answer = await self._undated(
            "screen", name, as_of, lambda: self._calls.screen(name, rows_max)
        )
        tickers: Sequence[str] = answer.value
        return tickers

    # --- how they are asked -------------------------------------------------------------------

    async def _undated(
        self, kind: str, name: str, as_of: date, ask: Callable[[], Any]
    ) -> KeptAnswer:
        """Something that Yahoo tells without a date, if it was seen in the night after as_of."""
        key = (kind, name, as_of)
        if self._questions.kept(key) is None and self.night_of(self.now()) != as_of:
            raise self._not_then({"search": "names and sectors"}.get(kind, kind), as_of)

        def load() -> tuple[Any, int]:
            if self.night_of(self.now()) != as_of:  # the exchange opened while this waited
                raise self._not_then(kind, as_of)
            value = ask()
            return value, 200 + 60 * len(value or ())

        return await self._questions.ask(key, load)

    def _not_then(self, what: str, as_of: date) -> NotInSource:
        return NotInSource(
            f"{what} as of {as_of}",
            SOURCE,
            "it has no dates for them, so they are available only for the newest session, between "
            "its close and the next open; replay recorded data for other days",
        )


def symbol_of(ticker: str) -> str:
    """Yahoo's name of a ticker: BRK.B is BRK-B there, while another suffix is an exchange."""
    stem, dot, suffix = ticker.rpartition(".")
    is_class = dot and len(suffix) == 1 and venue_of(ticker) is None
    return f"{stem}-{suffix}" if is_class else ticker
