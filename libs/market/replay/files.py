"""Reading and checking the files of a replay directory. Nothing here knows about as_of.

A bad file is refused as a whole, naming the file, the line and what to do: prices that were half
right would be worse than none. Every refusal is a `BadFile`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from pathlib import Path

import polars as pl

from contracts.types import spelled
from libs.files.dates import WRITE, NoDate, SessionOf, dates, month_first_in, stamp_of
from libs.files.finding import BadFile, FileFinding, bad, only_bad_files
from libs.files.numbers import most_have_comma, numbers, sign_in
from libs.files.table import CORRECT, FileTable, read_table, table_in
from libs.market.calendar import DayKind, ExchangeCalendar
from libs.market.holidays import holiday_name
from libs.market.replay.formats import (
    ACTION_COLUMNS,
    ADJUSTED,
    BAR_COLUMNS,
    OWN,
    SPLITS,
    SPLITS_AND_DIVIDENDS,
    TICKER,
    PriceFormat,
    PriceHeads,
    format_of,
    heads,
)

__all__ = ["ACTION_COLUMNS", "BAR_COLUMNS", "PRICE_COLUMNS"]

PRICE_COLUMNS = ("open", "high", "low", "close")
# One price far above all others takes the digits from every sum that it is in, so that a moving
# average is wrong, or no number, for a year. No share has ever cost a millionth of this.
PRICE_MAX = 1e12
VOLUME_MAX = 1e15
SPLIT_FACTOR_MAX = 1e6

# Below this the vendor's factor did not change: the bundled file shows 1e-13 of rounding noise,
# the smallest dividend moves it by 1e-3.
FACTOR_NOISE = 1e-6
# A price may be written with less digits than another of its bar.
RANGE_NOISE = 1e-6
# No ordinary dividend takes a fifth of the price; a split takes a third at least (3:2).
SPLIT_STEP_MIN = 0.2

RATE = "rate"
"""The column of `fx.csv` with numbers in it."""
BAD_ROWS_MAX = 100
"""Bad rows of a file that cost themselves alone: with more of them the file is refused."""

WEEKLY, MONTHLY = (5, 9), (25, 35)
"""Days between bars that are not daily."""
SPARSE_ROWS_MIN = 4
"""So many bars are needed to say so."""


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A rule for rows: those where `bad` holds are refused with `what` and `remedy`, and with what
    stands in `column`."""

    bad: pl.Expr
    what: str
    remedy: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row of records that cannot be read: why, its cells as they stand, and those of its dates
    that can be read. Of a row with more cells than headings only that of the column `alone` is
    surely its own. `is_cut` says whether the file seems to end within it, as one that is being
    written does."""

    finding: FileFinding
    cells: Mapping[str, object]
    days: Mapping[str, date]
    alone: str | None = None
    is_cut: bool = False

    def text(self, column: str) -> str:
        """The cell of a column; "" where it is empty or may be that of another one."""
        cell = self.cells.get(column)
        is_own = self.alone is None or self.alone == column
        return "" if cell is None or not is_own else str(cell)


@dataclass(frozen=True, slots=True)
class FilePrices:
    """The bars of a file, BAR_COLUMNS and ACTION_COLUMNS, ascending, checked; and the form that
    they were written in."""

    frame: pl.DataFrame
    form: PriceFormat = OWN
    tickers: frozenset[str] = frozenset()
    """The tickers that the file names inside, where its form does."""
    empty: int = 0
    """Rows without any price, which were left out."""
    signs: frozenset[str] = frozenset()
    """The signs of currencies that stand with the prices."""
    without_volume: int = 0
    """Rows with prices and without a volume, which count as zero."""


@dataclass(frozen=True, slots=True)
class PriceTable:
    """A file of prices of one or several tickers, opened: its cells, their form, and the tickers
    that it names, in its order."""

    table: FileTable
    form: PriceFormat
    tickers: Sequence[str] = ()
    unused: Sequence[str] = field(default_factory=tuple)
    """Headings that are not read."""
    may_be_empty: bool = False
    """Whether rows without any price are left out, and a volume that is missing counts as zero;
    they are refused otherwise."""

    @property
    def says_adjusted(self) -> bool:
        """Whether the file or its form says if its prices are adjusted."""
        own = {*ACTION_COLUMNS, ADJUSTED}
        return self.form.vendor not in {"", "desk"} or bool(own & {*self.table.frame.columns})


ChooseForm = Callable[[Sequence[str], PriceFormat], PriceFormat]
"""From a file's headings and the form that they are of to the form that it is read in."""


