"""The desk's own client against the stand-in of EDGAR."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.edgar_live import EdgarLive, apple, edgar_serving
from tests.fakes.edgar_server import Company


@pytest.fixture
def edgar(tmp_path: Path) -> Iterator[EdgarLive]:
    """Apple, a company of two share classes, and one without XBRL."""
    alphabet = Company(1652044, ["GOOGL", "GOOG"])
    alphabet.files("0001652044-09-000001", "10-K", "2009-12-01", "2009-12-01T21:10:00.000Z")
    alphabet.states("SalesRevenueNet", 7, "0001652044-09-000001", "2009-12-31", "2010-01-20")
    fund = Company(884394, ["SPY"])
    fund.files("0000884394-09-000001", "8-K", "2009-12-01", "2009-12-01T21:10:00.000Z")
    with edgar_serving(tmp_path, apple(), alphabet, fund) as live:
        yield live
