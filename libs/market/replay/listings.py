"""Descriptions of listings: those of the bundled prices, and which row of a file holds when."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

# Written down by hand from general knowledge. The sector is the GICS one of 2000 to 2013, when all
# five were Information Technology: Communication Services took in GOOG and FB only in 2018.
BUNDLED_LISTINGS: dict[str, dict[str, str]] = {
    ticker: {
        "name": name,
        "sector": "Information Technology",
        "exchange": exchange,
        "country": "US",
    }
    for ticker, name, exchange in (
        ("AAPL", "Apple", "XNAS"),
        ("FB", "Facebook", "XNAS"),
        ("GOOG", "Google", "XNAS"),
        ("IBM", "International Business Machines", "XNYS"),
        ("MSFT", "Microsoft", "XNAS"),
    )
}


def known_last(rows: Sequence[Mapping[str, Any]], moment: datetime) -> Mapping[str, Any] | None:
    """The last row that was known at a moment; one without a time was always known."""
    known = (row for row in reversed(rows) if (at := row["known_at"]) is None or at <= moment)
    return next(known, None)
