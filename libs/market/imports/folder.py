"""A folder of market data that imported prices are written into: what would change, and the change.

A row that is there is never replaced unasked: `Change.differing` names those that an import would
replace. Files appear whole or not at all.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import polars as pl

from contracts.types import spelled
from libs.files.finding import BadFile, FileFinding, bad, only_bad_files
from libs.files.text import text_of
from libs.market.calendar import DEFAULT_EXCHANGE, TABLE_LAST
from libs.market.errors import BadReplayData
from libs.market.listed_calendars import known_calendar
from libs.market.replay.files import (
    ACTION_COLUMNS,
    BAR_COLUMNS,
    PRICE_COLUMNS,
    FilePrices,
    read_prices,
)
from libs.market.replay.formats import ADJUSTED
from libs.market.replay.layout import (
    DEFAULT_CURRENCY,
    LABEL_FILE,
    RECORDS,
    SUFFIXES,
    entries,
    label_in,
    layout_of,
)
from libs.market.symbols import HUNDREDTHS, venue_of
from libs.runtime.whole_file import write_whole

SECTORS_FILE = "sectors.csv"
SECTOR_UNKNOWN = "unknown"
_SECTOR_COLUMNS = ("ticker", "sector", "exchange", "currency")
SAME = 1e-9
"""Two values that are no further apart, as a share of them, are one."""
NOISE = 1e-6
"""Adjusted prices of two downloads that are no further apart, as a share, have one base."""
DIFFERING_NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class TradingPlace:
    """The exchange (ISO 10383) and the currency of a ticker's prices; `source` is what says so. The
    currency is "" where two are possible."""

    exchange: str
    currency: str
    source: str = ""


@dataclass(frozen=True)
class Folder:
    """A folder as it is before an import; `path` need not exist."""

    path: Path
    exchange: str = DEFAULT_EXCHANGE
    currency: str = DEFAULT_CURRENCY
    files: Mapping[str, Path] = field(default_factory=dict)
    faults: Mapping[str, FileFinding] = field(default_factory=dict)
    listed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    is_labelled: bool = False
    """Whether it says itself which exchange and currency count where nothing else does."""

    def place_of(self, ticker: str) -> TradingPlace:
        """Where the desk takes a ticker of this folder to trade, and in which currency."""
        row, venue = self.listed.get(ticker, {}), venue_of(ticker)
        own = f"{LABEL_FILE} of {self.path.name}" if self.is_labelled else "assumed"
        exchange, currency, source = self.exchange, self.currency, own
        if venue is not None:
            exchange, currency, source = venue.exchange, venue.currency, "the suffix"
            suffix = ticker.rpartition(".")[2]
            if suffix in HUNDREDTHS:
                is_stated = self.is_labelled and self.currency in HUNDREDTHS[suffix]
                currency = self.currency if is_stated else ""
        if row.get("exchange") or row.get("currency"):
            source = SECTORS_FILE
        return TradingPlace(
            row.get("exchange") or exchange, row.get("currency") or currency, source
        )


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of an import on one ticker's file: the frame that it would hold, the rows that
    come to it, and those that are there with other values, each as a sentence."""

    path: Path
    frame: pl.DataFrame
    adjusted: str
    added: int
    differing: Sequence[str] = ()
    is_new: bool = False

    @property
    def is_nothing(self) -> bool:
        """True where the file holds all of it already."""
        return not (self.added or self.differing)


def open_folder(path: Path) -> Folder:
    """The folder at a path, or an empty one. Raises BadReplayData and BadFile where it is none, or
    a file that says where its shares trade cannot be read."""
    if not path.exists():
        return Folder(path)
    if not path.is_dir():
        raise BadReplayData(FileFinding(str(path), "not a folder", "name another with --out"))
    label = label_in(path)
    exchange = str(label.get("exchange", DEFAULT_EXCHANGE))
    currency = str(label.get("currency", DEFAULT_CURRENCY))
    tables = [entry for entry in entries(path) if entry.suffix.lower() in SUFFIXES]
    if all(entry.stem.lower() in RECORDS for entry in tables):
        sectors = next((entry for entry in tables if entry.stem.lower() == "sectors"), None)
        return Folder(path, exchange, currency, {}, {}, _listed(sectors), bool(label))
    layout = layout_of(path)
    listed = _listed(layout.records.get("sectors"))
    return Folder(path, exchange, currency, layout.prices, layout.doubled, listed, True)


def _listed(sectors: Path | None) -> Mapping[str, Mapping[str, str]]:
    rows = () if sectors is None else _rows(sectors)
    return {spelled(row.get("ticker", "")): row for row in rows}


