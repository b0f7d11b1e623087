"""Forms in which vendors and programs write daily prices, and what each means.

A form is known by its headings. Where the prices in it are not as they were traded, `adjusted` says
so: a decision in the past then sees prices that were changed by what came later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

BAR_COLUMNS: Final = ("date", "open", "high", "low", "close", "volume")
ACTION_COLUMNS: Final = ("dividend", "split_factor")
SPLITS: Final = "splits"
SPLITS_AND_DIVIDENDS: Final = "splits and dividends"
_SAME: Final = {name: name for name in BAR_COLUMNS}


@dataclass(frozen=True, slots=True)
class PriceFormat:
    """A form: the desk's name for each heading, "" for one that is not read; `month_first` where
    dates are written 03/15/2024; and what later events its prices are `adjusted` for."""

    name: str
    headings: Mapping[str, str]
    adjusted: str = ""
    month_first: bool | None = None

    @property
    def caveat(self) -> str:
        """A sentence for whoever decides by these prices; "" where they are as traded."""
        if not self.adjusted:
            return ""
        return (
            f"these prices come from {self.name}, adjusted for {self.adjusted}: a decision in the "
            "past sees in them what came later"
        )


OWN: Final = PriceFormat("the desk's own", {**_SAME, **{name: name for name in ACTION_COLUMNS}})
YFINANCE: Final = PriceFormat(
    "yfinance's download()",
    {**_SAME, "adj close": "", "repaired?": "", "capital gains": ""},
    adjusted=SPLITS_AND_DIVIDENDS,
)
FORMATS: Final = (
    PriceFormat(
        "yfinance's history()",
        {**_SAME, "dividends": "", "stock splits": "", "capital gains": "", "adj close": ""},
        adjusted=SPLITS_AND_DIVIDENDS,
    ),
    PriceFormat("Yahoo's CSV", {**_SAME, "adj close": ""}, adjusted=SPLITS),
    PriceFormat(
        "Nasdaq.com",
        {**{n: n for n in BAR_COLUMNS if n != "close"}, "close/last": "close"},
        adjusted=SPLITS,
        month_first=True,
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
        month_first=True,
    ),
    PriceFormat(
        "Stooq",
        {
            "<ticker>": "",
            "<per>": "",
            "<date>": "date",
            "<time>": "",
            **{f"<{name}>": name for name in ("open", "high", "low", "close")},
            "<vol>": "volume",
            "<openint>": "",
        },
        adjusted=SPLITS_AND_DIVIDENDS,
    ),
    PriceFormat(
        "Alpha Vantage",
        {**{n: n for n in BAR_COLUMNS if n != "date"}, "timestamp": "date"},
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
    ),
    PriceFormat(
        "Tiingo",
        {
            **_SAME,
            **{f"adj{name}": "" for name in BAR_COLUMNS[1:]},
            "divcash": "dividend",
            "splitfactor": "split_factor",
        },
    ),
)
"""All but the desk's own, of which none has the headings of another. Vendors' headings are facts of
their public documentation."""


def format_of(headings: Sequence[str], head_lines: int) -> PriceFormat:
    """The form that a table's headings are of; the desk's own where no vendor writes them so."""
    if head_lines > 1:
        return YFINANCE
    names = set(headings)
    for form in FORMATS:
        marks = {name for name in form.headings if name not in OWN.headings}
        needed = {name for name, column in form.headings.items() if column in BAR_COLUMNS}
        if names & marks and needed <= names <= form.headings.keys():
            return form
    return OWN


def heads(rows: Sequence[Sequence[str]]) -> tuple[Sequence[str], int]:
    """The headings of a file of prices. yfinance's `download()` writes three lines of them: prices,
    tickers, and the name of the index."""
    firsts = [row[0].strip().casefold() if row else "" for row in rows[:3]]
    if firsts[:2] == ["price", "ticker"] and len(firsts) == 3 and firsts[2] in {"date", "datetime"}:
        return ["date", *rows[0][1:]], 3
    return rows[0], 1


def tickers_in(rows: Sequence[Sequence[str]]) -> frozenset[str]:
    """The tickers that the second line of yfinance's headings names."""
    return frozenset(cell.strip().upper() for cell in rows[1][1:] if cell.strip())
