"""Alpaca's answers, asked with care and kept for a while: what `AlpacaMarket` reads from.

One feed a process, since its questions share pace, breaker and memory. Each page is a question of
its own. A session can be asked about from SETTLED_AFTER after its close; until FINAL_AT of the next
day its bar is provisional, and an answer that was given before then is asked for anew after it.

Sessions and half days are the desk's own calendar's: Alpaca tells them on its trading host alone,
which nothing that reads market data speaks to.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from functools import partial
from typing import Any, Generic, TypeVar

import polars as pl
import structlog

from libs.market.alpaca.bars import (
    ACTION_TYPES,
    AlpacaEvent,
    BarsPage,
    Renamed,
    earlier_symbols,
    events_of,
    frame_of,
    rows_of,
)
from libs.market.alpaca.calls import AlpacaCalls
from libs.market.alpaca.headlines import items_of
from libs.market.alpaca.pages import SOURCE, AlpacaForbidden, AlpacaPage
from libs.market.alpaca.standing import AlpacaStanding, PriceFeed
from libs.market.asking.feed import HISTORY_DAYS, SourceFeed, shaped
from libs.market.asking.kept_answers import KeptAnswer
from libs.market.asking.questions import REAL_TIME, Paced, SourceQuestions, Timing
from libs.market.errors import BadVendorData, MarketError, NotInSource, UnknownTicker
from libs.market.source import NewsItem, refuse_crypto
from libs.market.symbols import is_us_ticker

log = structlog.get_logger(__name__)

T = TypeVar("T")

SETTLED_AFTER = timedelta(minutes=16)
"""After a close: a free account reads the tape of all exchanges 15 minutes late."""
FINAL_AT = time_of_day(9, 0)
"""New York's time on the day after a session, at which its bar is no longer provisional: Alpaca
recalculates it in the morning."""
SESSION_DAYS = 12
"""Days before as_of that surely hold the session before it."""
PROCESSED_DAYS = 60
"""Days after as_of up to which a corporate action of before may be processed: the list goes by
that date."""
NEWS_SINCE = date(2015, 1, 1)
NEWS_DAYS = 92
"""Days of headlines before as_of: as old as a decision may cite one."""
SYMBOLS_MAX = 100
"""Symbols of one question."""
FEW = 39
"""So many tickers' three years fit on three pages of bars: then these are asked for at once, as
most of them will be looked at closely."""
BARS_A_PAGE, ACTIONS_A_PAGE, NEWS_A_PAGE = 10_000, 1_000, 50
"""The most that Alpaca allows."""
PAGES_MAX = 100
"""Pages of bars, or of actions, of one question."""
NEWS_PAGES_MAX = 10
RENAMES_MAX = 3
"""Earlier symbols of a company that are looked for."""
PROBED = "SPY"
"""A symbol that trades at every session: whether the account may read the tape is asked of it."""
PROBED_SESSIONS_AGO = 5
ROW_BYTES = 120


@dataclass(frozen=True, slots=True)
class Asked:
    """The part of a question's key that says what it is about; two pages differ in `token`."""

    symbols: tuple[str, ...]
    since: date
    until: date
    token: str = ""
    page: int = 1

    def __str__(self) -> str:
        more = len(self.symbols) - 1
        about = self.symbols[0] if self.symbols else "all shares"
        others = f" and {more} more" if more > 0 else ""
        page = f", page {self.page}" if self.page > 1 else ""
        return f"of {about}{others} up to {self.until}{page}"


@dataclass(frozen=True, slots=True)
class _Pages(Generic[T]):
    """The pages of an answer, when the oldest was given, and whether these are all there are."""

    pages: Sequence[T]
    at: datetime
    is_whole: bool


