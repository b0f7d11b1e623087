"""Reading and checking the files of a replay directory. Nothing here knows about as_of.

A bad file is refused as a whole, naming the file, the row and what to do: prices that were half
right would be worse than none.
"""

import codecs
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from libs.facts.cells import READ_BACK
from libs.market.errors import BadReplayData
from libs.market.replay.bounds import FILE_BYTES_MAX, lines_of, require_bounded

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PRICE_COLUMNS = ("open", "high", "low", "close")
BAR_COLUMNS = ("date", *PRICE_COLUMNS, "volume")
ACTION_COLUMNS = ("dividend", "split_factor")

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


@dataclass(frozen=True, slots=True)
class Check:
    """A rule for rows: those where `bad` holds are refused with `what` and `remedy`."""

    bad: pl.Expr
    what: str
    remedy: str


def read_bars(path: Path) -> pl.DataFrame:
    """The bars of one ticker's file: BAR_COLUMNS and ACTION_COLUMNS, ascending, checked."""
    raw = _read_table(path)
    _require_columns(path, raw, BAR_COLUMNS, ACTION_COLUMNS)
    if raw.is_empty():
        raise BadReplayData(path, None, "no rows", "fill in the file or remove it")
    number = [_number(name) for name in (*PRICE_COLUMNS, "volume")]
    action = [
        _action(raw, "dividend", default=0.0),
        _action(raw, "split_factor", default=1.0),
    ]
    frame = raw.select(_date(raw, "date"), *number, *action)
    _apply(path, frame, _bar_checks())
    return frame


def read_records(
    path: Path,
    required: Mapping[str, pl.DataType],
    optional: Mapping[str, pl.DataType],
    further: Sequence[Check] = (),
) -> pl.DataFrame:
    """A file of dated records: `known_at` in UTC (null where undated), other columns as asked.

    `known_at` is a time with a zone (2024-01-02T14:30:00Z) or a date, which then comes back in
    `known_on` and means that session's close. Missing optional columns come back as nulls.
    `further` checks see the columns in their types.
    """
    raw = _read_table(path)
    _require_columns(path, raw, tuple(required), (*optional, "known_at"))
    wanted = {**required, **optional}
    columns = [_cell(raw, name, kind) for name, kind in wanted.items()]
    frame = raw.select(*columns, *_known(raw))
    checks = [
        Check(pl.col(name).is_null(), f"no readable {name}", f"fill in {name}") for name in required
    ]
    checks.append(
        Check(
            pl.col("known_raw").is_not_null()
            & pl.col("known_at").is_null()
            & pl.col("known_on").is_null(),
            "known_at is not a time with a zone",
            "write 2024-01-02T14:30:00Z, or 2024-01-02 for that session's close",
        )
    )
    _apply(path, frame, [*checks, *further])
    return frame.drop("known_raw")


def read_bundled(path: Path) -> dict[str, pl.DataFrame]:
    """The bundled tickers in the form of `read_bars`, with actions recovered from Adj Close.

    The file has raw prices and an adjusted close. A step m of the factor Adj Close / Close is
    either a split (m = 1/n) or a dividend D with m = close / (close + D) on the ex-date, the
    reinvested total return; solved for D it gives whole cents (265.0 for AAPL on 2012-08-09).
    """
    table = pl.read_csv(path, try_parse_dates=True)
    table = table.rename({name: name.lower().replace(" ", "_") for name in table.columns})
    _require_columns(path, table, ("ticker", *BAR_COLUMNS, "adj_close"), ())
    bars = {}
    for (ticker,), rows in table.partition_by("ticker", as_dict=True).items():
        frame = _with_recovered_actions(rows)
        _apply(path, frame, _bar_checks())
        bars[str(ticker)] = frame
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


def _bar_checks() -> list[Check]:
    numeric = [*PRICE_COLUMNS, "volume"]
    rewrite = "correct the row or leave it out"
    return [
        Check(pl.col("date").is_null(), "no readable date", "write dates as YYYY-MM-DD"),
        *(
            Check(
                ~pl.col(name).is_finite().fill_null(value=False), f"{name} is not a number", rewrite
            )
            for name in numeric
        ),
        *(Check(pl.col(name) <= 0, f"{name} is not above zero", rewrite) for name in PRICE_COLUMNS),
        *(
            Check(pl.col(name) > PRICE_MAX, f"{name} is no price: above {PRICE_MAX:,.0f}", rewrite)
            for name in PRICE_COLUMNS
        ),
        Check(pl.col("volume") < 0, "volume is negative", rewrite),
        Check(pl.col("volume") > VOLUME_MAX, f"volume is above {VOLUME_MAX:,.0f}", rewrite),
        Check(pl.col("high") < pl.col("low"), "high is below low", rewrite),
        *(
            Check(~within_range(name, RANGE_NOISE), f"{name} is not between low and high", rewrite)
            for name in ("open", "close")
        ),
        Check(pl.col("date").dt.weekday() > 5, "the date is a weekend", rewrite),
        Check(
            pl.col("date") == pl.col("date").shift(1), "the date comes twice", "keep one row a date"
        ),
        Check(
            pl.col("date") < pl.col("date").shift(1), "the date goes back", "sort the rows by date"
        ),
        Check(
            ~pl.col("dividend").is_between(0, PRICE_MAX).fill_null(value=False),
            "dividend is not an amount",
            "write the cash per share, or 0",
        ),
        Check(
            ~pl.col("split_factor")
            .is_between(1 / SPLIT_FACTOR_MAX, SPLIT_FACTOR_MAX)
            .fill_null(value=False),
            "split_factor is not a ratio",
            "write new shares per old share (2 for 2:1), or 1",
        ),
    ]


