"""Forms in which vendors and programs write daily prices, and what each means.

A form is known by its headings. Where the prices in it are not as they were traded, `adjusted` says
so: a decision in the past then sees prices that were changed by what came later.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from libs.files.table import heading

BAR_COLUMNS: Final = ("date", "open", "high", "low", "close", "volume")
ACTION_COLUMNS: Final = ("dividend", "split_factor")
TICKER: Final = "ticker"
ADJUSTED: Final = "adjusted"
"""The column of the desk's own form that says what later events its prices are adjusted for."""
SPLITS: Final = "splits"
SPLITS_AND_DIVIDENDS: Final = "splits and dividends"
_SAME: Final = {name: name for name in BAR_COLUMNS}


@dataclass(frozen=True, slots=True)
class PriceFormat:
    """A form: the desk's name for each heading, "" for one that is not read; `month_first` where
    dates are written 03/15/2024; and what later events its prices are `adjusted` for. `vendor` is
    how a command names it; `is_tried` where a file of its vendor's form was read."""

    name: str
    headings: Mapping[str, str]
    adjusted: str = ""
    month_first: bool | None = None
    vendor: str = ""
    is_tried: bool = False
    is_assumed: bool = False
    """Whether nothing in the file says if its prices are adjusted, and they may be a vendor's."""

    @property
    def doubt(self) -> str:
        """A sentence for whoever checks the files; "" where the form says what its prices are."""
        if not self.is_assumed:
            return ""
        return (
            "does not say whether it is adjusted: taken as traded; `deskbus market import` settles "
            "it"
        )

    @property
    def caveat(self) -> str:
        """A sentence for whoever decides by these prices; "" where they are as traded."""
        if not self.adjusted:
            return ""
        source = f" of {self.name}" if self.vendor not in {"", "desk"} else ""
        return (
            f"these prices{source} are adjusted for {self.adjusted}: a decision in the past sees "
            "in them what came later"
        )


OWN: Final = PriceFormat(
    "the desk's own",
    {**_SAME, **{name: name for name in ACTION_COLUMNS}, ADJUSTED: ADJUSTED},
    vendor="desk",
    is_tried=True,
)
YFINANCE: Final = PriceFormat(
    "yfinance's download()",
    {
        **_SAME,
        **dict.fromkeys(
            ("adj close", "repaired?", "capital gains", "dividends", "stock splits"), ""
        ),
    },
    adjusted=SPLITS_AND_DIVIDENDS,
    vendor="yfinance",
    is_tried=True,
)
LISTED: Final = PriceFormat(
    "a list of several tickers",
    {**OWN.headings, "adj close": "", TICKER: TICKER, "symbol": TICKER},
)
FORMATS: Final = (
    PriceFormat("Yahoo's CSV", {**_SAME, "adj close": ""}, adjusted=SPLITS, vendor="yahoo"),
    replace(YFINANCE, name="yfinance's history()"),
    PriceFormat(
        "Nasdaq.com",
        {**{n: n for n in BAR_COLUMNS if n != "close"}, "close/last": "close"},
        adjusted=SPLITS,
        month_first=True,
        vendor="nasdaq",
        is_tried=True,
    ),
    PriceFormat(
        "Investing.com",
        {
            **{n: n for n in ("date", "open", "high", "low")},
            "price": "close",
            "vol.": "volume",
            "change %": "",
        },
        adjusted=SPLITS,
        vendor="investing",
    ),
    PriceFormat(
        "Stooq",
        {
            "<ticker>": TICKER,
            "<per>": "",
            "<date>": "date",
            "<time>": "",
            **{f"<{name}>": name for name in ("open", "high", "low", "close")},
            "<vol>": "volume",
            "<openint>": "",
        },
        adjusted=SPLITS_AND_DIVIDENDS,
        vendor="stooq",
    ),
    PriceFormat(
        "Alpha Vantage",
        {**{n: n for n in BAR_COLUMNS if n != "date"}, "timestamp": "date"},
        vendor="alphavantage",
    ),
    PriceFormat(
        "Alpha Vantage, adjusted",
        {
            **{n: n for n in BAR_COLUMNS if n != "date"},
            "timestamp": "date",
            "adjusted_close": "",
            "dividend_amount": "dividend",
            "split_coefficient": "split_factor",
        },
        vendor="alphavantage",
    ),
    PriceFormat(
        "Tiingo",
        {
            **_SAME,
            **{f"adj{name}": "" for name in BAR_COLUMNS[1:]},
            "divcash": "dividend",
            "splitfactor": "split_factor",
        },
        vendor="tiingo",
    ),
    LISTED,
)
"""All but the desk's own, of which none has the headings of another. Vendors' headings are facts of
their public documentation."""