def read_bars(path: Path, calendar: ExchangeCalendar | None = None) -> pl.DataFrame:
    """The bars of one ticker's file: see `FilePrices`. Raises BadFile."""
    return read_prices(path, calendar).frame


def read_prices(
    path: Path, calendar: ExchangeCalendar | None = None, other: ExchangeCalendar | None = None
) -> FilePrices:
    """The prices in one ticker's file, in any of the known forms. With a calendar every bar must be
    of a session of it, or of the `other` one. Raises BadFile, and nothing else."""
    with only_bad_files(path):
        opened = open_prices(path)
        if len(opened.tickers) > 1:
            what = f"it holds prices of {len(opened.tickers)} tickers"
            raise opened.table.fault(
                None, what, "write one file a ticker: `deskbus market import` does"
            )
        return prices_in(opened, "", calendar, other)


def open_prices(
    path: Path, text: bytes | None = None, choose: ChooseForm | None = None
) -> PriceTable:
    """The cells of a file of prices, by the desk's names where it has one ticker. `text` is its
    content where that is no file of its own. Raises BadFile, PolarsError."""
    seen = PriceHeads(())

    def price_heads(rows: Sequence[Sequence[str]]) -> tuple[Sequence[str], int]:
        nonlocal seen
        seen = heads(rows)
        return seen.names, seen.lines

    table = table_in(path, text, price_heads) if text else read_table(path, price_heads)
    names = [*dict.fromkeys(name.partition("@")[0] for name in table.frame.columns)]
    form = format_of(names, is_download=seen.is_download)
    if choose is not None:
        form = choose(names, form)
    if "datetime" in names and "datetime" not in form.headings:
        what = "the column Datetime: bars within a day"
        raise table.fault(None, what, "the desk reads daily ones (yfinance: interval='1d')")
    _require_columns(table, form, names)
    if table.frame.is_empty():
        raise bad(path, None, "no rows", "fill in the file or remove it")
    if form == OWN and not {*ACTION_COLUMNS, ADJUSTED} & {*names}:
        form = replace(form, is_assumed=_is_foreign(table, seen.names))
    unused = [name for name in names if not form.headings.get(name)]
    table = _renamed(table, form)
    tickers = seen.tickers
    if TICKER in table.frame.columns:
        column = table.frame[TICKER].cast(pl.String)
        if column.null_count():
            row = column.is_null().arg_max()
            raise table.fault(row, "a row without a ticker", "fill it in", TICKER)
        tickers = column.unique(maintain_order=True).to_list()
    return PriceTable(table, form, tickers, unused)


def _is_foreign(table: FileTable, headings: Sequence[str]) -> bool:
    """Whether a file with the desk's headings may be a vendor's: it writes them with capitals, or
    its dates with a zone."""
    if any(name != name.casefold() for name in headings):
        return True
    days = table.frame["date"]
    if isinstance(days.dtype, pl.Datetime):
        return days.dtype.time_zone is not None
    first = days.drop_nulls().head(1).cast(pl.String).to_list()
    return any(_ZONED.search(text) for text in first)


