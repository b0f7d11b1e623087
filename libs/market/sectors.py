"""Sectors by the Standard Industrial Classification codes (SIC) that the SEC keeps of its filers.

The table is the desk's own: it maps ranges of codes to the eleven sectors by which shares are
usually grouped. A code says what a company began as; a conglomerate, or one that changed, may be
counted elsewhere by a vendor.
"""

from bisect import bisect_right
from functools import lru_cache
from pathlib import Path

TABLE = Path(__file__).with_name("sic_sectors.csv")


def sector_of(sic: int) -> str:
    """The sector of a code; empty where the table has none for it."""
    firsts, rows = _table()
    at = bisect_right(firsts, sic) - 1
    if at < 0:
        return ""
    last, sector = rows[at]
    return sector if sic <= last else ""


@lru_cache(maxsize=1)
def _table() -> tuple[list[int], list[tuple[int, str]]]:
    """First codes, ascending; and for each the last one and the sector."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines if line and not line.startswith("#")]
    return [int(row[0]) for row in rows], [(int(row[1]), row[2]) for row in rows]