LEAN: Final = PriceFormat(
    "Lean", {**_SAME, **{name: name for name in ACTION_COLUMNS}}, vendor="lean"
)
VENDORS: Final = tuple(dict.fromkeys(f.vendor for f in (*FORMATS, LEAN, OWN) if f.vendor))
"""The forms by the names that a command takes."""


@dataclass(frozen=True, slots=True)
class PriceHeads:
    """The headings of a file of prices, how many lines they take, and the tickers in them. Where
    there are several, each price's heading is `close@AAPL`."""

    names: Sequence[str]
    lines: int = 1
    tickers: Sequence[str] = ()
    is_download: bool = False


def format_of(headings: Sequence[str], *, is_download: bool = False) -> PriceFormat:
    """The form that a table's headings are of; the desk's own where no vendor writes them so."""
    names = set(headings)
    if is_download:
        return by_adjusted_close(YFINANCE, names)
    for form in FORMATS:
        marks = {name for name in form.headings if name not in OWN.headings}
        needed = {name for name, column in form.headings.items() if column in BAR_COLUMNS}
        if names & marks and needed <= names <= form.headings.keys():
            return by_adjusted_close(form, names)
    return OWN


def by_adjusted_close(form: PriceFormat, names: Iterable[str]) -> PriceFormat:
    """yfinance's `auto_adjust=False` leaves dividends to a column of their own."""
    is_split_only = form.vendor == "yfinance" and "adj close" in names
    return replace(form, adjusted=SPLITS) if is_split_only else form


def mapped(headings: Sequence[str], columns: Mapping[str, str]) -> PriceFormat:
    """The form of a file whose owner says which heading each of the desk's columns has. A column
    that is not named has its own name; all other headings are not read."""
    named = {heading(name): column for column, name in columns.items()}
    own = {n: n for n in OWN.headings if n not in columns and n in headings}
    return PriceFormat(
        "the columns that you named",
        {**dict.fromkeys(headings, ""), **own, **named},
        is_tried=True,
    )


_PAIR: Final = re.compile(r"\('([^']*)', '([^']*)'\)")
"""How pandas writes a heading of two levels into Parquet."""


def heads(rows: Sequence[Sequence[str]]) -> PriceHeads:
    """The headings of a file of prices. yfinance's `download()` has two levels of them, prices and
    tickers in either order, and in a CSV mostly a third line with the name of the index."""
    pairs = [_PAIR.fullmatch(cell) for cell in rows[0]]
    if any(pairs):
        first = [pair[1] if pair else cell for pair, cell in zip(pairs, rows[0], strict=True)]
        second = [pair[2] if pair else "" for pair in pairs]
        return _two_levels(first, second, 1)
    if len(rows) > 1 and len(rows[0]) == len(rows[1]) > 1:
        first, second = ([*row] for row in rows[:2])
        is_label = heading(second[0]) in {"ticker", "price", "date", "datetime", ""}
        if is_label and _are_prices(first[1:]) != _are_prices(second[1:]):
            third = [cell.strip() for cell in rows[2]] if len(rows) > 2 else ["?"]
            is_index = third[0].casefold() in {"date", "datetime", ""} and not any(third[1:])
            return _two_levels(first, second, 3 if is_index else 2)
    return PriceHeads(rows[0])


def _are_prices(cells: Sequence[str]) -> bool:
    names = {heading(cell) for cell in cells} - {""}
    return {"open", "close"} <= names <= {*YFINANCE.headings, "datetime"}


def _two_levels(first: Sequence[str], second: Sequence[str], lines: int) -> PriceHeads:
    prices, others = (first, second) if _are_prices(first[1:]) else (second, first)
    names, tickers = [], []
    for at, (price, other) in enumerate(zip(prices, others, strict=True)):
        levels = {heading(price), heading(other)}
        if levels & {"date", "datetime"} or (at == 0 and lines == 3):
            names.append("date")
        elif heading(price) in YFINANCE.headings and other.strip():
            names.append(f"{heading(price)}@{other.strip().upper()}")
            tickers.append(other.strip().upper())
        else:
            names.append("")
    tickers = [*dict.fromkeys(tickers)]
    if len(tickers) == 1:
        names = [name.partition("@")[0] for name in names]
    return PriceHeads(names, lines, tickers, is_download=True)
