"""The replay source: recorded real prices, returned as they were known at each session's close.

`ReplayStore` finds, checks and keeps the files; `ReplayMarket` reads it up to as_of and
`ReplayFills` past it. They are two objects so that only execution need be given the second.

Adjustment: a bar of session t is multiplied by the steps of all splits and dividends in
(t, as_of]. A step is 1 / split_factor times close / (close + dividend) of the ex-date, the
reinvested total return. The steps are multiplied up forwards in time, so a value at as_of is made
of the same floating-point operations whether or not later rows exist.
"""

import asyncio
import threading
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import structlog

from libs.market.calendar import DEFAULT_EXCHANGE, ExchangeCalendar, exchange_calendar
from libs.market.errors import BadReplayData, NoHistory, NotInSource, UnknownTicker
from libs.market.replay_files import (
    SUFFIXES,
    find_bundled,
    read_bars,
    read_bundled,
    read_records,
)
from libs.market.source import (
    BAR_SCHEMA,
    UNKNOWN_SECTOR,
    CorporateAction,
    EarningsReport,
    FillPrice,
    Fundamentals,
    Listing,
    NewsItem,
    SourceLabel,
    refuse_crypto,
    require_session,
)

log = structlog.get_logger(__name__)

TICKERS_MAX = 5_000
TICKERS_CACHED_MAX = 256
LABEL_FILE = "source.toml"
DEFAULT_CURRENCY = "USD"

_TEXT, _NUMBER, _DAY = pl.String(), pl.Float64(), pl.Date()
_RECORDS: dict[str, tuple[dict[str, pl.DataType], dict[str, pl.DataType]]] = {
    "sectors": (
        {"ticker": _TEXT, "sector": _TEXT},
        {"name": _TEXT, "exchange": _TEXT, "currency": _TEXT, "country": _TEXT},
    ),
    "news": (
        {"ticker": _TEXT, "title": _TEXT},
        {"summary": _TEXT, "publisher": _TEXT, "url": _TEXT},
    ),
    "fundamentals": (
        {"ticker": _TEXT, "period_end": _DAY},
        {
            "currency": _TEXT,
            "eps_ttm": _NUMBER,
            "shares_outstanding": _NUMBER,
            "revenue_ttm": _NUMBER,
            "profit_margin_pct": _NUMBER,
            "operating_margin_pct": _NUMBER,
            "debt_to_equity": _NUMBER,
            "dividend_per_share_ttm": _NUMBER,
        },
    ),
    "earnings": (
        {"ticker": _TEXT, "period_end": _DAY, "report_date": _DAY},
        {"eps_estimate": _NUMBER, "eps_actual": _NUMBER},
    ),
}

