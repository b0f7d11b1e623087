"""Files of prices as vendors write them, made of the same made-up bars."""

import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

import pandas as pd
import polars as pl

from libs.market.calendar import exchange_calendar

FIRST, LAST = date(2024, 1, 2), date(2024, 3, 28)


def bars(scale: float = 1.0, *, first: date = FIRST, exchange: str = "XNYS") -> pd.DataFrame:
    """Bars as yfinance's `history()` has them, without its actions."""
    days = exchange_calendar(exchange).sessions(first, LAST)
    closes = [round((100 + n % 17 + n / 10) * scale, 2) for n in range(len(days))]
    return pd.DataFrame(
        {
            "Open": closes,
            "High": [round(close * 1.02, 2) for close in closes],
            "Low": [round(close * 0.98, 2) for close in closes],
            "Close": closes,
            "Volume": [1_000 + n for n in range(len(days))],
        },
        index=pd.DatetimeIndex([datetime(d.year, d.month, d.day) for d in days], name="Date"),  # noqa: DTZ001 - as yfinance writes
    )


def download(by_ticker: Mapping[str, pd.DataFrame], *, by: str = "column") -> pd.DataFrame:
    """The frame of yfinance's `download()`: two levels of headings, one row a day of any ticker
    (yfinance 1.7, multi.py)."""
    whole = pd.concat(
        by_ticker.values(), axis=1, sort=True, keys=by_ticker.keys(), names=["Ticker", "Price"]
    )
    return whole.swaplevel(axis=1).sort_index(axis=1) if by == "column" else whole


def history(frame: pd.DataFrame, zone: str = "America/New_York") -> pd.DataFrame:
    """The frame of yfinance's `history()`: dates at midnight of the exchange, and actions."""
    index = frame.index
    assert isinstance(index, pd.DatetimeIndex)
    return frame.set_index(index.tz_localize(zone)).assign(Dividends=0.0, **{"Stock Splits": 0.0})


def to_parquet(frame: pd.DataFrame, path: Path) -> None:
    """The frame as pandas and pyarrow write it: headings of two levels as the text of a pair."""
    columns: dict[str, Sequence[object]] = {"Date": frame.index.to_list()}
    columns.update({str(name): frame[name].to_list() for name in frame.columns})
    pl.DataFrame(columns, strict=False).write_parquet(path)


def lean_folder(folder: Path, frame: pd.DataFrame, ticker: str, factors: str | None) -> Path:
    """A Lean data folder with one ticker: prices in ten-thousandths, without headings."""
    daily = folder / "equity" / "usa" / "daily"
    daily.mkdir(parents=True)
    rows = [
        f"{day:%Y%m%d} 00:00,"
        + ",".join(str(round(row[n] * 10_000)) for n in ("Open", "High", "Low", "Close"))
        + f",{row['Volume']:.0f}"
        for day, row in frame.iterrows()
    ]
    with zipfile.ZipFile(daily / f"{ticker}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{ticker}.csv", "\n".join(rows) + "\n")
    if factors is not None:
        (daily.parent / "factor_files").mkdir()
        (daily.parent / "factor_files" / f"{ticker}.csv").write_text(factors)
    return folder