class AlpacaFeed(SourceFeed):
    """Questions with pace, retries, breaker and memory.

    `told` hears what the account may read, each time that it is found out.
    """

    def __init__(
        self,
        calls: AlpacaCalls,
        pace: Paced,
        told: Callable[[AlpacaStanding], object],
        timing: Timing = REAL_TIME,
    ) -> None:
        costs = {_FEED: 2}  # of an account that reads IEX alone
        questions = SourceQuestions("Alpaca", pace, timing, costs, tries_when_limited=False)
        super().__init__(SOURCE, questions, SETTLED_AFTER)
        self._calls = calls
        self._pace = pace
        self._told = told

    def require_keys(self) -> None:
        """Raise KeysMissing where no key can be used."""
        self._calls.require_keys()

    # --- what was known when ------------------------------------------------------------------

    def is_provisional(self, session: date) -> bool:
        """Whether the bar of a session may still be corrected."""
        return self.now() < self._final(session)

    def _final(self, session: date) -> datetime:
        morning = datetime.combine(session + timedelta(days=1), FINAL_AT)
        return morning.replace(tzinfo=self.calendar.zone).astimezone(UTC)

    def _covers(self, as_of: date) -> Callable[[KeptAnswer], bool]:
        final = self._final(as_of)
        return lambda answer: answer.at >= final or self.now() < final

    # --- what the account may read --------------------------------------------------------------

    @property
    def known_feed(self) -> PriceFeed | None:
        """The feed of the account, where it was found out; asks nobody."""
        answer = self._questions.kept((_FEED,))
        return None if answer is None or answer.refused is not None else answer.value

    async def price_feed(self) -> PriceFeed:
        """The feed of the account, found out once a day: IEX where an old bar of all exchanges is
        forbidden and the same of IEX is not."""

        def load() -> tuple[PriceFeed, int]:
            day = self.settled()
            for _ in range(PROBED_SESSIONS_AGO):
                day = self.calendar.previous_session(day)

            def ask(feed: PriceFeed) -> PriceFeed:
                query = self._bars_query(Asked((PROBED,), day, day), feed, day) | {"limit": "1"}
                self._loaded(self._calls.bars, f"a bar of {feed.upper()}", query)
                return feed

            try:
                feed = ask(PriceFeed.SIP)
            except AlpacaForbidden:
                feed = ask(PriceFeed.IEX)
            log.info("market.feed", source=SOURCE, feed=feed.value)
            self._told(AlpacaStanding(feed, self.now(), self._calls.rate))
            return feed, ROW_BYTES

        feed: PriceFeed = (await self._questions.ask((_FEED,), load)).value
        return feed

    # --- prices ---------------------------------------------------------------------------------

    async def frames(
        self, tickers: Sequence[str], as_of: date, days: int
    ) -> Mapping[str, pl.DataFrame | MarketError]:
        """By ticker: its raw bars of `days` days up to as_of, without any where there are none; or
        why there is no frame of it. Raises SourceUnavailable, BadVendorData and KeysMissing where
        the answer as a whole is none."""
        self.require_settled(as_of)
        self._calls.require_keys()
        frames: dict[str, pl.DataFrame | MarketError] = {}
        symbols = []
        if len(tickers) <= FEW:
            days = max(days, HISTORY_DAYS)
        since = as_of - timedelta(days=days)
        for ticker in dict.fromkeys(tickers):
            try:
                found = self._frame(_symbol(ticker), since, as_of)
            except MarketError as error:
                found = error
            if found is None:
                symbols.append(ticker)
            else:
                frames[ticker] = found
        for start in range(0, len(symbols), SYMBOLS_MAX):
            chunk = tuple(sorted(symbols[start : start + SYMBOLS_MAX]))
            frames |= await self._chunk(chunk, since, as_of)
        return frames

    async def series(self, ticker: str, as_of: date, days: int = HISTORY_DAYS) -> pl.DataFrame:
        """The frame of one ticker. Raises what there is in its place."""
        found = (await self.frames((ticker,), as_of, max(days, HISTORY_DAYS)))[ticker]
        if isinstance(found, MarketError):
            raise found.with_traceback(None)
        return found

    async def _chunk(
        self, symbols: tuple[str, ...], since: date, as_of: date
    ) -> Mapping[str, pl.DataFrame | MarketError]:
        unknown: dict[str, pl.DataFrame | MarketError] = {}
        while symbols:
            try:
                bars, at = await self._bars(Asked(symbols, since, as_of))
                events, renames, given = await self._events(symbols, since, as_of)
                break
            except UnknownTicker as error:
                wrong = next((name for name in symbols if name in error.message.split()), None)
                if wrong is None:
                    raise
                unknown[wrong] = error
                symbols = tuple(name for name in symbols if name != wrong)
        else:
            return unknown
        by_symbol = bars.rows.partition_by("symbol", as_dict=True, maintain_order=True)
        none = bars.rows.clear()
        frames: dict[str, pl.DataFrame | MarketError] = {}
        for symbol in symbols:
            spans = earlier_symbols(symbol, renames, as_of)
            own = by_symbol.get((symbol,), none)
            try:
                frames[symbol] = frame_of(symbol, own, events, spans, as_of)
            except BadVendorData as error:
                frames[symbol] = error
            if why := bars.broken.get(symbol):
                frames[symbol] = BadVendorData(f"prices of {symbol}", why, "Deskbus")
            kept = KeptAnswer(min(at, given), (since, frames[symbol]), None, ROW_BYTES * own.height)
            self._questions.remember((_FRAME, as_of, symbol), kept)
        return frames | unknown

    def _frame(self, symbol: str, since: date, as_of: date) -> pl.DataFrame | MarketError | None:
        """The frame that is remembered of bars since then; None where it has to be asked for."""
        kept = self._questions.kept((_FRAME, as_of, symbol))
        if kept is None or not self._covers(as_of)(kept):
            return None
        begins, frame = kept.value
        return frame if begins <= since else None

    async def _bars(self, asked: Asked) -> tuple[BarsPage, datetime]:
        feed = await self.price_feed()

        def ask(what: str, page: Asked) -> AlpacaPage:
            query = self._bars_query(page, feed, asked.until)
            return self._loaded(self._calls.bars, what, query)

        answer = await self._pages(
            "bars", asked, ask, lambda page: rows_of(page, asked.symbols), ROW_BYTES * BARS_A_PAGE
        )
        rows = pl.concat([page.rows for page in answer.pages])
        broken = {name: why for page in answer.pages for name, why in page.broken.items()}
        return BarsPage(rows, broken), answer.at

    def _bars_query(self, page: Asked, feed: PriceFeed, asof: date) -> dict[str, str]:
        # The end is the close, not a date: a date is midnight in UTC, which leaves its bar out.
        return _with_token(page) | {
            "symbols": ",".join(page.symbols),
            "timeframe": "1Day",
            "start": page.since.isoformat(),
            "end": _stamp(self.calendar.close(page.until)),
            "limit": str(BARS_A_PAGE),
            "adjustment": "raw",
            "asof": asof.isoformat(),
            "feed": feed.value,
            "currency": "USD",
            "sort": "asc",
        }

    async def _events(
        self, symbols: tuple[str, ...], since: date, as_of: date
    ) -> tuple[Sequence[AlpacaEvent], Sequence[Renamed], datetime]:
        """What happened to these symbols, and to the earlier ones of the same companies; and when
        the oldest of the answers was given."""
        events: list[AlpacaEvent] = []
        renames: list[Renamed] = []
        left, seen, at = symbols, set(symbols), self.now()
        for _ in range(1 + RENAMES_MAX):
            if not left:
                break
            asked = Asked(left, since, as_of)
            answer = await self._pages(
                "actions", asked, self._ask_actions, events_of, ROW_BYTES * ACTIONS_A_PAGE
            )
            at = min(at, answer.at)
            for page in answer.pages:
                events += [each for each in page if isinstance(each, AlpacaEvent)]
                renames += [each for each in page if isinstance(each, Renamed)]
            older = {each.old for each in renames if each.new in seen and each.on <= as_of}
            left = tuple(sorted(older - seen))
            seen |= older
        return events, renames, at

    def _ask_actions(self, what: str, page: Asked) -> AlpacaPage:
        query = _with_token(page) | {
            "symbols": ",".join(page.symbols),
            "types": ",".join(ACTION_TYPES),
            "start": page.since.isoformat(),
            "end": (page.until + timedelta(days=PROCESSED_DAYS)).isoformat(),
            "limit": str(ACTIONS_A_PAGE),
            "sort": "asc",
        }
        return self._loaded(self._calls.actions, what, query)

    # --- headlines ------------------------------------------------------------------------------

    async def news(
        self, tickers: Sequence[str] | None, as_of: date, items_max: int
    ) -> Sequence[NewsItem]:
        """The newest headlines of the NEWS_DAYS up to as_of's close, newest first, of these tickers
        or of all; at most NEWS_PAGES_MAX pages of SYMBOLS_MAX tickers each. Raises as `frames`."""
        self.require_settled(as_of)
        self._calls.require_keys()
        if as_of < NEWS_SINCE:
            remedy = f"its headlines begin on {NEWS_SINCE}"
            raise NotInSource(f"headlines up to {as_of}", SOURCE, remedy)
        if tickers is None:
            chunks: list[tuple[str, ...]] = [()]
        else:
            kept = {name: self._questions.kept((_HEADLINES, as_of, name)) for name in tickers}
            known = [each for each in kept.values() if each is not None]
            if known and len(known) == len(kept):
                return _newest([item for each in known for item in each.value], items_max)
            symbols = [name for name in sorted(set(tickers)) if is_us_ticker(name)]
            starts = range(0, len(symbols), SYMBOLS_MAX)
            chunks = [tuple(symbols[start : start + SYMBOLS_MAX]) for start in starts]
            if tickers and not symbols:
                named = ", ".join(tickers)[:60]
                raise NotInSource(f"headlines of {named}", SOURCE, "it has US listings only")
        close = self.calendar.close(as_of)
        since = as_of - timedelta(days=NEWS_DAYS)
        items: list[NewsItem] = []
        for chunk in chunks:
            answer = await self._pages(
                _NEWS,
                Asked(chunk, since, as_of),
                self._ask_news,
                partial(items_of, tickers=frozenset(chunk) if chunk else None),
                ROW_BYTES * 10 * NEWS_A_PAGE,
                pages_max=min(NEWS_PAGES_MAX, -(-items_max // NEWS_A_PAGE)),
            )
            found = [item for page in answer.pages for item in page if item.known_at <= close]
            items += found
            if answer.is_whole:
                self._keep_headlines(chunk, found, as_of, answer.at)
        return _newest(items, items_max)

    def _keep_headlines(
        self, tickers: Sequence[str], items: Sequence[NewsItem], as_of: date, at: datetime
    ) -> None:
        """Remember the headlines of each ticker, where an answer held all there are."""
        for ticker in tickers:
            own = [item for item in items if item.ticker == ticker]
            kept = KeptAnswer(at, own, None, ROW_BYTES * 10 * (1 + len(own)))
            self._questions.remember((_HEADLINES, as_of, ticker), kept)

    def _ask_news(self, what: str, page: Asked) -> AlpacaPage:
        about = {"symbols": ",".join(page.symbols)} if page.symbols else {}
        query = (
            _with_token(page)
            | about
            | {
                "start": f"{page.since.isoformat()}T00:00:00Z",
                "end": _stamp(self.calendar.close(page.until)),
                "limit": str(NEWS_A_PAGE),
                "include_content": "false",
                "sort": "desc",
            }
        )
        return self._loaded(self._calls.news, what, query)

    # --- how they are asked -------------------------------------------------------------------

    async def _pages(
        self,
        kind: str,
        asked: Asked,
        ask: Callable[[str, Asked], AlpacaPage],
        shape: Callable[[Any], T],
        size_bytes: int,
        pages_max: int | None = None,
    ) -> "_Pages[T]":
        """The pages of a question. With `pages_max` no more are wanted; without, more than
        PAGES_MAX are BadVendorData, as is a token that comes twice."""
        pages: list[T] = []
        seen, at = {""}, self.now()
        covers = self._covers(asked.until) if kind != _NEWS else _always
        for number in range(1, (pages_max or PAGES_MAX) + 1):
            page_request = replace(asked, page=number)

            def load(page_request: Asked = page_request) -> tuple[tuple[T, str | None], int]:
                what = f"{kind} {page_request}"
                page = ask(what, page_request)
                return (shaped(what, lambda: shape(page.rows)), page.next_token), size_bytes

            answer = await self._questions.ask((kind, page_request), load, covers)
            rows, token = answer.value
            pages.append(rows)
            at = min(at, answer.at)
            if token is None:
                return _Pages(pages, at, is_whole=True)
            if token in seen:
                why = f"page {number} names a page as the next one that came before"
                raise BadVendorData(f"{kind} {asked}", why, "Deskbus")
            seen.add(token)
            asked = replace(asked, token=token)
        if pages_max is None:
            why = f"it has more than {PAGES_MAX} pages"
            raise BadVendorData(f"{kind} {asked}", why, "Deskbus")
        return _Pages(pages, at, is_whole=False)

    def _loaded(
        self, call: Callable[[str, Mapping[str, str]], AlpacaPage], what: str, query: dict[str, str]
    ) -> AlpacaPage:
        """One answer; where it says that it used the rate up, everybody waits until it is anew."""
        page = call(what, query)
        if page.rate is not None and page.rate.remaining == 0:
            self._pace.hold(page.rate.wait_s(self.now().timestamp()))
        return page


_FEED, _FRAME, _NEWS, _HEADLINES = "feed", "frame", "news", "headlines"


def _newest(items: Sequence[NewsItem], items_max: int) -> Sequence[NewsItem]:
    return sorted(items, key=lambda item: item.known_at, reverse=True)[:items_max]


def _always(_: KeptAnswer) -> bool:
    """The headlines of the evening are kept: a later answer has lost what was edited since."""
    return True


def _symbol(ticker: str) -> str:
    """Alpaca's name of a ticker. Raises what it is, where Alpaca can have none of it."""
    refuse_crypto(ticker)
    if not is_us_ticker(ticker):
        raise UnknownTicker(ticker, SOURCE)
    return ticker


def _with_token(page: Asked) -> dict[str, str]:
    return {"page_token": page.token} if page.token else {}


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
