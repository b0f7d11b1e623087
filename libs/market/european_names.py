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

from libs.market.symbols import EUROPE, Venue, venue_of

TABLE = Path(__file__).parent / "european_names.csv"
NAMES_KNOWN_AT = datetime(2026, 3, 31, tzinfo=UTC)
"""When the table's source was published: nothing of it shows before."""


@dataclass(frozen=True, slots=True)
class EuropeanName:
    """A listing that the table knows. Nothing says that any source has prices of it."""

    ticker: str
    name: str
    venue: Venue


def _european(ticker: str) -> Venue | None:
    return venue_of(ticker) if ticker.rpartition(".")[2] in EUROPE else None


@cache
def european_names() -> tuple[EuropeanName, ...]:
    """All rows of the table, sorted by ticker."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = (line.split(",", 1) for line in lines if not line.startswith("#"))
    return tuple(
        EuropeanName(ticker, name, venue)
        for ticker, name in rows
        if (venue := _european(ticker)) is not None
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
        if _european(ticker) is not None
    ]