# Written down by hand from general knowledge. The sector is the GICS one of 2000 to 2013, when all
# five were Information Technology: Communication Services took in GOOG and FB only in 2018.
_BUNDLED_LISTINGS: dict[str, dict[str, str]] = {
    ticker: {
        "name": name,
        "sector": "Information Technology",
        "exchange": exchange,
        "country": "US",
    }
    for ticker, name, exchange in (
        ("AAPL", "Apple", "XNAS"),
        ("FB", "Facebook", "XNAS"),
        ("GOOG", "Google", "XNAS"),
        ("IBM", "International Business Machines", "XNYS"),
        ("MSFT", "Microsoft", "XNAS"),
    )
}
_BUNDLED_LABEL = SourceLabel(
    name="bokeh-sampledata",
    description="real daily prices of AAPL, FB, GOOG, IBM and MSFT, 2000-03-01 to 2013-03-01; "
    "splits and dividends recovered from the adjusted close; no news, fundamentals or earnings",
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """What a replay directory holds, before any file of prices is read."""

    label: SourceLabel
    currency: str
    exchange: str
    prices: Mapping[str, Path]
    records: Mapping[str, Path]
    bundled: Path | None = None


class ReplayStore:
    """The files of one replay directory, read when first needed and kept within bounds.

    `directory` None means the prices bundled with bokeh-sampledata. Raises BadReplayData for a
    directory that is none or holds no prices; a bad file raises when it is first read. Safe to
    share between threads.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._layout = _bundled_layout() if directory is None else _scan(directory)
        self.label = self._layout.label
        self.currency = self._layout.currency
        self.exchange = self._layout.exchange
        self.calendar: ExchangeCalendar = exchange_calendar(self.exchange)
        self._bars: dict[str, pl.DataFrame] = {}
        self._dates: dict[str, list[date]] = {}
        self._records: dict[str, pl.DataFrame] = {}
        self._lock = threading.Lock()

    @property
    def tickers(self) -> tuple[str, ...]:
        """Every ticker there is a file for, whenever it traded. Not point-in-time."""
        return tuple(sorted(self._layout.prices))

    def known_among(self, tickers: Collection[str]) -> tuple[str, ...]:
        """Those of `tickers` that there is a file for, sorted."""
        return tuple(sorted(set(tickers) & self._layout.prices.keys()))

    async def bars(self, ticker: str) -> pl.DataFrame:
        """All bars of a ticker with `price_growth` and `share_growth`; not point-in-time."""
        refuse_crypto(ticker)
        if ticker not in self._layout.prices:
            raise UnknownTicker(ticker, self.label.name)
        found = self._bars.get(ticker)
        return found if found is not None else await asyncio.to_thread(self._load_bars, ticker)

    async def dates(self, ticker: str) -> list[date]:
        """The sessions that a ticker has bars for, ascending; not point-in-time."""
        if ticker not in self._dates:
            await self.bars(ticker)
        return self._dates[ticker]

    async def records(self, kind: str, what: str) -> pl.DataFrame:
        """A file of records sorted by known_at, the undated dropped; NotInSource without it."""
        if kind not in self._layout.records:
            remedy = f"use a source that has it, or put {kind}.csv into DESKBUS_REPLAY_DIR"
            raise NotInSource(what, self.label.name, remedy)
        found = self._records.get(kind)
        return found if found is not None else await asyncio.to_thread(self._load_records, kind)

    async def descriptions(self, as_of: date) -> Mapping[str, Mapping[str, str | None]]:
        """What was known of the listings at the close of as_of: name, sector, currency, ..."""
        if self._layout.bundled is not None:
            return _BUNDLED_LISTINGS
        if "sectors" not in self._layout.records:
            return {}
        rows = await self.records("sectors", "sectors")
        close = self.calendar.close(as_of)
        known = rows.filter(pl.col("known_at").is_null() | (pl.col("known_at") <= close))
        return {row["ticker"]: row for row in known.iter_rows(named=True)}

    def _load_bars(self, ticker: str) -> pl.DataFrame:
        with self._lock:
            if ticker in self._bars:
                return self._bars[ticker]
            if self._layout.bundled is not None:
                loaded = read_bundled(self._layout.bundled)
            else:
                loaded = {ticker: read_bars(self._layout.prices[ticker])}
            for name, frame in loaded.items():
                if len(self._bars) >= TICKERS_CACHED_MAX:
                    del self._bars[next(iter(self._bars))]
                self._dates[name] = frame["date"].to_list()
                self._bars[name] = _with_growth(frame)
            return self._bars[ticker]

    def _load_records(self, kind: str) -> pl.DataFrame:
        with self._lock:
            if kind not in self._records:
                required, optional = _RECORDS[kind]
                path = self._layout.records[kind]
                frame = self._date_by_sessions(read_records(path, required, optional))
                dated = frame.filter(pl.col("known_at").is_not_null())
                # An undated record could be from any time, so nothing may rest on it. Sectors
                # describe a listing and hold from its first bar.
                kept = frame if kind == "sectors" else dated
                if kept.height < frame.height:
                    dropped = frame.height - kept.height
                    log.warning("market.undated_dropped", file=path.name, rows=dropped)
                self._records[kind] = kept.sort("known_at", nulls_last=False, maintain_order=True)
            return self._records[kind]

    def _date_by_sessions(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Turn a date in known_on into the close of that session, or of the next one."""
        days = frame["known_on"].drop_nulls().unique().to_list()
        closes = [self.calendar.close(self.calendar.session_on_or_after(day)) for day in days]
        close = pl.col("known_on").replace_strict(
            pl.Series(days, dtype=pl.Date),
            pl.Series(closes, dtype=pl.Datetime("us", "UTC")),
            default=None,
            return_dtype=pl.Datetime("us", "UTC"),
        )
        return frame.with_columns(known_at=pl.col("known_at").fill_null(close)).drop("known_on")


class ReplayMarket:
    """`MarketData` over a store: nothing newer than the close of as_of."""

    def __init__(self, store: ReplayStore) -> None:
        self._store = store

    @property
    def label(self) -> SourceLabel:
        """What the source is, for people."""
        return self._store.label

    @property
    def calendar(self) -> ExchangeCalendar:
        """The sessions that as_of counts in."""
        return self._store.calendar

    async def bars(self, ticker: str, as_of: date, sessions: int) -> pl.DataFrame:
        """See MarketData.bars."""
        if sessions < 1:
            raise ValueError(f"sessions must be at least 1, not {sessions}")
        known = (await self._known_bars(ticker, as_of)).tail(sessions)
        price, shares = known["price_growth"][-1], known["share_growth"][-1]
        return known.select(
            "date",
            *(pl.col(name) * (price / pl.col("price_growth")) for name in _PRICES),
            pl.col("volume") * (shares / pl.col("share_growth")),
        ).match_to_schema(BAR_SCHEMA)

    async def universe(
        self, as_of: date, tickers: Collection[str] | None = None
    ) -> tuple[Listing, ...]:
        """See MarketData.universe; NoHistory where nothing at all traded at as_of."""
        require_session(self.calendar, as_of)
        asked = self._store.tickers if tickers is None else self._store.known_among(tickers)
        traded = [ticker for ticker in asked if _has(await self._store.dates(ticker), as_of)]
        if not traded and tickers is None:
            raise await self._nothing_traded(as_of)
        described = await self._store.descriptions(as_of)
        return tuple(self._listing(ticker, described.get(ticker, {})) for ticker in traded)

    async def news(self, as_of: date, ticker: str | None, items_max: int) -> tuple[NewsItem, ...]:
        """See MarketData.news."""
        rows = await self._known_records("news", "news", as_of, ticker)
        newest = rows.sort("known_at", descending=True, maintain_order=True).head(items_max)
        return tuple(_news_item(row) for row in newest.iter_rows(named=True))

    async def fundamentals(self, ticker: str, as_of: date) -> Fundamentals | None:
        """See MarketData.fundamentals."""
        rows = await self._known_records("fundamentals", "fundamentals", as_of, ticker)
        if rows.is_empty():
            return None
        newest = rows.sort("period_end", maintain_order=True).row(-1, named=True)
        ratio = await self._split_since(ticker, newest["known_at"], as_of)
        return _fundamentals(newest, ratio, self._store.currency)

    async def earnings(self, as_of: date, ticker: str | None) -> tuple[EarningsReport, ...]:
        """See MarketData.earnings."""
        rows = await self._known_records("earnings", "earnings dates", as_of, ticker)
        newest = rows.unique(["ticker", "period_end"], keep="last", maintain_order=True)
        return tuple(
            EarningsReport(**row)
            for row in newest.sort("report_date", "ticker").iter_rows(named=True)
        )

    async def _known_bars(self, ticker: str, as_of: date) -> pl.DataFrame:
        frame = await self._store.bars(ticker)
        require_session(self.calendar, as_of)
        dates = await self._store.dates(ticker)
        known = bisect_right(dates, as_of)
        if known == 0:
            raise NoHistory(
                f"{ticker} has no prices at or before {as_of} in source {self.label.name}; "
                f"choose a later session or leave it out"
            )
        if dates[known - 1] != as_of:
            raise NoHistory(
                f"{ticker} has no price for {as_of} in source {self.label.name}: its last one is "
                f"of {dates[known - 1]}, so it was delisted or suspended, or the data ends there; "
                f"leave it out"
            )
        return frame.head(known)

    async def _known_records(
        self, kind: str, what: str, as_of: date, ticker: str | None
    ) -> pl.DataFrame:
        rows = await self._store.records(kind, what)
        require_session(self.calendar, as_of)
        known = rows.filter(pl.col("known_at") <= self.calendar.close(as_of))
        if ticker is None:
            return known
        await self._known_bars(ticker, as_of)
        return known.filter(pl.col("ticker") == ticker)

    async def _split_since(self, ticker: str, known_at: datetime, as_of: date) -> float:
        """New shares for one share of `known_at`, by the splits from then to as_of."""
        bars = await self._known_bars(ticker, as_of)
        splits = bars.filter(pl.col("split_factor") != 1).select("date", "split_factor")
        ratio = 1.0
        for session, factor in splits.iter_rows():
            opened = self.calendar.is_session(session) and self.calendar.open(session) > known_at
            ratio *= factor if opened else 1.0
        return ratio

    def _listing(self, ticker: str, found: Mapping[str, str | None]) -> Listing:
        return Listing(
            ticker=ticker,
            name=found.get("name") or ticker,
            sector=found.get("sector") or UNKNOWN_SECTOR,
            exchange=found.get("exchange") or self._store.exchange,
            currency=found.get("currency") or self._store.currency,
            country=found.get("country") or "",
        )

    async def _nothing_traded(self, as_of: date) -> NoHistory:
        spans = [await self._store.dates(ticker) for ticker in self._store.tickers]
        first, last = min(dates[0] for dates in spans), max(dates[-1] for dates in spans)
        if as_of < first:
            where = "lies before the data"
        else:
            where = "lies after the data" if as_of > last else "has no prices"
        return NoHistory(
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
        session = self._store.calendar.next_session(after)
        if not _has(dates, session):
            raise NoHistory(
                f"{ticker} did not trade at the open of {session}, the session after {after}, in "
                f"source {self._store.label.name}; the order cannot be filled there"
            )
        row = frame.row(bisect_left(dates, session), named=True)
        described = (await self._store.descriptions(session)).get(ticker, {})
        return FillPrice(
            ticker=ticker,
            session=session,
            opens_at=self._store.calendar.open(session),
            open=_exact(row["open"]),
            currency=described.get("currency") or self._store.currency,
            action=_action(ticker, row),
        )

    async def actions(self, ticker: str, after: date, through: date) -> tuple[CorporateAction, ...]:
        """See FillPrices.actions."""
        frame = await self._store.bars(ticker)
        between = frame.filter((pl.col("date") > after) & (pl.col("date") <= through))
        events = (_action(ticker, row) for row in between.iter_rows(named=True))
        return tuple(event for event in events if event is not None)


_PRICES = ("open", "high", "low", "close")


def _with_growth(bars: pl.DataFrame) -> pl.DataFrame:
    """Add what one share and one unit of money of the first session have become at each session."""
    close, dividend = pl.col("close"), pl.col("dividend")
    step = close / (close + dividend) / pl.col("split_factor")
    return bars.with_columns(
        price_growth=step.cum_prod(), share_growth=pl.col("split_factor").cum_prod()
    )


def _has(dates: list[date], day: date) -> bool:
    at = bisect_left(dates, day)
    return at < len(dates) and dates[at] == day


def _exact(value: float) -> Decimal:
    """The decimal that the file's text said, through the shortest form of the float."""
    return Decimal(repr(value))


def _action(ticker: str, row: Mapping[str, Any]) -> CorporateAction | None:
    if row["split_factor"] == 1 and row["dividend"] == 0:
        return None
    return CorporateAction(
        ticker=ticker,
        session=row["date"],
        split_ratio=_exact(row["split_factor"]),
        dividend_per_share=_exact(row["dividend"]),
    )


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


def _bundled_layout() -> _Layout:
    path = find_bundled()
    return _Layout(
        label=_BUNDLED_LABEL,
        currency=DEFAULT_CURRENCY,
        exchange=DEFAULT_EXCHANGE,
        prices=dict.fromkeys(_BUNDLED_LISTINGS, path),
        records={},
        bundled=path,
    )


def _scan(directory: Path) -> _Layout:
    if not directory.is_dir():
        raise BadReplayData(
            directory, None, "not a directory", "set DESKBUS_REPLAY_DIR to one, or unset it"
        )
    prices: dict[str, Path] = {}
    records: dict[str, Path] = {}
    for path in sorted(directory.iterdir()):
        if path.suffix not in SUFFIXES:
            continue
        name = path.name.removesuffix(path.suffix)
        found, key = (records, name) if name in _RECORDS else (prices, name.upper())
        if key in found:
            raise BadReplayData(
                path, None, f"{key} is also in {found[key].name}", "keep one of the two"
            )
        found[key] = path
    if not prices or len(prices) > TICKERS_MAX:
        raise BadReplayData(
            directory,
            None,
            f"{len(prices)} files of prices where 1 to {TICKERS_MAX} are allowed",
            "put one CSV or Parquet file a ticker into it",
        )
    settings = _settings(directory)
    return _Layout(
        label=SourceLabel(
            name=str(settings.get("name", directory.name)),
            description=str(settings.get("description", "")),
            synthetic=settings.get("synthetic", False) is True,
        ),
        currency=str(settings.get("currency", DEFAULT_CURRENCY)),
        exchange=str(settings.get("exchange", DEFAULT_EXCHANGE)),
        prices=prices,
        records=records,
    )


def _settings(directory: Path) -> Mapping[str, object]:
    path = directory / LABEL_FILE
    if not path.exists():
        return {}
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeError) as error:
        raise BadReplayData(path, None, str(error)[:120], "correct the TOML") from error
    allowed = {"name": str, "description": str, "synthetic": bool, "currency": str, "exchange": str}
    for key, value in settings.items():
        if not isinstance(value, allowed.get(key, ())):
            raise BadReplayData(
                path,
                None,
                f"{key[:40]} is unknown or of the wrong type",
                f"use {', '.join(allowed)}",
            )
    return settings
