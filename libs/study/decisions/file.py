"""A file of decisions that a person brought: CSV in any of its forms, or TradingAgents' log.

A row that cannot be used is named with its line, and then nothing is scored: what is left out would
change the answer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Final

from libs.files.bounds import FILE_BYTES_MAX
from libs.files.dates import NoDate, months_first, stamp_of
from libs.files.finding import BadFile, FileFinding, bad, is_parquet, only_bad_files
from libs.files.numbers import NoNumber, has_decimal_comma, number_of
from libs.files.table import FileTable, table_in
from libs.files.text import text_of
from libs.study.decisions import tradingagents
from libs.study.decisions.stated import (
    CELL_CHARS_MAX,
    ROWS_MAX,
    TICKERS_MAX,
    TIMES_MAX,
    DecisionForm,
    NoTicker,
    StatedDecision,
    StatedFile,
    ticker_of,
)

HEADINGS: Final[Mapping[str, Sequence[str]]] = {
    "time": ("time", "date", "datetime", "timestamp", "decided_at", "trade_date"),
    "ticker": ("ticker", "symbol"),
    "weight": ("weight", "target_weight", "target weight"),
    "action": ("action", "side"),
    "quantity": ("quantity", "qty", "shares"),
}
"""By the desk's name of a column: the headings that mean it."""
EXAMPLE: Final = "time,ticker,weight\n2024-01-02T15:30:00-05:00,AAPL,0.25"
WRITE_TIME: Final = "write 2024-01-02, or 2024-01-02T15:30:00-05:00"
LONG_ONLY: Final = "the score is long only: write 0 where nothing is held"
SIDES: Final = {"buy": 1, "sell": -1, "hold": 0}
SUM_SLACK: Final = 1e-6
_CLOCK: Final = re.compile(r"\d[T ]\d{1,2}:?\d{2}")
_MIDNIGHT: Final = re.compile(r"[T ]00:?00(:?00(\.0+)?)?$")


@dataclass(frozen=True, slots=True)
class DecisionReading:
    """How a file is read: the headings of the desk's columns, the zone of times without one,
    whether months come first in dates, and whether a comma is the decimal mark; each None or empty
    where the file says it."""

    columns: Mapping[str, str] = field(default_factory=dict)
    zone: tzinfo | None = None
    month_first: bool | None = None
    decimal_comma: bool | None = None


def read_decisions(path: Path, reading: DecisionReading = DecisionReading()) -> StatedFile:
    """The decisions of a file. Raises BadFile, and nothing else, for one that is none at all."""
    with only_bad_files(path):
        if is_parquet(path):
            raise bad(path, None, "a Parquet file, and decisions are read from CSV", "write CSV")
        text = text_of(path, FILE_BYTES_MAX, is_windows_allowed=True, is_table=False)
        if tradingagents.is_log(text):
            read = tradingagents.read_log(path, text)
        else:
            tradingagents.refuse_full_states(path, text)
            read = _of_table(path, reading)
        _bound(path, read)
        return read


def _bound(path: Path, read: StatedFile) -> None:
    if not read.decisions and not read.findings:
        raise bad(path, None, "no decision", f"write rows like\n{EXAMPLE}")
    times, tickers = len({it.at for it in read.decisions}), len(read.tickers)
    if times > TIMES_MAX:
        raise bad(path, None, f"{times:,} times, and {TIMES_MAX:,} is the limit", "split it")
    if tickers > TICKERS_MAX:
        raise bad(path, None, f"{tickers:,} tickers, and {TICKERS_MAX} is the limit", "split it")


