"""Files of prices that people have, each as the prices of one or several tickers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from contracts.types import spelled
from libs.files.bounds import FILE_BYTES_MAX
from libs.files.finding import bad, is_parquet, only_bad_files
from libs.files.text import text_of
from libs.market.calendar import ExchangeCalendar
from libs.market.imports.lean import daily_files, open_lean
from libs.market.replay.files import FilePrices, PriceTable, open_prices, prices_in
from libs.market.replay.formats import (
    BAR_COLUMNS,
    FORMATS,
    LEAN,
    OWN,
    PriceFormat,
    by_adjusted_close,
    mapped,
)
from libs.market.replay.layout import RECORDS, entries
from libs.market.symbols import can_be_ticker, no_share, venue_of

SUFFIXES = frozenset({".csv", ".txt", ".tsv", ".parquet", ".gz"})
"""Of the files of a folder that are looked at."""
STOOQ = {".US": "", ".UK": ".L", ".JP": ".T"}
"""Stooq's suffixes, and Yahoo's, which the desk uses."""
_AGAIN = re.compile(r"[ _]?\(\d+\)$")
"""What a browser adds to the name of a second download."""
_NAMES = (
    re.compile(r"daily(?:_adjusted)?_(?P<ticker>[A-Za-z0-9.-]{1,12})"),
    re.compile(r"(?P<ticker>[A-Za-z0-9-]{1,8}[._](?:us|uk|jp))(?:_d)?"),
    re.compile(
        r"(?P<ticker>[A-Z0-9.-]{1,10})[ _-](?:\d{4}.*|daily|[Hh]istorical.*|prices?|history)"
    ),
    re.compile(r"(?P<ticker>[A-Z0-9]{1,6}(?:[.-][A-Z0-9]{1,3})?)"),
)
"""Names of files that say which ticker they hold."""
BY_NAME = "the file's name"
"""Where the ticker of such a file comes from."""
FOOTER_LINES_MAX = 20
_PROSE = re.compile(r"(?=(?:[^,;\t]*[A-Za-z]{3,}){3})[^;\t]*[A-Za-z.!)]")
"""A line of words below a table: three words before any mark between columns."""


@dataclass(frozen=True, slots=True)
class ImportForm:
    """How files are read: the vendor whose form they have, the headings of the desk's columns, and
    whether months come first in dates, and whether a comma is the decimal mark; each None where the
    file says it."""

    vendor: str | None = None
    columns: Mapping[str, str] | None = None
    month_first: bool | None = None
    decimal_comma: bool | None = None


@dataclass(frozen=True, slots=True)
class ImportedSeries:
    """The prices of one ticker in a file. `named` is the ticker as the file writes it, `ticker` as
    the desk does, "" where nothing says it; `source` is where the ticker comes from."""

    path: Path
    opened: PriceTable
    named: str
    ticker: str
    source: str
    notes: Sequence[str] = ()

    def prices(self, calendar: ExchangeCalendar | None) -> FilePrices:
        """The checked prices. Raises BadFile."""
        with only_bad_files(self.path):
            return prices_in(self.opened, self.named, calendar)


def files_in(path: Path) -> Sequence[Path]:
    """The files of prices at a path: itself, or those of the folder that it is. Raises BadFile."""
    if not path.is_dir():
        return [path]
    if lean := daily_files(path):
        return lean
    paths = [
        entry
        for entry in entries(path)
        if entry.suffix.lower() in SUFFIXES
        and Path(entry.name.lower().removesuffix(".gz")).stem not in RECORDS
        and not entry.name.startswith(".")
    ]
    if not paths:
        raise bad(path, None, "a folder without files of prices", "name the files")
    return paths


def series_in(path: Path, wanted: ImportForm) -> Sequence[ImportedSeries]:
    """The prices of each ticker in a file. Raises BadFile, and nothing else."""
    with only_bad_files(path):
        if path.suffix.lower() == ".zip":
            opened, notes = open_lean(path)
            ticker = spelled(opened.tickers[0])
            return [ImportedSeries(path, opened, "", ticker, BY_NAME, notes)]
        if wanted.vendor == LEAN.vendor:
            what = "not a zip file, as Lean's daily prices are"
            raise bad(path, None, what, "name its data folder, or leave --from out")
        opened, notes = _opened(path, wanted)
        opened = replace(opened, may_be_empty=True)
    if not opened.tickers:
        ticker = ticker_in_name(path)
        return [ImportedSeries(path, opened, "", ticker, BY_NAME if ticker else "", notes)]
    return [
        ImportedSeries(path, opened, name, _spelled(name, opened.form), "the file", notes)
        for name in opened.tickers
    ]


def _opened(path: Path, wanted: ImportForm) -> tuple[PriceTable, Sequence[str]]:
    """The cells of a file, and what of it is not read."""

    def choose(names: Sequence[str], form: PriceFormat) -> PriceFormat:
        if wanted.columns:
            form = mapped(names, wanted.columns)
        if wanted.vendor is not None:
            form = _of_vendor(path, names, form, wanted.vendor)
        if wanted.month_first is not None:
            form = replace(form, month_first=wanted.month_first)
        return form

    text, notes = None, []
    if not is_parquet(path):
        text = text_of(path, FILE_BYTES_MAX, is_windows_allowed=True)
        if not text.strip():
            raise bad(path, None, "no rows", "fill in the file or remove it")
        text, footer = _without_footer(text)
        notes = [f"not read: {line[:80]!r}" for line in footer]
    opened = open_prices(path, text, choose)
    table = replace(opened.table, decimal_comma=wanted.decimal_comma)
    return replace(opened, table=table), notes


def _without_footer(text: bytes) -> tuple[bytes, Sequence[str]]:
    """The text without the lines of prose at its end, and these."""
    footer: list[str] = []
    while len(footer) < FOOTER_LINES_MAX:
        rest, _, last = text.rstrip().rpartition(b"\n")
        line = last.strip(b"\"',;\t ").decode()
        if not rest or not _PROSE.fullmatch(line):
            break
        footer.append(line)
        text = rest
    return text, footer[::-1]


def _of_vendor(path: Path, names: Sequence[str], form: PriceFormat, vendor: str) -> PriceFormat:
    """The form of the vendor that was named. Its meaning counts also for the desk's own headings,
    which several vendors write. Raises BadFile for the headings of another one."""
    if vendor in {form.vendor, OWN.vendor}:
        return form
    forms = [known for known in FORMATS if known.vendor == vendor]
    for known in forms:
        needed = {name for name, column in known.headings.items() if column in BAR_COLUMNS}
        if needed <= {*names} <= known.headings.keys() and form.vendor:
            return by_adjusted_close(known, names)
    if form.vendor not in {"", OWN.vendor}:
        what = f"its headings are from {form.name}, not from {forms[0].name}"
        raise bad(path, 1, what, "leave --from out, or name the right one")
    return replace(
        form,
        name=forms[0].name,
        vendor=vendor,
        adjusted=forms[0].adjusted,
        month_first=forms[0].month_first,
        is_tried=False,
    )


def ticker_in_name(path: Path) -> str:
    """The ticker that a file's name says; "" where it says none for sure."""
    stem = path.name
    while (suffix := Path(stem).suffix.lower()) in SUFFIXES:
        stem = stem[: -len(suffix)]
    stem = _AGAIN.sub("", stem)
    for form in _NAMES:
        if match := form.fullmatch(stem):
            ticker = _of_stooq(match["ticker"].upper().replace("_", "."))
            return ticker if is_ticker(ticker) else ""
    ticker = spelled(stem)
    return ticker if venue_of(ticker) is not None and is_ticker(ticker) else ""


def _spelled(name: str, form: PriceFormat) -> str:
    return _of_stooq(name.upper()) if form.vendor == "stooq" else spelled(name)


def _of_stooq(name: str) -> str:
    for suffix, ours in STOOQ.items():
        if name.endswith(suffix):
            return spelled(name.removesuffix(suffix) + ours)
    return spelled(name)


def is_ticker(text: str) -> bool:
    """Whether a text can be a ticker of the desk's."""
    return can_be_ticker(text) and not no_share(text)
