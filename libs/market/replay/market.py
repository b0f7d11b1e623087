"""The replay source: recorded real prices, returned as they were known at each session's close.

`ReplayMarket` reads a `ReplayStore` up to as_of and `ReplayFills` past it. They are two objects so
that only execution need be given the second.

Adjustment: a bar of session t is multiplied by the steps of all splits and dividends in
(t, as_of]. A step is 1 / split_factor times close / (close + dividend) of the ex-date, the
reinvested total return. The steps are multiplied up forwards in time, so a value at as_of is made
of the same floating-point operations whether or not later rows exist.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from math import prod
from typing import Any, TypeVar

import polars as pl

from contracts.facts import UNKNOWN_SECTOR
from libs.files.finding import FileFinding
from libs.market.calendar import DayKind, ExchangeCalendar
from libs.market.errors import NoHistory, NothingTraded
from libs.market.filings.reported import Filing
from libs.market.filings.vintages import Split, Vintages
from libs.market.fundamentals import fundamentals_of
from libs.market.listed_calendars import compute, known_calendar
from libs.market.replay.store import ReplayStore
from libs.market.source import (
    JUMP_PCT,
    CorporateAction,
    EarningsReport,
    FillPrice,
    Fundamentals,
    Listing,
    NewsItem,
    SessionMove,
    require_session,
)
from libs.market.symbols import (
    HUNDREDTHS,
    UnknownCurrency,
    currency,
    lot_of,
    no_share,
    venue_of,
)

__all__ = ["ReplayFills", "ReplayMarket", "ReplayStore"]

ADJUSTED_KEPT_MAX = 64
"""Tickers at a session whose adjusted bars are kept: a cycle's tools ask for the same ones a dozen
times."""
UNIVERSES_KEPT_MAX = 8
"""Lists of who traded at a session that are kept: each source of candidates asks for the same."""
ADJUSTED_BARS = 512
"""The least that is adjusted at once; longer than what the tools ask for."""

_PRICES = ("open", "high", "low", "close")
_MOVED_BY = ("close", "volume", "price_growth")

K = TypeVar("K")
V = TypeVar("V")
Named = tuple[date, tuple[str, ...]]
"""A session and tickers."""


class ReplayMarket:
    """`MarketData` over a store: nothing newer than the close of as_of."""

    def __init__(self, store: ReplayStore, jump_pct: float = JUMP_PCT) -> None:
        self._store = store
        self._adjusted: dict[tuple[str, date], pl.DataFrame] = {}
        self._universes: dict[Named, tuple[Listing, ...]] = {}
        self.label = replace(store.label, jump_pct=jump_pct)
        """What the source is, for people."""

    @property
    def calendar(self) -> ExchangeCalendar:
        """The sessions that as_of counts in."""
        return self._store.calendar

    @property
    def faults(self) -> Mapping[str, FileFinding]:
        """See HasFiles.faults."""
        return self._store.faults

    @property
    def no_listings(self) -> FileFinding | None:
        """See HasFiles.no_listings."""
        return self._store.unused.get("sectors")

    def caveat(self, ticker: str) -> str:
        """See HasFiles.caveat."""
        return self._store.form(ticker).caveat

    async def bars(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """See MarketData.bars."""
        if sessions < 1:
            raise ValueError(f"sessions must be at least 1, not {sessions}")
        bars = self._adjusted.get((ticker, as_of))
        if bars is None or bars.height < sessions:
            known = await self._known_bars(ticker, as_of)
            bars = adjusted(known.tail(max(sessions, ADJUSTED_BARS)))
            _keep(self._adjusted, (ticker, as_of), bars, ADJUSTED_KEPT_MAX)
        return bars.tail(sessions)

    async def session_moves(self, as_of: date, tickers: Iterable[str]) -> Mapping[str, SessionMove]:
        """See SessionMoves."""
        moves = {}
        for ticker in tickers:
            frame, at = await self._store.bars(ticker), await self._bars_known(ticker, as_of) - 1
            close, volume, growth = map(frame.get_column_index, _MOVED_BY)
            last = frame.row(at)  # by name each of them costs three times as much
            change_pct = None
            if at > 0:
                before = frame.row(at - 1)
                change_pct = (
                    last[close] / (before[close] * (last[growth] / before[growth])) - 1
                ) * 100
            moves[ticker] = SessionMove(last[close] * last[volume], change_pct)
        return moves

    async def universe(
        self, as_of: date, tickers: Collection[str] | None = None
    ) -> tuple[Listing, ...]:
        """See MarketData.universe; NoHistory where nothing at all traded at as_of."""
        require_session(self.calendar, as_of)
        names = self._store.tickers if tickers is None else self._store.known_among(tickers)
        listings = self._universes.get((as_of, names))
        if listings is None:
            usable = await self._store.readable(names)
            shares = [name for name in usable if not no_share(name)]
            traded = [name for name in shares if _has(await self._store.dates(name), as_of)]
            described = await _described(self._store, as_of, traded)
            listings = tuple(
                self._listing(name, described.get(name, {}))
                for name in traded
                if not hidden(self._store, name, as_of, described.get(name, {}))
            )
            _keep(self._universes, (as_of, names), listings, UNIVERSES_KEPT_MAX)
        if not listings and tickers is None:
            raise await self._nothing_traded(as_of)
        return listings

    async def news(
        self, as_of: date, tickers: Collection[str] | None, items_max: int
    ) -> tuple[NewsItem, ...]:
        """See MarketData.news."""
        rows = await self._known_records("news", "news", as_of, tickers)
        newest = rows.sort("known_at", descending=True, maintain_order=True).head(items_max)
        return tuple(_news_item(row) for row in newest.iter_rows(named=True))

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        """See MarketData.fundamentals: from what filings reported, where there is any of it."""
        if self._store.has("reported"):
            reported = fundamentals_of(ticker, await self._vintages(ticker, as_of), as_of)
            if reported is not None or not self._store.has("fundamentals"):
                return reported
        rows = await self._known_records("fundamentals", "fundamentals", as_of, (ticker,))
        if rows.is_empty():
            return None
        newest = rows.sort("period_end", maintain_order=True).row(-1, named=True)
        ratio = await self._split_since(ticker, newest["known_at"], as_of)
        (listing,) = await self.universe(as_of, (ticker,))
        return _fundamentals(newest, ratio, listing.currency)

    async def filings(self, ticker: str, as_of: date) -> tuple[Filing, ...]:
        """See MarketData.filings."""
        company = await self._store.company(ticker)
        await self._known_bars(ticker, as_of)
        close = self.calendar.close(as_of)
        return tuple(filing for filing in company.filings if filing.known_at <= close)

    async def _vintages(self, ticker: str, as_of: date) -> Vintages:
        """The statements of the known filings, in as_of's shares."""
        filings = await self.filings(ticker, as_of)
        stated = (await self._store.company(ticker)).stated
        splits = await self.splits(ticker, as_of)
        return Vintages(filings, stated, self.calendar.close(as_of), splits)

    async def earnings(
        self, as_of: date, tickers: Collection[str] | None
    ) -> tuple[EarningsReport, ...]:
        """See MarketData.earnings."""
        rows = await self._known_records("earnings", "earnings dates", as_of, tickers)
        newest = rows.unique(["ticker", "period_end"], keep="last", maintain_order=True)
        return tuple(
            EarningsReport(**{**row, "currency": row["currency"] or ""})
            for row in newest.sort("report_date", "ticker").iter_rows(named=True)
        )

    async def _known_bars(self, ticker: str, as_of: date) -> pl.DataFrame:
        frame = await self._store.bars(ticker)
        return frame.head(await self._bars_known(ticker, as_of))

    async def _bars_known(self, ticker: str, as_of: date) -> int:
        """How many bars are known at as_of, of which the last one is."""
        require_session(self.calendar, as_of)
        dates = await self._store.dates(ticker)
        described = (await _described(self._store, as_of, (ticker,))).get(ticker, {})
        if why := hidden(self._store, ticker, as_of, described):
            raise NoHistory(why)
        known = bisect_right(dates, as_of)
        if known == 0:
            raise NoHistory(
                f"{ticker} has no prices at or before {as_of} in source {self.label.name}; "
                f"choose a later session or leave it out"
            )
        if dates[known - 1] != as_of:
            raise await self._not_traded(ticker, as_of, dates[known - 1])
        return known

    async def _not_traded(self, ticker: str, as_of: date, last: date) -> NoHistory:
        of = ticker, as_of, self.label.name, last
        for other in await self._store.readable(self._store.tickers):
            if _has(await self._store.dates(other), as_of):
                return NoHistory.ended(*of)
        return NothingTraded.ended(*of)

    async def _known_records(
        self, kind: str, what: str, as_of: date, tickers: Collection[str] | None
    ) -> pl.DataFrame:
        rows = await self._store.records(kind, what)
        require_session(self.calendar, as_of)
        known = rows.filter(pl.col("known_at") <= self.calendar.close(as_of))
        if tickers is None:
            return known
        for ticker in tickers:
            await self._known_bars(ticker, as_of)
        return known.filter(pl.col("ticker").is_in(list(tickers)))

    async def _split_since(self, ticker: str, known_at: datetime, as_of: date) -> float:
        """New shares for one share of `known_at`, by the splits from then to as_of."""
        splits = await self.splits(ticker, as_of)
        return prod(factor for at, factor in splits if at > known_at)

    async def splits(self, ticker: str, as_of: date) -> Sequence[Split]:
        """The splits up to as_of, each with the open that it took effect at."""
        await self._known_bars(ticker, as_of)
        known = (row for row in await self._store.splits(ticker) if row[0] <= as_of)
        described = (await _described(self._store, as_of, (ticker,))).get(ticker, {})
        return at_opens(known, _calendar(self._store, ticker, described))

    def _listing(self, ticker: str, described: Mapping[str, Any]) -> Listing:
        venue, exchange = venue_of(ticker), _exchange(self._store, ticker, described)
        lot: float | None = described.get("lot")
        return Listing(
            ticker=ticker,
            name=described.get("name") or ticker,
            sector=described.get("sector") or UNKNOWN_SECTOR,
            exchange=exchange,
            currency=_currency(self._store, ticker, described),
            country=described.get("country") or (venue.country if venue else ""),
            issuer=(described.get("issuer") or "").strip(),
            lot=int(lot) if lot is not None else lot_of(exchange),
        )

    async def _nothing_traded(self, as_of: date) -> NothingTraded:
        usable = await self._store.readable(self._store.tickers)
        spans = [await self._store.dates(ticker) for ticker in usable]
        if not spans:
            await self._store.dates(self._store.tickers[0])  # raises what is wrong with it
        first, last = min(dates[0] for dates in spans), max(dates[-1] for dates in spans)
        if as_of < first:
            where = "lies before the data"
        else:
            where = "lies after the data" if as_of > last else "has no prices"
        return NothingTraded(
            f"{as_of} {where} of source {self.label.name}, which runs from {first} to {last}; "
            f"choose a session inside"
        )