def _of_table(path: Path, reading: DecisionReading) -> StatedFile:
    text = text_of(path, FILE_BYTES_MAX, is_windows_allowed=True)
    if text.count(b"\n") > ROWS_MAX + 1:
        raise bad(path, None, f"more than {ROWS_MAX:,} rows, the limit", "split it")
    table = table_in(path, text)
    named = _columns(table, reading.columns)
    form = DecisionForm.WEIGHTS if "weight" in named else DecisionForm.TRADES
    read = StatedFile(form, f"CSV of {form}")
    rows = _Rows(table, named, reading)
    if rows.are_midnights:
        read.notes.append("all times are midnight without a zone: read as dates")
    for row in range(table.frame.height):
        try:
            read.decisions.append(rows.weight(row) if "weight" in named else rows.trade(row))
        except BadFile as error:
            read.refuse(error.finding)
    unused = [name for name in table.frame.columns if name not in named.values()]
    if unused:
        names = ", ".join(unused)[:100]
        read.notes.append(f"not read: {names} (prices are those of the next open, from the source)")
    if form is DecisionForm.WEIGHTS:
        for fault in _sums(table, read.decisions):
            read.refuse(fault.finding)
    return read


def _columns(table: FileTable, wanted: Mapping[str, str]) -> Mapping[str, str]:
    """By the desk's name: the heading in the file. Raises BadFile."""
    there = table.frame.columns
    named = {name: " ".join(text.split()).casefold() for name, text in wanted.items()}
    for name, heading in named.items():
        if heading not in there:
            what = f"no column {heading[:40]!r}, which --columns names for {name}"
            raise table.fault(None, what, f"the columns are {', '.join(there)[:200]}")
    for name, known in HEADINGS.items():
        found = [text for text in known if text in there and text not in named.values()]
        if name not in named and len(found) > 1:
            what = f"both {found[0]} and {found[1]} may be the {name}"
            raise table.fault(None, what, f"say which: --columns {name}={found[0]}")
        if name not in named and found:
            named[name] = found[0]
    if "weight" in named and {"action", "quantity"} & named.keys():
        what = "it has weights and also actions or quantities"
        raise table.fault(None, what, "keep the columns of one of the two")
    needed = ("weight",) if "weight" in named else ("action", "quantity")
    missing = [name for name in ("time", "ticker", *needed) if name not in named]
    if missing:
        what = f"no column {' and no column '.join(missing)}; it has {', '.join(there)[:100]}"
        remedy = "write time,ticker,weight or time,ticker,action,quantity, or name the columns: "
        raise table.fault(None, what, f"{remedy}--columns {missing[0]}=...")
    return named