def _apply(path: Path, frame: pl.DataFrame, checks: list[Check]) -> None:
    """Raise BadReplayData for the first row that a check refuses."""
    firsts = frame.select(
        check.bad.fill_null(value=False).arg_true().first().alias(str(n))
        for n, check in enumerate(checks)
    ).row(0)
    refused = [(row, n) for n, row in enumerate(firsts) if row is not None]
    if refused:
        row, n = min(refused)
        # CSV rows are counted as an editor shows them: the header is row 1.
        first_row = 1 if path.suffix == ".parquet" else 2
        raise BadReplayData(path, row + first_row, checks[n].what, checks[n].remedy)


def _read_table(path: Path) -> pl.DataFrame:
    require_bounded(path)
    try:
        raw = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as error:
        raise BadReplayData(
            path, None, f"not readable as {path.suffix[1:]} ({str(error)[:120]})", "write it again"
        ) from error
    return raw.rename({name: name.strip().lower() for name in raw.columns})


def _read_parquet(path: Path) -> pl.DataFrame:
    raw = pl.read_parquet(path)
    odd = [name for name, kind in raw.schema.items() if kind.is_nested() or kind == pl.Binary]
    if odd:
        what = f"column {odd[0][:40]} holds {raw.schema[odd[0]]!s:.40}"
        raise BadReplayData(path, None, what, "write text, numbers and dates")
    # Of a text that comes often a file holds one copy; each step of reading may make one a row.
    texts = raw.select(pl.col(pl.String).str.len_bytes().cast(pl.UInt64).sum())
    if sum(texts.row(0) if texts.width else ()) > FILE_BYTES_MAX:
        what = f"its texts have more than {FILE_BYTES_MAX // 1024**2} MB, the limit"
        raise BadReplayData(path, None, what, "split it into years")
    return raw


def _read_csv(path: Path) -> pl.DataFrame:
    with path.open("rb") as file:
        if file.read(2) in UTF_16:
            raise BadReplayData(path, 1, "the file is UTF-16", "save it as UTF-8")
    try:
        # All text: a single odd cell must not change how the others are read.
        raw = pl.read_csv(path, infer_schema=False)
    except pl.exceptions.ComputeError as error:
        _refuse_by_row(path)
        raise error from None
    if raw.width == 1 and (mark := {";", "\t"} & set(raw.columns[0])):
        shown = "tabs" if mark == {"\t"} else "semicolons"
        raise BadReplayData(
            path, 1, f"the columns are separated by {shown}", "write commas, and a decimal point"
        )
    # What `market record` wrote is marked where a spreadsheet would run it.
    return _without_end(raw).with_columns(pl.all().str.replace(READ_BACK, "${1}"))


def _without_end(raw: pl.DataFrame) -> pl.DataFrame:
    """The table without the empty lines that editors leave at its end; any other one is a row."""
    cells = pl.all().str.strip_chars().fill_null("") != ""
    filled = raw.select(pl.any_horizontal(cells)).to_series().arg_true()
    return raw.head(filled[-1] + 1 if len(filled) else 0)


def _refuse_by_row(path: Path) -> None:
    """Raise for the first row for which Polars, which names none, refuses the file, if it is seen.

    That is one that is not UTF-8, or has more cells than the header.
    """
    rows = csv.reader(lines_of(path))
    try:
        columns = len(next(rows, []))
        for cells in rows:
            if len(cells) > columns:
                what = f"{len(cells)} cells under a header of {columns}"
                raise BadReplayData(path, rows.line_num, what, "correct the row or leave it out")
    except csv.Error:  # a cell of 128 kB or more: then Polars' own words stand
        return


def _require_columns(
    path: Path, raw: pl.DataFrame, required: tuple[str, ...], optional: tuple[str, ...]
) -> None:
    missing = [name for name in required if name not in raw.columns]
    if missing:
        raise BadReplayData(path, 1, f"no column {', '.join(missing)}", "add it to the header")
    unknown = [name[:40] for name in raw.columns if name not in {*required, *optional}]
    if unknown:
        allowed = ", ".join((*required, *optional))
        raise BadReplayData(
            path, 1, f"unknown column {', '.join(unknown[:5])}", f"keep to {allowed}"
        )


def _number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64, strict=False)


def _action(raw: pl.DataFrame, name: str, default: float) -> pl.Expr:
    """An optional column: absent, empty and (for splits, as Yahoo writes them) 0 mean none."""
    if name not in raw.columns:
        return pl.lit(default).alias(name)
    column = pl.col(name)
    empty = column.is_null() | (column == "") if raw.schema[name] == pl.String else column.is_null()
    value = column.cast(pl.Float64, strict=False)
    return pl.when(empty | (value == 0)).then(default).otherwise(value).alias(name)


def _date(raw: pl.DataFrame, name: str) -> pl.Expr:
    if raw.schema[name] == pl.String:
        return pl.col(name).str.strip_chars().str.to_date("%Y-%m-%d", strict=False)
    return pl.col(name).cast(pl.Date, strict=False)


def _cell(raw: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Expr:
    if name not in raw.columns:
        return pl.lit(None, dtype=kind).alias(name)
    if kind == pl.Date:
        return _date(raw, name)
    if kind == pl.Float64:
        value = pl.col(name).cast(pl.Float64, strict=False)
        return pl.when(value.is_finite()).then(value).alias(name)
    return pl.col(name).cast(pl.String)


def _known(raw: pl.DataFrame) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    moment = pl.Datetime("us", "UTC")
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
    text = column.cast(pl.String).str.strip_chars()
    text = pl.when(text != "").then(text)
    return (
        text.alias("known_raw"),
        text.str.to_datetime("%+", strict=False, time_unit="us", time_zone="UTC").alias("known_at"),
        text.str.to_date("%Y-%m-%d", strict=False, exact=True).alias("known_on"),
    )