class ReplayFills:
    """`FillPrices` over a store: for execution only, because it reads past as_of."""

    def __init__(self, store: ReplayStore) -> None:
        self._store = store

    async def next_open(self, ticker: str, after: date) -> FillPrice:
        """See FillPrices.next_open."""
        frame, dates = await self._store.bars(ticker), await self._store.dates(ticker)
        calendar = self._store.calendar
        session = calendar.next_session(after)
        if not _has(dates, session):
            raise NoHistory(
                f"{ticker} did not trade at the open of {session}, the session after {after}, in "
                f"source {self._store.label.name}; the order cannot be filled there"
            )
        row = frame.row(bisect_left(dates, session), named=True)
        described = (await _described(self._store, session, (ticker,))).get(ticker, {})
        own = _calendar(self._store, ticker, described)
        opens_at = (own if own.is_session(session) else calendar).open(session)
        if opens_at < calendar.close(after):
            raise NoHistory(
                f"{ticker} opens at {own.exchange} before {calendar.exchange} closes on {after}, "
                f"where it was decided; the order cannot be filled there"
            )
        return FillPrice(
            ticker=ticker,
            session=session,
            opens_at=opens_at,
            open=exact(row["open"]),
            currency=_currency(self._store, ticker, described),
            action=action_of(ticker, row),
            volume=row["volume"],
        )

    async def actions(self, ticker: str, after: date, through: date) -> tuple[CorporateAction, ...]:
        """See FillPrices.actions."""
        frame, dates = await self._store.bars(ticker), await self._store.dates(ticker)
        first, end = bisect_right(dates, after), bisect_right(dates, through)
        between = frame.slice(first, max(0, end - first))
        return actions_in(ticker, between)


