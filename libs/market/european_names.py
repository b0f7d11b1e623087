"""Names of European listings, offline: a committed table, and what a ticker's suffix says.

The names are those of one day. Asked for an earlier as_of they would tell of mergers and new names
to come, so the table is silent until then; a suffix such as .DE is part of the ticker and always
speaks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent / "european_names.csv"
NAMES_KNOWN_AT = datetime(2026, 3, 31, tzinfo=UTC)
"""When the table's source was published: nothing of it shows before."""


@dataclass(frozen=True, slots=True)
class Venue:
    """An exchange by Yahoo's suffix. `country` is ISO 3166 alpha-2, `exchange` ISO 10383."""

    exchange: str
    country: str
    currency: str


@dataclass(frozen=True, slots=True)
class EuropeanName:
    """A listing that the table knows. Nothing says that any source has prices of it."""

    ticker: str
    name: str
    venue: Venue


VENUES: Mapping[str, Venue] = {
    "AS": Venue("XAMS", "NL", "EUR"),
    "BR": Venue("XBRU", "BE", "EUR"),
    "CO": Venue("XCSE", "DK", "DKK"),
    "DE": Venue("XETR", "DE", "EUR"),
    "HE": Venue("XHEL", "FI", "EUR"),
    "IR": Venue("XDUB", "IE", "EUR"),
    "L": Venue("XLON", "GB", "GBP"),
    "LS": Venue("XLIS", "PT", "EUR"),
    "MC": Venue("XMAD", "ES", "EUR"),
    "MI": Venue("XMIL", "IT", "EUR"),
    "OL": Venue("XOSL", "NO", "NOK"),
    "PA": Venue("XPAR", "FR", "EUR"),
    "ST": Venue("XSTO", "SE", "SEK"),
    "SW": Venue("XSWX", "CH", "CHF"),
    "VI": Venue("XWBO", "AT", "EUR"),
}


def venue_of(ticker: str) -> Venue | None:
    """The European exchange that a ticker's suffix names; None for any other ticker."""
    _, dot, suffix = ticker.rpartition(".")
    return VENUES.get(suffix) if dot else None


@cache
def european_names() -> tuple[EuropeanName, ...]:
    """All rows of the table, sorted by ticker."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = (line.split(",", 1) for line in lines if not line.startswith("#"))
    return tuple(
        EuropeanName(ticker, name, venue)
        for ticker, name in rows
        if (venue := venue_of(ticker)) is not None
    )


def table_lines(indices: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The table's rows, sorted, made of `pytickersymbols.indices_data.INDICES`.

    Home listings only: its other symbols are mostly foreign lines of the same share.
    """
    names = {
        str(company.get("symbol") or ""): str(company["name"])
        for index in indices.values()
        for company in index["companies"]
    }
    return [
        f"{ticker},{' '.join(name.replace(',', ' ').split())}"
        for ticker, name in sorted(names.items())
        if venue_of(ticker) is not None
    ]