def prices_in(
    opened: PriceTable,
    ticker: str,
    calendar: ExchangeCalendar | None = None,
    other: ExchangeCalendar | None = None,
) -> FilePrices:
    """The checked prices of one of the tickers of a file; "" for those of the only one. Raises
    BadFile."""
    table, form = _of_ticker(opened, ticker), opened.form
    session_of = None if calendar is None else _sessions_of(calendar)
    if ADJUSTED in table.frame.columns:
        form = replace(form, adjusted=_adjusted(table))
    days = dates(table, "date", session_of, month_first=form.month_first)
    numeric = [n for n in table.frame.columns if n in {*BAR_COLUMNS[1:], *ACTION_COLUMNS}]
    values = numbers(table, numeric)
    frame = pl.DataFrame([days, *values.values()]).with_row_index("row")
    if TICKER in table.frame.columns and len(opened.tickers) > 1:
        frame = frame.filter(table.frame[TICKER].cast(pl.String) == ticker)
    rows = frame.height
    if opened.may_be_empty or len(opened.tickers) > 1:
        # One row a day of any of the tickers: those of the others are empty here.
        absent = pl.all_horizontal(
            pl.col(*PRICE_COLUMNS).is_null() | pl.col(*PRICE_COLUMNS).is_nan()
        )
        frame = frame.filter(~absent)
        if frame.is_empty():
            raise table.fault(
                None, f"no prices of {ticker}" if ticker else "no prices", "download them again"
            )
    volume = pl.col("volume").fill_nan(None)
    without_volume = frame.select(volume.is_null().sum()).item() if opened.may_be_empty else 0
    if without_volume:
        frame = frame.with_columns(volume.fill_null(0.0))
    frame = frame.with_columns(
        _action(frame, "dividend", default=0.0), _action(frame, "split_factor", default=1.0)
    ).select("row", *BAR_COLUMNS, *ACTION_COLUMNS)
    if frame.height > 1 and (frame["date"].diff().drop_nulls() < timedelta()).all():
        frame = frame.reverse()  # newest first, as many vendors write
    _apply(table, frame, _bar_checks())
    _require_daily(table, frame["date"])
    if calendar is not None:
        _require_sessions(table, frame, calendar, other or calendar)
    empty = rows - frame.height if len(opened.tickers) < 2 else 0
    signs = frozenset(sign_in(table.frame[name]) for name in PRICE_COLUMNS) - {""}
    frame = frame.drop("row")
    return FilePrices(frame, form, frozenset(opened.tickers), empty, signs, without_volume)


def _of_ticker(opened: PriceTable, ticker: str) -> FileTable:
    """The columns of one ticker, where those of several stand side by side."""
    table = opened.table
    end = f"@{ticker.casefold()}"
    frame = table.frame
    if not any("@" in name for name in frame.columns):
        return table
    kept = {"date": "date", **{n: n.removesuffix(end) for n in frame.columns if n.endswith(end)}}
    table = replace(table, frame=frame.select(*kept).rename(kept))
    _require(table, BAR_COLUMNS, (*BAR_COLUMNS, *ACTION_COLUMNS))
    return table


def _adjusted(table: FileTable) -> str:
    """The later events that the desk's own form says its prices are adjusted for; "" for none."""
    words = table.frame[ADJUSTED].cast(pl.String).fill_null("").unique().to_list()
    if len(words) > 1 or words[0] not in {"", SPLITS, SPLITS_AND_DIVIDENDS}:
        what = f"the column {ADJUSTED} is not the same in all rows, or of an unknown kind"
        raise table.fault(None, what, f"write {SPLITS}, {SPLITS_AND_DIVIDENDS}, or leave it out")
    return str(words[0])


def _renamed(table: FileTable, form: PriceFormat) -> FileTable:
    """The columns that are read, by the desk's names."""
    wanted = {}
    for name in table.frame.columns:
        price, mark, ticker = name.partition("@")
        if column := form.headings.get(price):
            wanted[name] = f"{column}{mark}{ticker}"
    twice = [name for name, count in Counter(wanted.values()).items() if count > 1]
    if twice:
        raise table.fault(None, f"two columns are {twice[0]}", "keep one of the two")
    return replace(table, frame=table.frame.select(*wanted).rename(wanted))


