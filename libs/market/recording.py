"""A live source saved as a replay directory: what it answers now, the replay source answers later.

Each run adds what became known since the last one. Rows of one period that did not change keep the
time they were first seen; one that did is a new row with its own `known_at`. Files appear whole or
not at all, and a run that was cut off goes on where it stopped.
"""

import asyncio
import csv
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from libs.facts.cells import as_text
from libs.files.text import text_of
from libs.market.asking.market import LiveMarket
from libs.market.edgar.feed import EdgarFeed
from libs.market.errors import MarketError, RateLimited, SourceUnavailable
from libs.market.replay.files import ACTION_COLUMNS, BAR_COLUMNS, read_bars
from libs.market.replay.layout import DEFAULT_CURRENCY, LABEL_FILE
from libs.market.replay.store import RECORD_COLUMNS
from libs.runtime.whole_file import write_whole

BATCH = 8
"""Tickers asked at once and then written: what a run that is cut off loses at most."""
WAITS_MAX = 3
"""Pauses that a source may ask for before the rest is left for another run."""
YEARS_DEFAULT = 4
"""Whole years of prices before this one: enough for every indicator of the first one replayed."""
STATE_FILE = "recording.json"

# A row's identity among the others of its file; `known_at` tells its versions apart.
_KEYS = {
    "sectors": ("ticker",),
    "fundamentals": ("ticker", "period_end"),
    "earnings": ("ticker", "period_end"),
    "news": ("ticker", "url", "title"),
    "filings": ("ticker", "accession"),
    # With its value: a filing may state two, and neither replaces the other.
    "reported": (
        "ticker",
        "accession",
        "concept",
        "period_end",
        "quarters",
        "unit",
        "value",
    ),
    "fx": ("pair", "date"),
}
_COLUMNS = {
    # A figure is known when its filing is.
    kind: (*required, *optional, *(("known_at",) if kind != "reported" else ()))
    for kind, (required, optional) in RECORD_COLUMNS.items()
}
_ONCE = {"filings"}
"""What happened once: a later row of the same key is none, whatever it says."""
_LABEL = """\
name = "{name}-recorded"
description = "recorded from {sources} by deskbus market record; for your own use only"
currency = "USD"
exchange = "XNYS"
"""

Cell = str | float | date | datetime | None
Record = Mapping[str, Cell]


@dataclass(frozen=True)
class RecordedSource:
    """The source of a recording: its `name` of one word, and `said` to people.

    With `keeps_first` bars that are recorded stay as they were first answered, since the source
    corrects them later; splits and dividends are still added to them.
    """

    name: str
    said: str
    keeps_first: bool = False


FROM_YAHOO = RecordedSource("yahoo", "Yahoo Finance")
FROM_ALPACA = RecordedSource("alpaca", "Alpaca's market data", keeps_first=True)


@dataclass
class TickerRecording:
    """The recording of one ticker: its bars, or why there are none, and what is `absent`."""

    ticker: str
    sessions: int = 0
    first: date | None = None
    last: date | None = None
    rows: dict[str, int] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    failure: str | None = None
    is_final: bool = True
    """False where another run may get it: there was no answer, for the ticker or a page of it."""

    @property
    def is_limited(self) -> bool:
        """True where something of it is missing because of too many requests."""
        return RateLimited.code in {self.failure, *self.absent.values()}

    def without(self, what: str, error: MarketError) -> None:
        """Note that `what` is not there, and whether another run may get it."""
        self.absent[what] = error.code
        self.is_final = self.is_final and not isinstance(error, SourceUnavailable)


@dataclass
class _Page:
    """The answers about one ticker, before they are written."""

    recorded: TickerRecording
    bars: pl.DataFrame | None = None
    records: dict[str, list[Record]] = field(default_factory=dict)


