"""Files that execution cannot read: a share's own costs its price, one that all need stops it."""

from datetime import date
from pathlib import Path

import pytest

from libs.broker.broker import Refused
from libs.market.errors import BadReplayData
from libs.market.rates import ReplayRates
from libs.market.replay.market import ReplayFills, ReplayMarket, ReplayStore
from services.execution.reads import Reads

DAY = date(2024, 1, 3)
HEADER = "date,open,high,low,close,volume\n"
GOOD = "2024-01-02,10,11,9,10.5,1000\n2024-01-03,10.5,12,10,11.5,2000\n"


def reads_of(folder: Path, **files: str) -> Reads:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    store = ReplayStore(folder)
    return Reads(ReplayMarket(store), ReplayFills(store), ReplayRates(store))


async def test_a_share_whose_own_file_is_bad_has_no_price_and_is_named(tmp_path: Path) -> None:
    bad = f"{HEADER}{GOOD}2024-01-04,abc,1,1,1,1\n"
    reads = reads_of(tmp_path, AAA=HEADER + GOOD, BBB=bad)
    closes = await reads.closes(["AAA", "BBB"], DAY, "USD", held=["AAA", "BBB"])
    assert closes["AAA", DAY] is not None
    assert closes["BBB", DAY] is None
    assert list(reads._unreadable(["AAA", "BBB"])) == ["BBB"]
    opening = await reads._opening("USD", "BBB", date(2024, 1, 2))
    assert isinstance(opening, Refused)
    assert "BBB.csv, line 4" in opening.reason


async def test_a_file_that_every_share_needs_is_never_taken_for_a_missing_price(
    tmp_path: Path,
) -> None:
    sectors = "ticker,sector,known_at\nAAA,Tech,1900-01-01\n"
    reads = reads_of(tmp_path, AAA=HEADER + GOOD, sectors=sectors)
    with pytest.raises(BadReplayData, match=r"^sectors\.csv"):
        await reads.closes(["AAA"], DAY, "USD", held=["AAA"])
    with pytest.raises(BadReplayData, match=r"^sectors\.csv"):
        await reads._opening("USD", "AAA", date(2024, 1, 2))