def _sessions_of(calendar: ExchangeCalendar) -> SessionOf:
    def session_of(moment: datetime) -> date | None:
        if not 1 < moment.year < 9999:
            return None
        local = moment.astimezone(calendar.zone)
        day = local.date()
        if (local - timedelta(microseconds=1)).date() != day and local.time() < time(2):
            return day
        if calendar.is_session(day) and calendar.open(day) <= moment <= calendar.close(day):
            return day
        return None

    return session_of


def read_records(
    path: Path,
    required: Mapping[str, pl.DataType],
    optional: Mapping[str, pl.DataType],
    further: Sequence[RowCheck] = (),
) -> pl.DataFrame:
    """A file of dated records: `known_at` in UTC (null where undated), other columns as asked.

    `known_at` is a time with a zone (2024-01-02T14:30:00Z) or a date, which then comes back in
    `known_on` and means that session's close. Missing optional columns come back as nulls; a cell
    that is filled and cannot be read is a fault. Tickers have the desk's spelling. `further` checks
    see the columns in their types. Raises BadFile, and nothing else.
    """
    with only_bad_files(path):
        return _records(read_table(path), required, optional, further)


def read_rows(
    path: Path,
    required: Mapping[str, pl.DataType],
    optional: Mapping[str, pl.DataType],
    further: Sequence[RowCheck] = (),
) -> tuple[pl.DataFrame, Sequence[BadRow]]:
    """The same of a file in which a bad row costs itself: the good rows, and the others. Raises
    BadFile where the file as a whole cannot be read, has more than BAD_ROWS_MAX bad rows, or no
    good one."""
    refused: list[BadRow] = []
    with only_bad_files(path):
        table = read_table(path, longer_max=BAD_ROWS_MAX)
        if table.frame.schema.get(RATE) == pl.String:
            # 1.214 is a rate like 1.2, whatever stands beside it.
            table = replace(table, decimal_comma=most_have_comma(table.frame[RATE]))
        ends_open = table.text is not None and not table.text.endswith(b"\n")
        end = table.frame.height - 1 if ends_open else None
        for row, what in table.longer.items():
            refused.append(_bad_row(table, table.fault(row, what, CORRECT), row, required, end))
        places = pl.Series(range(table.frame.height), dtype=pl.Int64)
        table = table.without(places.is_in([*table.longer]))
        while True:
            try:
                return _records(table, required, optional, further), refused
            except BadFile as error:
                is_last = table.frame.height == 1
                if error.row is None or is_last or len(refused) >= BAD_ROWS_MAX:
                    raise
                refused.append(_bad_row(table, error, error.row, required, end))
                places = pl.Series(range(table.frame.height), dtype=pl.Int64)
                table = table.without(places == error.row)


def _bad_row(
    table: FileTable,
    error: BadFile,
    row: int,
    columns: Mapping[str, pl.DataType],
    open_end: int | None,
) -> BadRow:
    """A row of the table; `open_end` is the place of the file's last row if it has no line end."""
    names, cells = table.frame.columns, table.frame.row(row, named=True)
    place = row if table.rows is None else table.rows[row]
    is_longer = place in table.longer
    # The file ends within this cell, or the one before those that are missing.
    behind = names[names.index(error.finding.column or names[-1]) + 1 :]
    is_cut = place == open_end and not is_longer and all(cells[name] is None for name in behind)
    refused = BadRow(error.finding, cells, {}, names[0] if is_longer else None, is_cut)
    days = {}
    for name in (name for name, kind in columns.items() if kind == pl.Date and name in cells):
        try:
            days[name] = stamp_of(refused.text(name), month_first=month_first_in(table, name)).day
        except NoDate as no_date:
            if no_date.meant is not None:
                days[name] = no_date.meant
    return replace(refused, days=days)