async def _described(
    store: ReplayStore, as_of: date, tickers: Collection[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Rows of sectors.csv by ticker, once the calendars of their exchanges are at hand."""
    described = await store.descriptions(as_of, tickers)
    await compute(
        {_exchange(store, name, described.get(name, {})) for name in tickers} - {store.exchange}
    )
    return described


def hidden(
    store: ReplayStore, ticker: str, as_of: date, described: Mapping[str, str | None]
) -> str:
    """Why a ticker cannot be looked at as of a session; empty where it can.

    Its exchange closes after the source's, so that its price of that day was not known then; or
    its exchange's calendar does not reach that day, so that its close is unknown; or nothing says
    whether its prices are in pence. `described` is its row of sectors.csv.
    """
    try:
        money = _currency(store, ticker, described)
    except UnknownCurrency as error:
        return f"{ticker}: {error.message}"
    if not money:
        minor, whole = HUNDREDTHS[ticker.rpartition(".")[2]]
        return (
            f"it is unknown whether the prices of {ticker} are in {minor} (hundredths) or {whole}: "
            f"write its currency into sectors.csv of source {store.label.name}"
        )
    return _unknown_close(store, ticker, as_of, described)


def _unknown_close(
    store: ReplayStore, ticker: str, as_of: date, described: Mapping[str, str | None]
) -> str:
    own = _calendar(store, ticker, described)
    if own is not store.calendar and own.kind(as_of) is DayKind.OUTSIDE:
        return (
            f"{as_of} lies outside the calendar of {own.exchange} ({own.first} to {own.last}), "
            f"where {ticker} trades, so its close of that day is not known: leave it out, or "
            f"install a newer exchange-calendars"
        )
    if not own.is_session(as_of) or own.close(as_of) <= store.calendar.close(as_of):
        return ""
    exchange = _exchange(store, ticker, described)
    return (
        f"{ticker} trades at {exchange} on after the close of {store.exchange} on {as_of}, so its "
        f"price of that day was not known then: leave it out, or set exchange in source.toml to "
        f"the exchange that closes last"
    )


def _exchange(store: ReplayStore, ticker: str, described: Mapping[str, str | None]) -> str:
    """By sectors.csv, else by the ticker's suffix, else the source's."""
    if named := described.get("exchange"):
        return named
    venue = venue_of(ticker)
    return venue.exchange if venue is not None else store.exchange


def _currency(store: ReplayStore, ticker: str, described: Mapping[str, str | None]) -> str:
    """The same of the currency; empty where the suffix leaves two open, and the source's is none
    of them. Raises UnknownCurrency."""
    venue = venue_of(ticker)
    named = described.get("currency")
    if named or venue is None:
        return currency(named or store.currency)
    suffix = ticker.rpartition(".")[2]
    if suffix in HUNDREDTHS:
        return store.currency if store.currency in HUNDREDTHS[suffix] else ""
    return venue.currency


def _calendar(
    store: ReplayStore, ticker: str, described: Mapping[str, str | None]
) -> ExchangeCalendar:
    """The sessions of a ticker's exchange; the source's where no calendar is known of it."""
    exchange = _exchange(store, ticker, described)
    if exchange == store.exchange:
        return store.calendar
    return known_calendar(exchange) or store.calendar


def adjusted(known: pl.DataFrame) -> pl.DataFrame:
    """Raw bars with their growth as BAR_SCHEMA, rebased to the last one of them."""
    price, shares = (
        known[growth].tail(1) / known[growth] for growth in ("price_growth", "share_growth")
    )
    # Column by column: the same as an expression, at a quarter of the cost for so few rows.
    prices = (known[name] * price for name in _PRICES)
    return pl.DataFrame([known["date"], *prices, known["volume"] * shares])


def at_opens(splits: Iterable[tuple[date, float]], calendar: ExchangeCalendar) -> Sequence[Split]:
    """The splits of sessions, each with the open that it took effect at."""
    return [
        (calendar.open(session), factor)
        for session, factor in splits
        if calendar.is_session(session)
    ]


def _keep(kept: dict[K, V], key: K, value: V, count_max: int) -> None:
    """Keep a value, and no more than `count_max`: the one that came first goes."""
    while len(kept) >= count_max:
        del kept[next(iter(kept))]
    kept[key] = value


def _has(dates: Sequence[date], day: date) -> bool:
    at = bisect_left(dates, day)
    return at < len(dates) and dates[at] == day


def exact(value: float) -> Decimal:
    """The decimal that the file's text said, through the shortest form of the float."""
    return Decimal(repr(value))


def action_of(ticker: str, row: Mapping[str, Any]) -> CorporateAction | None:
    """The split or dividend in a raw bar's row; None where there was neither."""
    if row["split_factor"] == 1 and row["dividend"] == 0:
        return None
    return CorporateAction(
        ticker=ticker,
        session=row["date"],
        split_ratio=exact(row["split_factor"]),
        dividend_per_share=exact(row["dividend"]),
    )


def actions_in(ticker: str, bars: pl.DataFrame) -> tuple[CorporateAction, ...]:
    """The splits and dividends in raw bars."""
    actions = (action_of(ticker, row) for row in bars.iter_rows(named=True))
    return tuple(action for action in actions if action is not None)


def _news_item(row: Mapping[str, Any]) -> NewsItem:
    return NewsItem(
        ticker=row["ticker"],
        title=row["title"],
        summary=row["summary"] or "",
        publisher=row["publisher"] or "",
        url=row["url"] or "",
        known_at=row["known_at"],
    )


def _fundamentals(row: Mapping[str, Any], split_ratio: float, currency: str) -> Fundamentals:
    def per_share(value: float | None) -> float | None:
        return None if value is None else value / split_ratio

    shares = row["shares_outstanding"]
    return Fundamentals(
        ticker=row["ticker"],
        period_end=row["period_end"],
        known_at=row["known_at"],
        currency=row["currency"] or currency,
        eps_ttm=per_share(row["eps_ttm"]),
        shares_outstanding=None if shares is None else shares * split_ratio,
        revenue_ttm=row["revenue_ttm"],
        profit_margin_pct=row["profit_margin_pct"],
        operating_margin_pct=row["operating_margin_pct"],
        debt_to_equity=row["debt_to_equity"],
        dividend_per_share_ttm=per_share(row["dividend_per_share_ttm"]),
    )
