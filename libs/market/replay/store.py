"""The files of one replay directory: found, labelled, read when needed, kept within bounds.

Nothing here is point-in-time: `libs.market.replay.market` cuts what the store holds at as_of.
"""

import asyncio
import hashlib
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import structlog

from contracts.types import LOT_MAX, spelled
from libs.files.finding import BadFile, FileFinding, bad
from libs.files.numbers import CURRENCIES
from libs.market.calendar import ExchangeCalendar, OutsideCalendar, exchange_calendar
from libs.market.errors import BadReplayData, ContentGone, NotInSource, UnknownTicker
from libs.market.listed_calendars import compute, known_calendar
from libs.market.replay.files import (
    BadRow,
    RowCheck,
    read_bundled,
    read_prices,
    read_records,
    read_rows,
)
from libs.market.replay.formats import OWN, PriceFormat
from libs.market.replay.layout import Layout, layout_of
from libs.market.replay.listings import BUNDLED_LISTINGS, known_last
from libs.market.replay.parsed import Days, Key, Outline, Parsed, ParsedFiles
from libs.market.replay.reported import Company, company_of, dated_by_filing, require_filings
from libs.market.source import SourceLabel, refuse_crypto
from libs.market.symbols import HUNDREDTHS, UnknownCurrency, venue_of
from libs.market.symbols import currency as currency_of

log = structlog.get_logger(__name__)

COMPANIES_CACHED_MAX = 512
"""Above the largest universe of a request (500)."""
RATE_MIN, RATE_MAX = 1e-6, 1e6
"""No pair of currencies is further apart; contracts keep ten places of a rate."""

BY_ROW = frozenset({"sectors", "fx"})
"""Records of which a bad row costs its ticker, or its pair of currencies, and not the file: every
account needs them."""