def _records(
    table: FileTable,
    required: Mapping[str, pl.DataType],
    optional: Mapping[str, pl.DataType],
    further: Sequence[RowCheck],
) -> pl.DataFrame:
    raw = table.frame
    allowed = (*required, *optional, "known_at")
    _require(table, tuple(required), allowed)
    wanted = {**required, **optional}
    there = [name for name in wanted if name in raw.columns]
    numeric = [name for name in there if wanted[name] == pl.Float64]
    values = numbers(table, numeric, percents=frozenset(n for n in numeric if n.endswith("_pct")))
    columns = [
        dates(table, name)
        if wanted[name] == pl.Date
        else values[name]
        if name in values
        else raw[name].cast(pl.String)
        for name in there
    ]
    known = raw.with_columns(*_known(table)).select("known_raw", "known_at", "known_on")
    frame = pl.DataFrame([*columns, *known.get_columns()]).with_columns(
        *(pl.lit(None, dtype=wanted[name]).alias(name) for name in wanted if name not in there),
        *([pl.col("pair").str.to_uppercase()] if "pair" in there else []),
        *([pl.col("ticker").replace(_spellings(raw["ticker"]))] if "ticker" in there else []),
    )
    frame = frame.select(*wanted, "known_raw", "known_at", "known_on").with_row_index("row")
    empty = (
        RowCheck(pl.col(name).is_null(), f"{name} is empty", f"fill in {name}", name)
        for name in required
    )
    finite = (
        RowCheck(~pl.col(name).is_finite(), "not a number", "correct it", name) for name in numeric
    )
    undated = RowCheck(
        pl.col("known_raw").is_not_null()
        & pl.col("known_at").is_null()
        & pl.col("known_on").is_null(),
        "not a time with a zone",
        "write 2024-01-02T14:30:00Z, or 2024-01-02 for that session's close",
        "known_at",
    )
    ages = RowCheck(
        ~pl.col("known_at").dt.year().is_between(1, 9998),
        "no date that a calendar has",
        "correct it",
        "known_at",
    )
    _apply(table, frame, [*empty, *finite, undated, ages, *further])
    return frame.drop("row", "known_raw")


def _spellings(tickers: pl.Series) -> dict[str, str]:
    """The desk's spelling of each ticker of a column."""
    return {text: spelled(text) for text in tickers.cast(pl.String).drop_nulls().unique()}


def read_bundled(path: Path) -> dict[str, pl.DataFrame]:
    """The bundled tickers in the form of `read_bars`, with actions recovered from Adj Close.

    The file has raw prices and an adjusted close. A step m of the factor Adj Close / Close is
    either a split (m = 1/n) or a dividend D with m = close / (close + D) on the ex-date, the
    reinvested total return; solved for D it gives whole cents (265.0 for AAPL on 2012-08-09).
    """
    table = pl.read_csv(path, try_parse_dates=True)
    table = table.rename({name: name.lower().replace(" ", "_") for name in table.columns})
    bars = {}
    for (ticker,), rows in table.partition_by("ticker", as_dict=True).items():
        bars[str(ticker)] = _with_recovered_actions(rows)
    return bars


def _with_recovered_actions(rows: pl.DataFrame) -> pl.DataFrame:
    factor = pl.col("adj_close") / pl.col("close")
    step = (factor.shift(1) / factor).fill_null(1.0)
    is_split = (step - 1).abs() >= SPLIT_STEP_MIN
    # Halves cover 2:1, 3:1, 3:2; a reverse split is a half or a third of a share.
    ratio = pl.when(step < 1).then((2 / step).round(0) / 2).otherwise(1 / step.round(0))
    paid = (pl.col("close") * (1 / step - 1)).round(4)
    is_dividend = ((step - 1).abs() > FACTOR_NOISE) & ~is_split
    return rows.select(
        "date",
        *PRICE_COLUMNS,
        pl.col("volume").cast(pl.Float64),
        pl.when(is_dividend).then(paid).otherwise(0.0).alias("dividend"),
        pl.when(is_split).then(ratio).otherwise(1.0).alias("split_factor"),
    )