def change_of(folder: Folder, ticker: str, prices: FilePrices) -> Change:
    """The change that writing these prices would be. Raises BadFile where they cannot be joined
    with those that are there."""
    frame, adjusted = prices.frame.select(*BAR_COLUMNS, *ACTION_COLUMNS), prices.form.adjusted
    path = folder.files.get(ticker)
    if ticker in folder.faults:
        raise BadFile(folder.faults[ticker])
    if path is None:
        return Change(folder.path / f"{ticker}.csv", frame, adjusted, frame.height, is_new=True)
    if path.suffix.lower() != ".csv":
        what = f"{ticker} is in it, and an import writes CSV"
        raise bad(path, None, what, "move it away, or import into another folder (--out)")
    older = read_prices(path)
    if older.form.adjusted != adjusted:
        had, has = (
            f"adjusted for {text}" if text else "as traded"
            for text in (older.form.adjusted, adjusted)
        )
        what = f"its prices are {had}, those of the import {has}"
        raise bad(path, None, what, "import into another folder (--out), or move it away")
    both = older.frame.join(frame, on="date", suffix="_new").sort("date")
    if adjusted:
        _require_same_base(path, older.frame, frame, both)
    values = [*BAR_COLUMNS[1:], *ACTION_COLUMNS]
    differs = {
        name: ((pl.col(name) - pl.col(f"{name}_new")).abs() > SAME * pl.col(name).abs())
        for name in values
    }
    odd = both.filter(pl.any_horizontal(differs.values()))
    whole = pl.concat(
        [older.frame.join(frame, on="date", how="anti").select(frame.columns), frame]
    ).sort("date")
    words = []
    for row in odd.iter_rows(named=True):
        first = next(n for n in values if abs(row[n] - row[f"{n}_new"]) > SAME * abs(row[n]))
        words.append(f"{row['date']}: {first} {row[first]:g} becomes {row[f'{first}_new']:g}")
    return Change(path, whole, adjusted, whole.height - older.frame.height, words)


def _require_same_base(
    path: Path, older: pl.DataFrame, newer: pl.DataFrame, both: pl.DataFrame
) -> None:
    """Raise BadFile where two downloads of adjusted prices cannot be joined. A later split or
    dividend changes all rows before it, so the first row of both says whether the earlier rows have
    one base. Prices that take the place of all older rows need none."""
    if older.join(newer, on="date", how="anti").is_empty():
        return
    remedy = "download the whole history, and import it into another folder (--out)"
    if both.is_empty():
        what = "adjusted prices without a day in common with the import: they may have two bases"
        raise bad(path, None, what, remedy)
    first = both.row(0, named=True)
    if any(abs(first[name] - first[f"{name}_new"]) > NOISE * first[name] for name in PRICE_COLUMNS):
        what = (
            f"its prices have another base than the import's: {first['date']} close "
            f"{first['close']:g}, and {first['close_new']:g}"
        )
        raise bad(path, None, what, remedy)


def labels_for(folder: Folder, places: Mapping[str, TradingPlace]) -> Mapping[Path, str]:
    """The files, and what is to stand in them, that say where these tickers trade: source.toml for
    a new folder, rows of sectors.csv for tickers that it does not describe. Raises BadFile where a
    row says something else."""
    files: dict[Path, str] = {}
    after = folder
    if not folder.is_labelled and places:
        main = _main_of(places)
        files[folder.path / LABEL_FILE] = (
            f'name = "{_plain(folder.path.resolve().name)}"\n'
            f'currency = "{main.currency}"\nexchange = "{main.exchange}"\n'
        )
        after = Folder(
            folder.path, main.exchange, main.currency, listed=folder.listed, is_labelled=True
        )
    rows = []
    for ticker, place in places.items():
        known = after.place_of(ticker)
        if (known.exchange, known.currency) == (place.exchange, place.currency):
            continue
        if ticker in folder.listed:
            what = f"it has {ticker} at {known.exchange} in {known.currency}"
            raise bad(Path(SECTORS_FILE), None, what, "correct it, or leave the options out")
        rows.append(
            {
                "ticker": ticker,
                "sector": SECTOR_UNKNOWN,
                "exchange": place.exchange,
                "currency": place.currency,
            }
        )
    if rows:
        files[folder.path / SECTORS_FILE] = _with_rows(folder, rows)
    return files


def write_prices(change: Change) -> None:
    """Write a ticker's file. Raises OSError."""
    frame = change.frame
    if change.adjusted:
        frame = frame.with_columns(pl.lit(change.adjusted).alias(ADJUSTED))
    write(change.path, frame.write_csv())


def write(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())


def _main_of(places: Mapping[str, TradingPlace]) -> TradingPlace:
    """The place that a folder is named after: the exchange that closes last, as a decision is of
    its close, and the currency of most of its tickers."""
    day = datetime(TABLE_LAST.year - 10, 6, 1).date()  # noqa: DTZ001 - a date only

    def closes(place: TradingPlace) -> tuple[float, int]:
        calendar = known_calendar(place.exchange)
        count = [other.exchange for other in places.values()].count(place.exchange)
        if calendar is None or not calendar.first <= day <= calendar.last:
            return (0.0, count)
        return (calendar.close(calendar.session_on_or_after(day)).timestamp() % 86_400, count)

    return max(places.values(), key=closes)


def _rows(path: Path) -> list[dict[str, str]]:
    """The rows of sectors.csv, as they stand. Raises BadFile."""
    with only_bad_files(path):
        if path.suffix.lower() != ".csv":
            frame = pl.read_parquet(path)
            return [
                {n: str(v or "") for n, v in row.items()} for row in frame.iter_rows(named=True)
            ]
        lines = io.StringIO(text_of(path).decode(), newline="")
        return [{n: v or "" for n, v in row.items() if n} for row in csv.DictReader(lines)]


def _with_rows(folder: Folder, rows: Sequence[Mapping[str, str]]) -> str:
    path = folder.path / SECTORS_FILE
    stored: list[dict[str, str]] = []
    if folder.listed:
        if not path.exists():
            raise bad(path, None, "not there as CSV", f"add {rows[0]['ticker']} to it yourself")
        stored = _rows(path)
    columns = dict.fromkeys((*(stored[0] if stored else ()), *_SECTOR_COLUMNS))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows([*stored, *rows])
    return text.getvalue()


def _plain(name: str) -> str:
    return "".join(char for char in name if char.isalnum() or char in "-_. ") or "data"