_TEXT, _NUMBER, _DAY = pl.String(), pl.Float64(), pl.Date()
RECORD_COLUMNS: dict[str, tuple[dict[str, pl.DataType], dict[str, pl.DataType]]] = {
    "sectors": (
        {"ticker": _TEXT, "sector": _TEXT},
        {
            **dict.fromkeys(("name", "exchange", "currency", "country", "issuer"), _TEXT),
            "lot": _NUMBER,
        },
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
        {"eps_estimate": _NUMBER, "eps_actual": _NUMBER, "currency": _TEXT},
    ),
    "filings": (
        {"ticker": _TEXT, "accession": _TEXT, "form": _TEXT, "filed": _DAY},
        {"period_end": _DAY, "items": _TEXT},
    ),
    "reported": (
        {
            "ticker": _TEXT,
            "accession": _TEXT,
            "concept": _TEXT,
            "period_end": _DAY,
            "quarters": _NUMBER,
            "unit": _TEXT,
            "value": _NUMBER,
        },
        {},
    ),
    "fx": ({"date": _DAY, "pair": _TEXT, "rate": _NUMBER}, {}),
}
"""The columns of each file of records: those it must have, and those it may have."""
_KNOWN_ON = pl.coalesce("known_on", pl.col("known_at").dt.date())
_CHECKS = {
    "sectors": (
        RowCheck(
            (pl.col("lot") % 1 != 0) | ~pl.col("lot").is_between(1, LOT_MAX),
            "no number of shares that are bought together",
            f"write a whole number from 1 to {LOT_MAX}, or leave it empty",
            "lot",
        ),
    ),
    "fundamentals": (
        RowCheck(
            pl.col("period_end") > _KNOWN_ON,
            "after the day on which it was known",
            "correct period_end or known_at",
            "period_end",
        ),
    ),
    "filings": (
        RowCheck(
            pl.struct("ticker", "accession").is_duplicated(),
            "the filing appears twice",
            "keep one row a ticker and accession number",
        ),
        RowCheck(
            pl.col("period_end") > pl.col("filed"),
            "it was filed before its period ended",
            "correct period_end or filed",
        ),
        RowCheck(
            pl.col("filed") > _KNOWN_ON,
            "the filing is known before it was filed",
            "write when it was accepted, or leave known_at empty",
        ),
    ),
    "reported": (
        RowCheck(
            ~pl.col("quarters").is_in([0.0, 1.0, 2.0, 3.0, 4.0]),
            "quarters must be 0, 1, 2, 3 or 4",
            "write 0 for a day's value, 4 for a fiscal year",
        ),
        RowCheck(
            ~pl.col("unit").str.contains("^([A-Z]{3}|shares|[A-Z]{3}/shares)$"),
            "unit must be a currency, a count of shares or a currency per share",
            "write USD, shares or USD/shares",
        ),
    ),
    "fx": (
        RowCheck(
            ~pl.col("pair").str.contains("^[A-Z]{6}$"),
            "pair is not a pair of currencies",
            "write EURUSD for what one euro is worth in dollars",
        ),
        RowCheck(
            ~pl.col("rate").is_between(RATE_MIN, RATE_MAX),
            f"rate is not between {RATE_MIN} and {RATE_MAX:,.0f}",
            "correct the row or leave it out",
        ),
        RowCheck(
            pl.col("date") > _KNOWN_ON,
            "the rate is known before its day",
            "write when the rate became known, not before date",
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of one version of a folder: its files, and the hash of each, by ticker or kind
    of records. `parsed` is shared with other versions."""

    layout: Layout
    hashes: Mapping[str, str]
    parsed: ParsedFiles


class ReplayStore:
    """The files of one replay directory, read when first needed and kept within bounds.

    `directory` None means the prices bundled with bokeh-sampledata. With `contents` it is one
    version of the directory, and reads nothing else: ContentGone where a file is no longer what it
    was. Raises BadReplayData for a directory that is none or holds no prices. A bad file raises
    BadReplayData whenever it is asked for, and costs nothing else. Safe to share between threads.
    """

    def __init__(self, directory: Path | None = None, contents: Contents | None = None) -> None:
        self._layout = layout_of(directory) if contents is None else contents.layout
        self._hashes: Mapping[str, str] = {} if contents is None else contents.hashes
        self._parsed = ParsedFiles() if contents is None else contents.parsed
        self._directory = directory
        self.label = SourceLabel(
            self._layout.name, self._layout.description, self._layout.synthetic
        )
        self.currency = self._layout.currency
        self.exchange = self._layout.exchange
        self.calendar: ExchangeCalendar = exchange_calendar(self.exchange)
        self._keys: dict[str, Key] = {}
        self._records: dict[str, pl.DataFrame] = {}
        self._faults: dict[str, FileFinding] = dict(self._layout.doubled)
        self._bad_rows: dict[str, Sequence[BadRow]] = {}
        self.dropped: dict[str, int] = {}
        """Rows that were left out because nobody knows since when they were known, by kind."""
        self._companies: dict[str, Company] = {}
        self._described: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
        self._lock = threading.Lock()

    @property
    def tickers(self) -> tuple[str, ...]:
        """Every ticker there is a file for, whenever it traded. Not point-in-time."""
        return tuple(sorted(self._layout.prices))

    def known_among(self, tickers: Collection[str]) -> tuple[str, ...]:
        """Those of `tickers` that there is a file for, sorted."""
        return tuple(sorted(set(tickers) & self._layout.prices.keys()))

    @property
    def price_files(self) -> Mapping[str, Path]:
        """The file of each ticker."""
        return self._layout.prices

    @property
    def record_files(self) -> Mapping[str, Path]:
        """The file of each kind of records."""
        return self._layout.records

    @property
    def strays(self) -> Sequence[FileFinding]:
        """Files of the directory that are ignored, though they look like data."""
        return self._layout.strays

    @property
    def faults(self) -> Mapping[str, FileFinding]:
        """The faults of files that were asked for, by ticker or kind of records; of one with bad
        rows that cost themselves, the first of them."""
        return {**{kind: _first_of(rows) for kind, rows in self._bad_rows.items()}, **self._faults}

    @property
    def unused(self) -> Mapping[str, FileFinding]:
        """The faults of those files of which nothing is used."""
        return dict(self._faults)

    def bad_rows(self, kind: str) -> Sequence[BadRow]:
        """The bad rows of records that were read."""
        return self._bad_rows.get(kind, ())

    def form(self, ticker: str) -> PriceFormat:
        """The form in which the prices of a ticker that was read are written."""
        key = self._keys.get(ticker)
        outline = None if key is None else self._parsed.outline(key)
        return OWN if outline is None else outline.form

    def exchange_of(self, ticker: str) -> str:
        """The exchange by whose calendar the prices of a ticker were read."""
        return self._keys[ticker][2]

    async def readable(self, tickers: Iterable[str]) -> Sequence[str]:
        """Those of the tickers whose file can be used, in their order; the others' faults are in
        `faults`."""
        usable = []
        for ticker in tickers:
            try:
                await self.dates(ticker)
            except BadReplayData:
                continue
            usable.append(ticker)
        return usable

    async def bars(self, ticker: str) -> pl.DataFrame:
        """All bars of a ticker with `price_growth` and `share_growth`; not point-in-time."""
        refuse_crypto(ticker)
        if ticker not in self._layout.prices:
            raise UnknownTicker(ticker, self.label.name)
        if ticker in self._faults:
            raise BadReplayData(self._faults[ticker])
        key = self._keys.get(ticker)
        bars = None if key is None else self._parsed.bars(key)
        if bars is not None:
            return bars
        calendar, currency = await self._place_of(ticker)
        key = self._keys[ticker] = self._key_of(ticker, calendar, currency)
        return await asyncio.to_thread(self._load_bars, ticker, key, calendar)

    def _key_of(self, ticker: str, calendar: ExchangeCalendar, currency: str) -> Key:
        """The content of a ticker's file with the calendars and the currency that it is read by."""
        content = self._hashes.get(ticker, str(self._layout.prices[ticker]))
        return (ticker, content, calendar.exchange, self.exchange, currency)

    async def _place_of(self, ticker: str) -> tuple[ExchangeCalendar, str]:
        """The calendar and currency of a ticker's own exchange, by its listing or suffix; those of
        the source where they are not known."""
        exchange, currency = self.exchange, self.currency
        if (venue := venue_of(ticker)) is not None:
            exchange = venue.exchange
            is_either = currency in HUNDREDTHS.get(ticker.rpartition(".")[2], ())
            currency = currency if is_either else venue.currency
        if "sectors" in self._layout.records:
            # Where the file cannot be read, whoever asks for listings hears why.
            with suppress(BadReplayData):
                rows = (await self.records("sectors", "sectors")).filter(ticker=ticker)
                self._require_listing(ticker, is_listed=not rows.is_empty())
                exchange, currency = (
                    named[-1] if len(named := rows[name].drop_nulls()) else before
                    for name, before in (("exchange", exchange), ("currency", currency))
                )
            if ticker in self._faults:
                raise BadReplayData(self._faults[ticker])
        if exchange == self.exchange:
            return self.calendar, currency
        await compute([exchange])
        return known_calendar(exchange) or self.calendar, currency

    def _require_listing(self, ticker: str, *, is_listed: bool) -> None:
        """Raise BadReplayData where a row of `sectors` cannot be read, and is of this ticker: where
        it trades, and in which currency, is unknown then. A row without a ticker may be that of any
        one that is not listed."""
        for row in self.bad_rows("sectors"):
            text = spelled(row.text("ticker"))
            if text == ticker or not (text or is_listed):
                self._faults[ticker] = row.finding
                raise BadReplayData(row.finding)

    async def dates(self, ticker: str) -> Sequence[date]:
        """The sessions that a ticker has bars for, ascending; not point-in-time."""
        return (await self._outline(ticker)).dates

    async def splits(self, ticker: str) -> Sequence[tuple[date, float]]:
        """The sessions that began with a split, ascending, each with the new shares for one old;
        not point-in-time."""
        return (await self._outline(ticker)).splits

    async def _outline(self, ticker: str) -> Outline:
        key = self._keys.get(ticker)
        outline = None if key is None else self._parsed.outline(key)
        while outline is None:
            await self.bars(ticker)
            outline = self._parsed.outline(self._keys[ticker])
        return outline

    async def records(self, kind: str, what: str) -> pl.DataFrame:
        """A file of records sorted by known_at, the undated dropped; NotInSource without it."""
        if kind not in self._layout.records:
            raise NotInSource(what, self.label.name, self._how_to_add(kind))
        if kind in self._faults:
            raise BadReplayData(self._faults[kind])
        records = self._records.get(kind)
        if records is not None:
            return records
        filings = await self.filings() if kind == "reported" else None
        return await asyncio.to_thread(self._load_records, kind, filings)

    def _how_to_add(self, kind: str) -> str:
        """The remedy where there is no file of these records: the folder to put it into. Of its
        path only the name, as models read this too."""
        if self._directory is None:
            return "use a source that has it, or your own folder: docs/own-data.md"
        folder = self._directory.resolve().name
        return f"use a source that has it, or put {kind}.csv into {folder}/"

    async def company(self, ticker: str) -> Company:
        """All filings of a ticker and what they state; not point-in-time."""
        stated = (
            await self.records("reported", "reported figures") if self.has("reported") else None
        )
        filings = await self.records("filings", "filings")
        if ticker not in self._companies:
            if len(self._companies) >= COMPANIES_CACHED_MAX:
                del self._companies[next(iter(self._companies))]
            self._companies[ticker] = company_of(ticker, filings, stated)
        return self._companies[ticker]

    async def filings(self) -> pl.DataFrame | None:
        """All filings; None where there is no file of them."""
        return await self.records("filings", "filings") if self.has("filings") else None

    def has(self, kind: str) -> bool:
        """True where there is a file of this kind of records."""
        return kind in self._layout.records

    async def descriptions(
        self, as_of: date, tickers: Iterable[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        """The listings of `tickers` as they were known at the close of as_of: name, sector,
        currency, ... Of those that the file does not name there is none; where it cannot be read
        there are none, and `unused` says why."""
        if self._layout.bundled is not None:
            return BUNDLED_LISTINGS
        if "sectors" not in self._layout.records:
            return {}
        if self._described is None:
            try:
                rows = await self.records("sectors", "sectors")
            except BadReplayData:
                return {}
            self._described = rows.rows_by_key("ticker", named=True)
        close = self.calendar.close(as_of)
        # Each ticker's rows stand in the order in which they became known.
        newest = ((name, known_last(self._described.get(name, ()), close)) for name in tickers)
        return {name: row for name, row in newest if row is not None}

    def _load_bars(self, ticker: str, key: Key, calendar: ExchangeCalendar) -> pl.DataFrame:
        if self._layout.bundled is not None:
            return self._load_bundled(ticker, self._layout.bundled)

        def read() -> Parsed:
            path = self._whole(ticker, self._layout.prices[ticker])
            with self._finding(ticker, path):
                prices = read_prices(path, calendar, self.calendar)
                _require_ticker(path, ticker, prices.tickers)
                _require_currency(path, key[-1], prices.signs)
            return _parsed(prices.frame, prices.form)

        return self._parsed.read(key, read)

    def _load_bundled(self, ticker: str, path: Path) -> pl.DataFrame:
        """Read the one file of the bundled prices, which has all of them."""

        def read() -> Parsed:
            for name, frame in read_bundled(path).items():
                self._keys[name] = self._key_of(name, self.calendar, self.currency)
                self._parsed.put(self._keys[name], _parsed(frame, OWN))
            return Parsed(pl.DataFrame(), Outline((), (), OWN))

        self._parsed.read((str(path),), read)
        bars = self._parsed.bars(self._keys[ticker])
        return bars if bars is not None else _parsed(read_bundled(path)[ticker], OWN).bars

    def _whole(self, name: str, path: Path) -> Path:
        """The copy of a version's file; the file of the folder where the copy is damaged or gone. A
        damaged copy is removed."""
        if self._directory is None or path.parent == self._directory or name not in self._hashes:
            return path
        if hash_of(path) == self._hashes[name]:
            return path
        log.warning("market.copy_damaged", name=name, file=path.name)
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return self._directory / path.name

    def _require_content(self, name: str, path: Path) -> None:
        """Raise ContentGone where a file has changed since its version was taken."""
        wanted = self._hashes.get(name)
        if wanted is not None and hash_of(path) != wanted:
            raise ContentGone(path.name)

    @contextmanager
    def _finding(self, name: str, path: Path) -> Iterator[None]:
        """Turn the fault of a file into BadReplayData, now and whenever the file is asked for.
        Raises ContentGone where the file that was read is not that of the version."""
        if name in self._faults:
            raise BadReplayData(self._faults[name])
        try:
            yield
        except (BadFile, BadReplayData) as error:
            self._require_content(name, path)
            self._faults[name] = error.finding
            log.warning("market.file_refused", name=name, why=error.message)
            raise BadReplayData(error.finding) from error
        self._require_content(name, path)

    def _load_records(self, kind: str, filings: pl.DataFrame | None = None) -> pl.DataFrame:
        with self._lock:
            if kind not in self._records:
                required, optional = RECORD_COLUMNS[kind]
                path = self._whole(kind, self._layout.records[kind])
                checks = _CHECKS.get(kind, ())
                with self._finding(kind, path):
                    if kind in BY_ROW:
                        read, bad_rows = read_rows(
                            path, required, optional, (*checks, *_within(self.calendar))
                        )
                        if bad_rows:
                            self._bad_rows[kind] = bad_rows
                            log.warning("market.rows_refused", name=kind, rows=len(bad_rows))
                    else:
                        read = read_records(path, required, optional, checks)
                    frame = self._dated(path, kind, read)
                dated = frame.filter(pl.col("known_at").is_not_null())
                # An undated record could be from any time, so nothing may rest on it. Sectors
                # describe a listing and hold from its first bar; a figure is known by its filing.
                usable = frame if kind in {"sectors", "reported"} else dated
                if usable.height < frame.height:
                    dropped = frame.height - usable.height
                    log.warning("market.undated_dropped", file=path.name, rows=dropped)
                    self.dropped[kind] = dropped
                ordered = usable.sort("known_at", nulls_last=False, maintain_order=True)
                if kind == "reported":
                    with self._finding(kind, path):
                        require_filings(path, ordered, filings)
                self._records[kind] = ordered
            return self._records[kind]

    def _dated(self, path: Path, kind: str, read: pl.DataFrame) -> pl.DataFrame:
        """The records with the times since when they were known. Raises BadFile for a date that
        the exchange's calendar does not have."""
        try:
            frame = self._date_by_sessions(read)
            return dated_by_filing(frame) if kind == "filings" else frame
        except (OutsideCalendar, OverflowError, ValueError) as error:
            remedy = "correct it; a sector that always held needs no known_at"
            what = f"a date that the calendar of {self.exchange} does not have ({error})"
            raise bad(path, None, what, remedy) from None

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


def _within(calendar: ExchangeCalendar) -> Sequence[RowCheck]:
    """That a day on which a row was known has a session of the calendar."""
    last = calendar.session_on_or_before(calendar.last)
    return (
        RowCheck(
            ~pl.col("known_on").is_between(calendar.first, last),
            f"a date that the calendar of {calendar.exchange} does not have",
            "correct it; a sector that always held needs no known_at",
            "known_at",
        ),
    )


def _first_of(rows: Sequence[BadRow]) -> FileFinding:
    first = rows[0].finding
    more = f" (and {len(rows) - 1} more bad rows)" if len(rows) > 1 else ""
    return replace(first, what=first.what + more)


def _require_ticker(path: Path, ticker: str, named: Collection[str]) -> None:
    """Raise BadFile where the file names other tickers inside than its own name does."""
    others = {spelled(name).removesuffix(".US") for name in named} - {ticker}
    if others:
        what = f"it holds prices of {', '.join(sorted(others))[:60]}"
        raise bad(path, 1, what, "name it after the ticker inside")


def _require_currency(path: Path, currency: str, signs: Collection[str]) -> None:
    """Raise BadFile where prices have the sign of another currency than they count in."""
    for sign in sorted(signs):
        try:
            is_own = currency_of(currency) in CURRENCIES[sign]
        except UnknownCurrency:
            return  # `hidden` says so
        if not is_own:
            what = f"its prices have the sign {sign}, and they count in {currency}"
            raise bad(path, None, what, "write its currency into sectors.csv or source.toml")


def hash_of(path: Path) -> str:
    """The SHA-256 of a file's content; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _parsed(frame: pl.DataFrame, form: PriceFormat) -> Parsed:
    dates = Days(frame["date"].to_list())
    return Parsed(with_growth(frame), Outline(dates, splits_in(frame), form))


def splits_in(bars: pl.DataFrame) -> Sequence[tuple[date, float]]:
    """The sessions of raw bars that began with a split, each with the new shares for one old."""
    return bars.filter(pl.col("split_factor") != 1).select("date", "split_factor").rows()


def with_growth(bars: pl.DataFrame) -> pl.DataFrame:
    """Add what one share and one unit of money of the first session have become at each session."""
    close, dividend = pl.col("close"), pl.col("dividend")
    step = close / (close + dividend) / pl.col("split_factor")
    return bars.with_columns(
        price_growth=step.cum_prod(), share_growth=pl.col("split_factor").cum_prod()
    )