def within_range(name: str, noise: float) -> pl.Expr:
    """True where a bar's price lies between its low and high, but for the share `noise` of it."""
    price = pl.col(name)
    return (price >= pl.col("low") * (1 - noise)) & (price <= pl.col("high") * (1 + noise))


def _bar_checks() -> list[RowCheck]:
    numeric = [*PRICE_COLUMNS, "volume"]
    rewrite = "correct the row or leave it out"

    def of(name: str, refused: pl.Expr, what: str, remedy: str = rewrite) -> RowCheck:
        return RowCheck(refused, what, remedy, name)

    return [
        RowCheck(pl.col("date").is_null(), "no date", WRITE),
        *(
            of(name, ~pl.col(name).is_finite().fill_null(value=False), "not a number")
            for name in numeric
        ),
        *(of(name, pl.col(name) <= 0, "not above zero") for name in PRICE_COLUMNS),
        *(
            of(name, pl.col(name) > PRICE_MAX, f"no price: above {PRICE_MAX:,.0f}")
            for name in PRICE_COLUMNS
        ),
        of("volume", pl.col("volume") < 0, "negative"),
        of("volume", pl.col("volume") > VOLUME_MAX, f"above {VOLUME_MAX:,.0f}"),
        of("high", pl.col("high") < pl.col("low"), "below low"),
        *(
            of(name, ~within_range(name, RANGE_NOISE), "not between low and high")
            for name in ("open", "close")
        ),
        of("date", pl.col("date") == pl.col("date").shift(1), "there twice", "keep one row a date"),
        of("date", pl.col("date") < pl.col("date").shift(1), "before the last", "sort by date"),
        of(
            "dividend",
            ~pl.col("dividend").is_between(0, PRICE_MAX).fill_null(value=False),
            "not an amount",
            "write the cash per share, or 0",
        ),
        of(
            "split_factor",
            ~pl.col("split_factor")
            .is_between(1 / SPLIT_FACTOR_MAX, SPLIT_FACTOR_MAX)
            .fill_null(value=False),
            "not a ratio",
            "write new shares per old share (2 for 2:1), or 1",
        ),
    ]


def _apply(table: FileTable, frame: pl.DataFrame, checks: Sequence[RowCheck]) -> None:
    """Raise BadFile for the first row that a check refuses; `row` of the frame is the table's."""
    firsts = frame.select(
        check.bad.fill_null(value=False).arg_true().first().alias(str(n))
        for n, check in enumerate(checks)
    ).row(0)
    refused = [(frame["row"][at], n) for n, at in enumerate(firsts) if at is not None]
    if refused:
        row, n = min(refused)
        raise table.fault(row, checks[n].what, checks[n].remedy, checks[n].column)