class Recorder:
    """Saves what `market` answers for its newest session into `directory`.

    `headlines` come from another source where one is given. With `edgar` the companies' filings
    are saved too, and with `figures_of_edgar` the figures that they
    reported, in the place of the market's. `begin` hears how many tickers there are to record,
    `tell` of each, `pause` of seconds to wait.
    """

    def __init__(
        self,
        market: LiveMarket[Any],
        directory: Path,
        *,
        source: RecordedSource = FROM_YAHOO,
        headlines: LiveMarket[Any] | None = None,
        edgar: EdgarFeed | None = None,
        figures_of_edgar: bool = False,
        tell: Callable[[TickerRecording], None],
        pause: Callable[[float], object] = lambda _: None,
        begin: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._source = source
        self._market = market
        self._headlines = headlines or market
        self._directory = directory
        self._edgar = edgar
        self._figures_of_edgar = figures_of_edgar and edgar is not None
        self._tell = tell
        self._pause = pause
        self._begin = begin

    async def run(
        self, tickers: Sequence[str] | None, since: date | None
    ) -> Sequence[TickerRecording]:
        """Record prices from `since` on, and all else there is, of `tickers` or the universe.

        Returns what came of each ticker, and of the calendar and the rates where another run may
        get what is missing. A page that fails costs no other page. Raises MarketError where not
        even the universe is known.
        """
        as_of = self._market.settled()
        since = since or date(as_of.year - YEARS_DEFAULT, 1, 1)
        names = tickers or [listing.ticker for listing in await self._market.universe(as_of)]
        self._directory.mkdir(parents=True, exist_ok=True)
        label = self._directory / LABEL_FILE
        if not label.exists():
            said = self._source.said
            sources = said if self._edgar is None else f"{said} and the SEC's EDGAR"
            _write(label, _LABEL.format(name=self._source.name, sources=sources))
        state = _State.load(self._directory / STATE_FILE, as_of, since)
        for name in sorted(set(names) & set(state.done)):
            self._tell(TickerRecording(name, absent={"all": "recorded already"}))
        left = sorted(set(names) - set(state.done))
        self._begin(len(left))
        results: list[TickerRecording] = []
        for start in range(0, len(left), BATCH):
            pages = await self._batch(left[start : start + BATCH], as_of, since)
            await asyncio.to_thread(self._keep, pages)
            state.add(page.recorded.ticker for page in pages if page.recorded.is_final)
            for page in pages:
                self._tell(page.recorded)
                results.append(page.recorded)
        rest = [await self._calendar(as_of, set(names)), *await self._rates(as_of, since)]
        return [*results, *(result for result in rest if not result.is_final)]

    async def _batch(self, names: Sequence[str], as_of: date, since: date) -> list[_Page]:
        pages = await asyncio.gather(*(self._page(name, as_of, since) for name in names))
        for _ in range(WAITS_MAX):
            again = [n for n, page in enumerate(pages) if page.recorded.is_limited]
            wait_s = self._market.resting_s()
            if not again or wait_s is None:
                break
            self._pause(wait_s)
            await asyncio.sleep(wait_s)
            for n in again:
                pages[n] = await self._page(names[n], as_of, since)
        return list(pages)

    async def _page(self, ticker: str, as_of: date, since: date) -> _Page:
        page = _Page(TickerRecording(ticker))
        recorded = page.recorded
        try:
            frame = await self._market.raw_bars(ticker, as_of, (as_of - since).days)
            page.bars = frame.filter(pl.col("date") >= since).select(*BAR_COLUMNS, *ACTION_COLUMNS)
            dates = page.bars["date"]
            recorded.sessions, recorded.first, recorded.last = len(dates), dates[0], dates[-1]
        except SourceUnavailable as error:
            recorded.failure, recorded.is_final = error.code, False
        except MarketError as error:
            recorded.failure = error.code
        else:
            await self._further(page, ticker, as_of)
        recorded.rows = {kind: len(rows) for kind, rows in page.records.items()}
        return page

    async def _further(self, page: _Page, ticker: str, as_of: date) -> None:
        """Record what there is besides prices; a page that fails costs no other."""

        async def sectors() -> Iterable[Record]:
            known_at = self._market.calendar.close(as_of)
            listings = await self._market.universe(as_of, (ticker,))
            numbered = await self._edgar.issuer(ticker) if self._edgar and listings else ""
            return [
                asdict(listing) | {"issuer": listing.issuer or numbered, "known_at": known_at}
                for listing in listings
            ]

        async def news() -> Iterable[Record]:
            return [asdict(item) for item in await self._headlines.headlines(ticker, as_of)]

        async def fundamentals() -> Iterable[Record]:
            latest = await self._market.fundamentals(ticker, as_of)
            return [] if latest is None else [asdict(latest)]

        async def earnings() -> Iterable[Record]:
            return [asdict(report) for report in await self._market.earnings(as_of, (ticker,))]

        async def filings() -> Iterable[Record]:
            items = [] if self._edgar is None else await self._edgar.filings(ticker, as_of)
            return [asdict(filing) | {"items": " ".join(filing.items)} for filing in items]

        async def reported() -> Iterable[Record]:
            # A figure is known when its filing is, so there is none without.
            if self._edgar is None or not page.records.get("filings"):
                return []
            return [asdict(fact) for fact in await self._edgar.reported(ticker, as_of)]

        asks = [sectors, news, earnings]
        if self._edgar is not None:
            asks.append(filings)
        asks.append(reported if self._figures_of_edgar else fundamentals)
        for ask in asks:
            try:
                page.records[ask.__name__] = list(await ask())
            except MarketError as error:
                page.recorded.without(ask.__name__, error)

    async def _calendar(self, as_of: date, names: Collection[str]) -> TickerRecording:
        """The reports to come of companies that have no file of their own."""
        recorded = TickerRecording("(calendar)")
        try:
            due = await self._market.earnings(as_of, None)
        except MarketError as error:
            recorded.without("earnings", error)
            self._tell(recorded)
            return recorded
        rows = [asdict(report) for report in due if report.ticker not in names]
        await asyncio.to_thread(self._append, "earnings", rows)
        return recorded

    async def _rates(self, as_of: date, since: date) -> Sequence[TickerRecording]:
        """The rates of the listings' currencies into the recording's own."""
        results = []
        for currency in await asyncio.to_thread(self._currencies):
            pair = f"{currency}{DEFAULT_CURRENCY}"
            at = self._market.calendar.close(as_of)
            recorded = TickerRecording(f"({pair})")
            results.append(recorded)
            try:
                quotes = await self._market.rates(currency, DEFAULT_CURRENCY, at, since)
            except MarketError as error:
                recorded.without("fx", error)
                self._tell(recorded)
                continue
            rows: list[Record] = [
                {"date": quote.on, "pair": pair, "rate": quote.rate, "known_at": quote.known_at}
                for quote in quotes
                if quote.on >= since
            ]
            await asyncio.to_thread(self._append, "fx", rows)
            recorded.rows = {"fx": len(rows)}
            self._tell(recorded)
        return results

    def _currencies(self) -> Sequence[str]:
        currencies = {row["currency"] for row in _read(self._directory / "sectors.csv")}
        return sorted(currencies - {DEFAULT_CURRENCY, ""})

    def _keep(self, pages: Sequence[_Page]) -> None:
        for page in pages:
            if page.bars is not None:
                self._keep_bars(page.recorded.ticker, page.bars)
        for kind in _KEYS:
            tables = [page.records[kind] for page in pages if kind in page.records]
            if tables:
                self._append(kind, [row for rows in tables for row in rows])

    def _keep_bars(self, ticker: str, bars: pl.DataFrame) -> None:
        path = self._directory / f"{ticker}.csv"
        if path.exists():
            stored = read_bars(path)
            if self._source.keeps_first:
                bars = bars.update(stored.select("date", *BAR_COLUMNS[1:]), on="date")
            bars = pl.concat([stored.filter(pl.col("date") < bars["date"][0]), bars])
        _write(path, bars.write_csv())

    def _append(self, kind: str, rows: Sequence[Record]) -> None:
        """Add those rows that say something new about their key."""
        path = self._directory / f"{kind}.csv"
        stored = _read(path)
        newest = {_key(kind, row): row for row in stored}
        for row in sorted(rows, key=lambda record: str(record.get("known_at"))):
            cells = {name: _text(row.get(name)) for name in _COLUMNS[kind]}
            known = newest.get(_key(kind, cells))
            if known is None or (kind not in _ONCE and _differs(known, cells)):
                newest[_key(kind, cells)] = cells
                stored.append(cells)
        stored.sort(key=lambda row: (row.get("known_at", ""), _key(kind, row)))
        text = io.StringIO()
        writer = csv.DictWriter(text, _COLUMNS[kind], lineterminator="\n")
        writer.writeheader()
        writer.writerows(stored)
        _write(path, text.getvalue())


@dataclass
class _State:
    """The tickers that a run has recorded, for the next one of the same session and first day."""

    path: Path
    as_of: date
    since: date
    done: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path, as_of: date, since: date) -> "_State":
        state = cls(path, as_of, since)
        if path.exists():
            data = orjson.loads(path.read_bytes())
            if (data["as_of"], data["since"]) == (as_of.isoformat(), since.isoformat()):
                state.done = data["done"]
        return state

    def add(self, tickers: Iterable[str]) -> None:
        self.done = sorted({*self.done, *tickers})
        data = {"as_of": self.as_of, "since": self.since, "done": self.done}
        _write(self.path, orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode())


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    return list(csv.DictReader(io.StringIO(text_of(path).decode(), newline="")))


def _key(kind: str, row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row.get(name, "") for name in _KEYS[kind])


def _differs(known: Mapping[str, str], cells: Mapping[str, str]) -> bool:
    return any(known.get(name, "") != cells[name] for name in cells if name != "known_at")


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, str):
        return as_text(cell)
    return repr(cell) if isinstance(cell, float) else str(cell)
