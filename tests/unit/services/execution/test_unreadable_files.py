"""Files that execution cannot read: a share's own, and that of all listings."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from contracts.account import AccountLimits
from contracts.types import Money
from libs.broker.broker import Opening, OrderRefused, Working
from libs.market.exit_terms import DeskExitRules
from libs.market.rates import ReplayRates
from libs.market.replay.market import ReplayFills, ReplayMarket, ReplayStore
from services.execution.account import Account
from services.execution.books import Books, brought_in, opening
from services.execution.reads import ExecutionReads

DAY = date(2024, 1, 3)
HEADER = "date,open,high,low,close,volume\n"
GOOD = "2024-01-02,10,11,9,10.5,1000\n2024-01-03,10.5,12,10,11.5,2000\n"


def reads_of(folder: Path, **files: str) -> ExecutionReads:
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    store = ReplayStore(folder)
    return ExecutionReads(ReplayMarket(store), ReplayFills(store), ReplayRates(store))


async def test_a_share_whose_own_file_is_bad_has_no_price_and_is_named(tmp_path: Path) -> None:
    bad = f"{HEADER}{GOOD}2024-01-04,abc,1,1,1,1\n"
    reads = reads_of(tmp_path, AAA=HEADER + GOOD, BBB=bad)
    closes = await reads.closes(["AAA", "BBB"], DAY, "USD", held=["AAA", "BBB"])
    assert closes["AAA", DAY] is not None
    assert closes["BBB", DAY] is None
    assert list(reads.market.faults) == ["BBB"]
    opening = await reads._opening("USD", "BBB", date(2024, 1, 2))
    assert isinstance(opening, OrderRefused)
    assert "BBB.csv, line 4" in opening.reason


BAD_LISTINGS = {
    "not a table": "nothing\n",
    "no good lot": "ticker,sector,lot\nAAA,Energy,many\nBBB,Energy,few\nCCC,Energy,0\n",
    "binary": "ticker,sector\n\0\1\2",
}


@pytest.mark.parametrize("sectors", BAD_LISTINGS.values(), ids=BAD_LISTINGS)
async def test_without_listings_nothing_is_bought_and_what_is_held_in_its_currency_is_sold(
    tmp_path: Path, sectors: str
) -> None:
    reads = reads_of(tmp_path, AAA=HEADER + GOOD, BBB=HEADER + GOOD, sectors=sectors)
    books = Books("USD").posted(opening(Decimal(10_000), date(2024, 1, 2)))
    before = DAY - timedelta(days=1)
    books = books.posted(
        brought_in("AAA", Decimal(10), Money(amount=Decimal(10), currency="USD"), before)
    )
    account = Account("main", "USD", before, AccountLimits(), books, snapped=before)
    quotes = await reads.quotes(account, "USD", before, {"BBB"})
    shown = await reads.shown(account, DAY)
    for read in (quotes, shown):
        assert "sectors.csv" in read.unreadable["sectors"]
        assert "AAA" not in read.unreadable
    assert shown.closes["AAA", DAY] is not None
    assert quotes.closes["BBB", before] is None
    assert isinstance(quotes.openings["BBB", before], Working)
    sale = await reads.quotes(account, "USD", before, {"AAA"})
    assert isinstance(sale.openings["AAA", before], Opening)
    abroad = replace(account, currency="EUR")
    other = await reads.shown(abroad, DAY)
    assert other.closes["AAA", DAY] is None
    assert "its currency is not known" in other.unreadable["AAA"]
    opened = await reads.quotes(None, "USD", DAY)
    assert "sectors.csv" in opened.unreadable["sectors"]


async def test_facts_say_that_exit_rules_read_before_judged_them(tmp_path: Path) -> None:
    rules = tmp_path / "exit_signals.toml"
    rules.write_text("[default]\nstop_pct = 8\n")
    last_good = DeskExitRules(rules)
    reads = replace(reads_of(tmp_path, AAA=HEADER + GOOD), exit_rules=last_good)
    before = DAY - timedelta(days=1)
    account = Account("main", "USD", before, AccountLimits(), Books("USD"), snapped=before)
    good = await reads.quotes(account, "USD", before, {"AAA"})
    rules.write_text("[default]\nstop_pct = \n")
    bad = await reads.quotes(account, "USD", before, {"AAA"})
    assert good.facts["AAA"].exits_note == ""
    assert bad.facts["AAA"].exits_note.startswith("the exit rules read before stand: exit_signals")
    assert bad.facts["AAA"].exits == good.facts["AAA"].exits
