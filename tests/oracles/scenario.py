"""Prices and sides for all engines. Needs numpy only, so that it runs beside any of them."""

import csv
import gzip
import hashlib
import importlib.util
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

TICKERS: Final = ("AAPL", "IBM", "MSFT")
FAST, SLOW = 20, 50
FEE_BPS, SLIPPAGE_BPS = 10.0, 5.0
CAPITAL_EACH = 100_000.0
LOT_SHARES = 200
POINTS_EVERY = 125


def real_prices() -> tuple[list[str], Array, Array]:
    """Dates, and adjusted opens and closes with a row a ticker."""
    package = importlib.util.find_spec("bokeh_sampledata")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "_data" / "stocks.csv.gz"
    with gzip.open(path, "rt") as lines:
        rows = [row for row in csv.DictReader(lines) if row["Ticker"] in TICKERS]
    by_ticker = [sorted(r["Date"] for r in rows if r["Ticker"] == t) for t in TICKERS]
    dates = sorted(set(by_ticker[0]).intersection(*by_ticker[1:]))
    found = {(row["Ticker"], row["Date"]): row for row in rows}
    opens, closes = np.empty((2, len(TICKERS), len(dates)))
    for i, ticker in enumerate(TICKERS):
        for j, day in enumerate(dates):
            row = found[ticker, day]
            closes[i, j] = float(row["Adj Close"])
            opens[i, j] = float(row["Open"]) * closes[i, j] / float(row["Close"])
    return dates, opens, closes


def sides(closes: Array) -> npt.NDArray[np.int8]:
    """1 where the fast average is above the slow one, -1 below, 0 before both are there."""
    fast, slow = _average(closes, FAST), _average(closes, SLOW)
    found = np.sign(fast - slow)
    found[:, : SLOW - 1] = 0
    return found.astype(np.int8)


def _average(closes: Array, bars: int) -> Array:
    found = np.zeros_like(closes)
    for at in range(bars - 1, closes.shape[1]):
        found[:, at] = closes[:, at - bars + 1 : at + 1].mean(axis=1)
    return found


def fingerprint(found: npt.NDArray[np.int8]) -> str:
    """A hash of the sides: another numpy must not quietly flip one."""
    return hashlib.sha256(found.tobytes()).hexdigest()