def _require_daily(table: FileTable, days: pl.Series) -> None:
    """Raise BadFile for bars of weeks or months."""
    if len(days) < SPARSE_ROWS_MIN:
        return
    gaps = sorted(days.diff().dt.total_days().drop_nulls().to_list())
    for word, (least, most) in (("weekly", WEEKLY), ("monthly", MONTHLY)):
        if gaps[0] >= least and gaps[len(gaps) // 2] <= most:
            raise table.fault(None, f"these are {word} bars", "the desk reads daily ones")


def _require_sessions(
    table: FileTable, frame: pl.DataFrame, calendar: ExchangeCalendar, other: ExchangeCalendar
) -> None:
    """Raise BadFile for the first bar of a day on which the exchange was closed."""
    for row, day in _closed(frame, calendar):
        if other.is_session(day):
            continue
        kind = calendar.kind(day)
        name = holiday_name(calendar, day) if kind is DayKind.HOLIDAY else ""
        what = f"{name or f'a {kind}'}, on which {calendar.exchange} is closed"
        remedy = "leave the row out, or set `exchange` in source.toml to the one that trades then"
        raise table.fault(row, what, remedy, "date")


def _closed(frame: pl.DataFrame, calendar: ExchangeCalendar) -> Iterator[tuple[int, date]]:
    for row, day in frame.select("row", "date").iter_rows():
        if calendar.kind(day) in {DayKind.WEEKEND, DayKind.HOLIDAY}:
            yield row, day


def _require_columns(table: FileTable, form: PriceFormat, names: Sequence[str]) -> None:
    headings = {column: name for name, column in form.headings.items() if column}
    required = [headings.get(column, column) for column in BAR_COLUMNS]
    _require(table, required, tuple(form.headings), names)


def _require(
    table: FileTable,
    required: Sequence[str],
    allowed: Sequence[str],
    names: Sequence[str] | None = None,
) -> None:
    """Raise BadFile where a column is missing, or is none that is read."""
    names = table.frame.columns if names is None else names
    missing = [name for name in required if name not in names]
    if missing:
        raise table.fault(None, f"no column {', '.join(missing)}", "add it to the header")
    unknown = [name[:40] for name in names if name not in allowed]
    if unknown:
        what = f"unknown column {', '.join(unknown[:5])}"
        raise table.fault(None, what, f"keep to {', '.join(allowed)}")


def _action(frame: pl.DataFrame, name: str, default: float) -> pl.Expr:
    """An optional column: absent, empty and (for splits, as Yahoo writes them) 0 mean none."""
    if name not in frame.columns:
        return pl.lit(default).alias(name)
    value = pl.col(name)
    return pl.when(value.is_null() | (value == 0)).then(default).otherwise(value).alias(name)


def _known(table: FileTable) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    raw, moment = table.frame, pl.Datetime("us", "UTC")
    if "known_at" not in raw.columns:
        return (
            pl.lit(None, dtype=pl.String).alias("known_raw"),
            pl.lit(None, dtype=moment).alias("known_at"),
            pl.lit(None, dtype=pl.Date).alias("known_on"),
        )
    column = pl.col("known_at")
    if isinstance(raw.schema["known_at"], pl.Datetime) and raw.schema["known_at"].time_zone:
        known = column.dt.convert_time_zone("UTC").cast(moment)
        return (
            column.cast(pl.String).alias("known_raw"),
            known.alias("known_at"),
            pl.lit(None, dtype=pl.Date).alias("known_on"),
        )
    # A naive Parquet time turns into text without a zone here and is refused like one in a CSV.
    text = column.cast(pl.String).str.strip_chars().replace(_iso(table, "known_at"))
    text = pl.when(text != "").then(text)
    return (
        text.alias("known_raw"),
        text.str.to_datetime("%+", strict=False, time_unit="us", time_zone="UTC").alias("known_at"),
        text.str.to_date("%Y-%m-%d", strict=False, exact=True).alias("known_on"),
    )


def _iso(table: FileTable, column: str) -> dict[str, str]:
    """Dates, and times with a zone, that are written in another way, as ISO 8601 writes them. What
    is none of both stays as it is, to be refused."""
    cells = table.frame[column]
    if cells.dtype != pl.String:
        return {}
    texts = [text.strip() for text in cells.drop_nulls().unique()]
    month_first = month_first_in(table, column)
    written = {}
    for text in texts:
        with suppress(NoDate):
            stamp = stamp_of(text, month_first=month_first)
            if stamp.zone is not None and not _FRACTION.search(text):
                written[text] = datetime.combine(stamp.day, stamp.at, stamp.zone).isoformat()
            elif ":" not in text:
                written[text] = stamp.day.isoformat()
    return written


_ZONED = re.compile(r"\d:\d\d.*(Z|UTC|[+-]\d\d:?\d\d)$")
_FRACTION = re.compile(r":\d\d\.\d")