class _Rows:
    """The rows of a table, each as a decision."""

    def __init__(
        self, table: FileTable, named: Mapping[str, str], reading: DecisionReading
    ) -> None:
        self._table, self._named, self._reading = table, named, reading
        self.lines = [*islice(table.lines(), table.frame.height)]
        times = [text or "" for text in table.frame[named["time"]]]
        order = months_first(times)
        self._month_first = reading.month_first if order is None else order
        number = named.get("weight", named.get("quantity", ""))
        self._numbers = [text or "" for text in table.frame[number]]
        self._comma = self._decimal_comma(reading.decimal_comma)
        percents = [text.endswith("%") for text in self._numbers if text]
        self._percent = bool(percents) and all(percents)
        clocks = [text for text in times if _CLOCK.search(text)]
        self.are_midnights = bool(clocks) and all(map(_MIDNIGHT.search, clocks))
        self.are_midnights &= reading.zone is None

    def weight(self, row: int) -> StatedDecision:
        """The decision of a row with a weight. Raises BadFile."""
        part = self._number(row, "weight")
        if part < 0:
            raise self._wrong(row, "a short position", LONG_ONLY, "weight")
        if self._percent:
            part /= 100
        if part > 1 + SUM_SLACK:
            remedy = f"write a part from 0 to 1, or {part:g}%"
            raise self._wrong(row, "more than all the money, and nothing is lent", remedy, "weight")
        return StatedDecision(self.lines[row], self._at(row), self._ticker(row), part, part)

    def trade(self, row: int) -> StatedDecision:
        """The decision of a row with an action. Raises BadFile."""
        side = SIDES.get(self._cell(row, "action").casefold())
        if side is None:
            remedy = "the score is long only: leave out what is no purchase or sale of shares"
            raise self._wrong(row, "none of buy, sell, hold", remedy, "action")
        shares = 0.0
        if side:
            shares = self._number(row, "quantity")
            if shares <= 0:
                raise self._wrong(row, "not above 0", "write how many shares", "quantity")
        at, ticker = self._at(row), self._ticker(row)
        return StatedDecision(self.lines[row], at, ticker, shares=side * shares)

    def _cell(self, row: int, name: str) -> str:
        text = str(self._table.frame[self._named[name]][row] or "")
        if len(text) > CELL_CHARS_MAX:
            raise self._wrong(row, f"longer than {CELL_CHARS_MAX} characters", "correct it", name)
        return text

    def _number(self, row: int, name: str) -> float:
        try:
            number = number_of(self._cell(row, name), comma=self._comma, percent=self._percent)
        except NoNumber as error:
            raise self._wrong(row, str(error), "correct the row", name) from None
        if number is None or not isfinite(float(number)):
            raise self._wrong(row, "no number", "write a number", name)
        return float(number)

    def _ticker(self, row: int) -> str:
        try:
            return ticker_of(self._cell(row, "ticker"))
        except NoTicker as error:
            raise self._wrong(row, str(error), "correct the row", "ticker") from None

    def _at(self, row: int) -> datetime | date:
        text = self._cell(row, "time")
        try:
            stamp = stamp_of(text, month_first=self._month_first)
        except NoDate as error:
            way = " or say --dates day-first or month-first" if "could be" in str(error) else ""
            raise self._wrong(row, str(error), f"{WRITE_TIME}{way}", "time") from None
        if self.are_midnights or not _CLOCK.search(text):
            return stamp.day
        zone = stamp.zone or self._reading.zone
        if zone is None:
            remedy = f"{WRITE_TIME}, or say --zone America/New_York"
            raise self._wrong(row, "a time without a zone", remedy, "time")
        return datetime.combine(stamp.day, stamp.at, zone)

    def _decimal_comma(self, said: bool | None) -> bool:
        if said is not None:
            return said
        try:
            return has_decimal_comma(self._numbers)
        except NoNumber as error:
            remedy = "write all numbers like 1234.5, or say --decimal comma or --decimal point"
            raise self._table.fault(None, str(error), remedy) from None

    def _wrong(self, row: int, what: str, remedy: str, name: str) -> BadFile:
        heading = self._named[name]
        value = str(self._table.frame[heading][row] or "")
        return _wrong_row(self._table, self.lines[row], what, remedy, (heading, value))


def _wrong_row(
    table: FileTable, line: int, what: str, remedy: str, cell: tuple[str, str] | None = None
) -> BadFile:
    """The fault of a row by its line: finding it by its number would read the file once a fault."""
    heading, value = cell or (None, None)
    return BadFile(FileFinding(table.path.name, what, remedy, line, heading, value))


def _sums(table: FileTable, decisions: Sequence[StatedDecision]) -> Iterator[BadFile]:
    """The faults of times whose weights are more than all the money, or name a ticker twice."""
    total: dict[date, float] = {}
    named: set[tuple[date, str]] = set()
    for it in decisions:
        if (it.at, it.ticker) in named:
            what = f"{it.ticker} has two weights at {it.at}"
            yield _wrong_row(table, it.line, what, "keep one of the two")
            continue
        named.add((it.at, it.ticker))
        before = total.get(it.at, 0.0)
        total[it.at] = before + it.low
        if before <= 1 + SUM_SLACK < total[it.at]:
            what = f"with this row the weights of {it.at} are above 1: more than all the money"
            yield _wrong_row(table, it.line, what, "make them 1 at most: nothing is lent")
