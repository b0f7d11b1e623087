"""Prices of many tickers over the same sessions, checked once, as arrays."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import polars as pl

from libs.quant.arrays import Array
from libs.quant.indicators import BadBars

Sessions = npt.NDArray[np.datetime64]

PRICES = ("open", "high", "low", "close")
COLUMNS = (*PRICES, "volume")


class FieldFault(ValueError):
    """What was asked for cannot be computed; `field` names the part to change."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class BadPanel(FieldFault, BadBars):
    """Bars that cannot be computed on; `field` names the ticker or column: `universe.FB`."""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One row a ticker, one column a session, ascending; each row contiguous float64.

    Prices are adjusted for splits and dividends, above zero, without a gap; volume is not negative.
    """

    tickers: tuple[str, ...]
    sessions: Sessions
    open: Array
    high: Array
    low: Array
    close: Array
    volume: Array

    def __len__(self) -> int:
        """The number of sessions."""
        return len(self.sessions)

    def cut(self, first: int, last: int) -> "Panel":
        """The sessions from place `first` up to, not including, place `last`."""
        rows = {name: np.ascontiguousarray(getattr(self, name)[:, first:last]) for name in COLUMNS}
        return Panel(self.tickers, self.sessions[first:last], **rows)

    def place(self, day: date) -> int:
        """The place of the first session on or after `day`; len(self) where there is none."""
        return int(np.searchsorted(self.sessions, np.datetime64(day)))

    def sha256(self) -> str:
        """A hash of tickers, sessions and every price: what a result was computed from."""
        digest = hashlib.sha256("\n".join(self.tickers).encode())
        digest.update(self.sessions.astype("datetime64[D]").astype("<i8").tobytes())
        for name in COLUMNS:
            digest.update(getattr(self, name).astype("<f8").tobytes())
        return digest.hexdigest()


def panel(bars: pl.DataFrame, universe: Sequence[str] | None = None) -> Panel:
    """The panel of `bars` (ticker, date, open, high, low, close, volume; rows in any order).

    `universe` gives the order of rows; without it, tickers stand in theirs. Raises BadPanel for a
    ticker without bars, a session that one ticker has and another has not, two bars of one session,
    and a price that is not a number above zero.
    """
    if bars.is_empty():
        raise BadPanel("universe", "there are no bars; ask for a period that has some")
    ordered = bars.sort("ticker", "date")
    tickers = ordered["ticker"].unique(maintain_order=True).to_list()
    wanted = tuple(universe if universe is not None else tickers)
    sessions = ordered["date"].unique().sort()
    for ticker in wanted:
        _require_sessions(ticker, ordered.filter(pl.col("ticker") == ticker)["date"], sessions)
    shape = (len(tickers), len(sessions))
    if others := set(tickers) - set(wanted):
        raise BadPanel("universe", f"there are bars of {min(others)}, which it does not name")
    rows = [tickers.index(ticker) for ticker in wanted]
    values = {name: _values(ordered[name]).reshape(shape)[rows] for name in COLUMNS}
    checked_panel = Panel(wanted, sessions.to_numpy().astype("datetime64[D]"), **values)
    _require_prices(checked_panel)
    return checked_panel


def _require_sessions(ticker: str, days: pl.Series, sessions: pl.Series) -> None:
    field = f"universe.{ticker}"
    if days.is_empty():
        raise BadPanel(field, "has no bars; take it out or give its prices")
    if days.n_unique() < len(days):
        twice = days.filter(days.is_duplicated())[0]
        raise BadPanel(field, f"has two bars on {twice}; keep one")
    if len(days) < len(sessions):
        missing = sessions.filter(~sessions.is_in(days.implode()))[0]
        raise BadPanel(
            field,
            f"has no bar on {missing}, a session of the others: take it out, or choose a period in "
            "which it traded on every session",
        )


def _values(column: pl.Series) -> Array:
    return np.ascontiguousarray(column.cast(pl.Float64).fill_null(float("nan")).to_numpy())


def _require_prices(prices: Panel) -> None:
    for name in COLUMNS:
        values = getattr(prices, name)
        good = values >= 0 if name == "volume" else values > 0
        bad = ~(good & np.isfinite(values))
        if bad.any():
            row, place = np.argwhere(bad)[0]
            wanted = "a volume from zero up" if name == "volume" else "a price above zero"
            raise BadPanel(
                f"universe.{prices.tickers[row]}",
                f"{name} on {prices.sessions[place]} is {values[row, place]:g}, not {wanted}; "
                "mend the bars",
            )
