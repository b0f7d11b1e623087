"""Daily prices of a Lean data folder: a zip file a ticker, and its factor file, by itself or in a
dated zip file of all.

Prices are as traded, in ten-thousandths, without headings. A factor file has a row for each day
before a dividend or split: date, price factor, split factor and, in newer ones, that day's close
(QuantConnect/Lean, Data/equity/readme.md and Common/Data/Auxiliary/CorporateFactorRow.cs).
"""

import zipfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path

import polars as pl

from libs.files.bounds import FILE_BYTES_MAX
from libs.files.dates import dates
from libs.files.finding import bad, only_bad_files
from libs.files.numbers import numbers
from libs.files.table import FileTable, table_in
from libs.files.text import text_of
from libs.market.replay.files import PriceTable
from libs.market.replay.formats import BAR_COLUMNS, LEAN
from libs.market.replay.layout import ENTRIES_MAX

SCALE = 10_000
FACTOR_COLUMNS = ("date", "price_factor", "split_factor", "close")
FACTOR_FILES = "factor_files"
PACKED_FACTORS = "factor_files_*.zip"
DAILY = "daily"
NOISE = 1e-6
"""Below this a factor did not change."""
FRACTION_MAX = 1000
"""The largest denominator of a factor of splits."""


def daily_files(folder: Path) -> Sequence[Path]:
    """The zip files of daily prices in a Lean data folder; none where it is no such folder."""
    for pattern in ("*.zip", f"{DAILY}/*.zip", f"*/{DAILY}/*.zip", f"equity/*/{DAILY}/*.zip"):
        if paths := sorted(islice(folder.glob(pattern), ENTRIES_MAX)):
            return paths
    return ()


def open_lean(path: Path) -> tuple[PriceTable, Sequence[str]]:
    """The prices in a zip file of Lean, with the dividends and splits of its factor file; and what
    to know of them. Raises BadFile and what zip files raise."""
    ticker = path.stem.upper()
    table = table_in(path, _content(path), lambda _rows: (BAR_COLUMNS, 0))
    values = numbers(table, BAR_COLUMNS[1:])
    scaled = [
        (values[name] / (1 if name == "volume" else SCALE)).round(4) for name in BAR_COLUMNS[1:]
    ]
    table = replace(table, frame=pl.DataFrame([table.frame["date"], *scaled]))
    factors = _factors(path)
    if factors is None:
        note = f"no file {FACTOR_FILES}/{path.stem}.csv: no dividends and no splits are known"
        return PriceTable(table, LEAN, [ticker]), [note]
    return PriceTable(_with_actions(table, *factors), LEAN, [ticker]), ()


def _content(path: Path) -> bytes:
    """The one text in a zip file of prices. Raises BadFile."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if names != [f"{path.stem}.csv"]:
            what = f"not a zip file of Lean's daily prices ({len(names)} files in it)"
            raise bad(path, None, what, "unpack it, and import its content")
        return _unpacked(path, archive, names[0])


def _factors(path: Path) -> tuple[Path, bytes] | None:
    """The factor file of the prices in `path`, and its text: the ticker's own, or the one in the
    newest zip file of all; None where there is none. Raises BadFile."""
    folder, name = path.resolve().parents[1] / FACTOR_FILES, f"{path.stem}.csv"
    if (own := folder / name).is_file():
        return own, text_of(own)
    packed = max(islice(folder.glob(PACKED_FACTORS), ENTRIES_MAX), default=None)
    if packed is None:
        return None
    with only_bad_files(packed), zipfile.ZipFile(packed) as archive:
        is_there = name in archive.namelist()
        return (packed, _unpacked(packed, archive, name)) if is_there else None


def _unpacked(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    """A text in a zip file, within the bound of a file. Raises BadFile."""
    with archive.open(name) as file:
        content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise bad(path, None, f"it unpacks to more than {FILE_BYTES_MAX // 1024**2} MB", "split it")
    return content.replace(b"\r\n", b"\n")


def _with_actions(table: FileTable, path: Path, factors: bytes) -> FileTable:
    days = dates(table, "date").to_list()
    closes = table.frame["close"].to_list()
    dividend, split = [0.0] * len(days), [1.0] * len(days)
    for day, paid, ratio in _actions(path, factors, days, closes):
        at = bisect_right(days, day)  # the session after the row's day
        if 0 < at < len(days):
            dividend[at], split[at] = paid, ratio
    frame = table.frame.with_columns(
        dividend=pl.Series(dividend, dtype=pl.Float64),
        split_factor=pl.Series(split, dtype=pl.Float64),
    )
    return replace(table, frame=frame)


def _actions(
    path: Path, text: bytes, days: Sequence[date], closes: Sequence[float]
) -> Iterator[tuple[date, float, float]]:
    """The day before each dividend or split, the cash of one of the new shares, and the new shares
    for one old."""
    width = 4 if text.partition(b"\n")[0].count(b",") > 2 else 3
    table = table_in(path, text, lambda _rows: (FACTOR_COLUMNS[:width], 0))
    values = numbers(table, FACTOR_COLUMNS[1:width])
    rows = [*zip(dates(table, "date").to_list(), *values.values(), strict=True)]
    for (day, price, split, *stated), (_, later_price, later_split, *_) in pairwise(rows):
        if None in {day, price, split, later_price, later_split} or min(split, later_price) <= 0:
            raise bad(path, None, "a row without a date or factor", "download it again")
        ratio = round(float(_exact(later_split) / _exact(split)), 6)
        step = price / later_price
        at = bisect_left(days, day)
        close = stated[0] if stated and stated[0] else closes[min(at, len(closes) - 1)]
        paid = round(close * (1 - step) / ratio, 4) if abs(1 - step) > NOISE else 0.0
        yield day, max(paid, 0.0), ratio


def _exact(factor: float) -> Fraction:
    """The small fraction that a factor was before it was cut to some digits, 1/7 of 0.142857; the
    factor itself where none has these digits."""
    written = Decimal(repr(factor))
    small = Fraction(written).limit_denominator(FRACTION_MAX)
    digit = Fraction(Decimal(1).scaleb(int(written.as_tuple().exponent)))
    return small if small and abs(small - Fraction(written)) <= digit else Fraction(written)
