"""Listings of several exchanges in one folder: none is seen before its own exchange has closed."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from libs.market.errors import NoHistory
from libs.market.replay.market import ReplayFills, ReplayMarket, ReplayStore

pytestmark = pytest.mark.slow
"""Each loads exchange_calendars, and pandas with it, for a calendar that is no table of ours."""
MONDAY, TUESDAY = date(2024, 3, 18), date(2024, 3, 19)


def store(folder: Path, exchange: str, listed: dict[str, str], sectors: bool = True) -> ReplayStore:
    """A source of `exchange` with a share a ticker: `listed` names the exchange of each."""
    header = "date,open,high,low,close,volume\n"
    rows = "".join(f"2024-03-{day},10,30,9,{day},1000\n" for day in (18, 19, 21, 22))
    for ticker in listed:
        (folder / f"{ticker}.csv").write_text(header + rows)
    if sectors:
        lines = [f"{name},Tech,{of},USD" for name, of in listed.items()]
        text = "ticker,sector,exchange,currency\n" + "\n".join(lines) + "\n"
        (folder / "sectors.csv").write_text(text)
    (folder / "source.toml").write_text(f'name = "several"\nexchange = "{exchange}"\n')
    return ReplayStore(folder)


@pytest.mark.parametrize(
    ("exchange", "other"),
    [("XTKS", "XNYS"), ("XTKS", "XETR"), ("XETR", "XNYS"), ("XTKS", "XNAS"), ("XHKG", "XLON")],
)
async def test_a_close_never_shows_the_later_close_of_another_exchange(
    tmp_path: Path, exchange: str, other: str
) -> None:
    market = ReplayMarket(store(tmp_path, exchange, {"OWN": exchange, "OTHER": other}))
    assert [listing.ticker for listing in await market.universe(MONDAY)] == ["OWN"]
    assert (await market.bars("OWN", MONDAY, 5))["close"].to_list() == [18]
    with pytest.raises(NoHistory, match=f"trades at {other} on after the close of {exchange}"):
        await market.bars("OTHER", MONDAY, 5)
    with pytest.raises(NoHistory, match=r"set exchange in source\.toml"):
        await market.splits("OTHER", MONDAY)


@pytest.mark.parametrize("other", ["XTKS", "XHKG", "XETR", "XLON", "XNAS", "XTSE", "XASX"])
async def test_what_has_closed_before_is_seen_and_filled_at_its_own_next_open(
    tmp_path: Path, other: str
) -> None:
    opened = store(tmp_path, "XNYS", {"OWN": "XNYS", "OTHER": other})
    market, fills = ReplayMarket(opened), ReplayFills(opened)
    listings = {listing.ticker: listing for listing in await market.universe(MONDAY)}
    assert listings["OTHER"].exchange == other
    assert (await market.bars("OTHER", MONDAY, 5))["close"].to_list() == [18]
    fill = await fills.next_open("OTHER", MONDAY)
    assert fill.session == TUESDAY
    assert market.calendar.close(MONDAY) <= fill.opens_at < market.calendar.close(TUESDAY)


@pytest.mark.parametrize(
    ("other", "as_of", "before"),
    [("XSHG", date(2027, 1, 4), date(2026, 12, 31)), ("XSAU", date(2020, 12, 31), None)],
)
async def test_a_day_that_its_exchange_s_calendar_does_not_reach_is_absent_and_says_so(
    tmp_path: Path, other: str, as_of: date, before: date | None
) -> None:
    opened = store(tmp_path, "XNYS", {"OWN": "XNYS", "OTHER": other})
    days = [day for day in (before, as_of) if day is not None]
    rows = "".join(f"{day},10,30,9,{10 + n},1000\n" for n, day in enumerate(days))
    for ticker in ("OWN", "OTHER"):
        (tmp_path / f"{ticker}.csv").write_text("date,open,high,low,close,volume\n" + rows)
    market = ReplayMarket(opened)
    assert [listing.ticker for listing in await market.universe(as_of)] == ["OWN"]
    why = rf"{as_of} lies outside the calendar of {other} \(.*newer exchange-calendars"
    with pytest.raises(NoHistory, match=why):
        await market.bars("OTHER", as_of, 5)
    if before is not None:
        assert (await market.bars("OTHER", before, 5))["close"].to_list() == [10]
        (tmp_path / "OTHER.csv").write_text(
            f"date,open,high,low,close,volume\n{before},10,30,9,10,1000\n"
        )
        with pytest.raises(NoHistory, match=why):  # it was not delisted
            await ReplayMarket(ReplayStore(tmp_path)).bars("OTHER", as_of, 5)


async def test_a_lot_is_the_listing_s_else_the_exchange_s(tmp_path: Path) -> None:
    listed = {"7203.T": "XTKS", "0700.HK": "XHKG", "0005.HK": "XHKG", "OWN": "XNYS"}
    opened = store(tmp_path, "XNYS", listed)
    rows = "".join(f"{name},Tech,{of},USD,\n" for name, of in listed.items() if name != "0005.HK")
    text = f"ticker,sector,exchange,currency,lot\n{rows}0005.HK,Banks,XHKG,USD,400\n"
    (tmp_path / "sectors.csv").write_text(text)
    lots = {listing.ticker: listing.lot for listing in await ReplayMarket(opened).universe(MONDAY)}
    assert lots == {"7203.T": 100, "0700.HK": 1, "0005.HK": 400, "OWN": 1}


@pytest.mark.parametrize("lot", ["0", "-100", "1.5", "1e9", "many"])
async def test_a_lot_that_is_no_number_of_shares_is_a_fault_of_the_file(
    tmp_path: Path, lot: str
) -> None:
    opened = store(tmp_path, "XNYS", {"OWN": "XNYS"})
    text = f"ticker,sector,exchange,currency,lot\nOWN,Tech,XNYS,USD,{lot}\n"
    (tmp_path / "sectors.csv").write_text(text)
    market = ReplayMarket(opened)
    (listing,) = await market.universe(MONDAY)
    assert listing.lot == 1
    assert market.no_listings is not None
    assert "lot" in str(market.no_listings)


async def test_a_fill_tells_the_open_of_its_own_exchange(tmp_path: Path) -> None:
    fills = ReplayFills(store(tmp_path, "XNYS", {"OTHER": "XTKS"}))
    fill = await fills.next_open("OTHER", MONDAY)
    assert fill.opens_at == datetime(2024, 3, 19, 0, 0, tzinfo=UTC)


async def test_an_exchange_that_nobody_knows_counts_as_the_source_s(tmp_path: Path) -> None:
    market = ReplayMarket(store(tmp_path, "XTKS", {"OTHER": "Somewhere"}))
    assert (await market.bars("OTHER", MONDAY, 5)).height == 1


async def test_a_suffix_stands_in_for_a_row_of_sectors(tmp_path: Path) -> None:
    opened = store(tmp_path, "XNYS", {"SAP.DE": "", "0700.HK": "", "AAPL": ""}, sectors=False)
    market, fills = ReplayMarket(opened), ReplayFills(opened)
    listings = {one.ticker: one for one in await market.universe(MONDAY)}
    found = {name: (one.exchange, one.currency, one.country) for name, one in listings.items()}
    assert found == {
        "SAP.DE": ("XETR", "EUR", "DE"),
        "0700.HK": ("XHKG", "HKD", "HK"),
        "AAPL": ("XNYS", "USD", ""),
    }
    assert (await fills.next_open("SAP.DE", MONDAY)).currency == "EUR"


async def test_a_row_of_sectors_counts_before_the_suffix(tmp_path: Path) -> None:
    market = ReplayMarket(store(tmp_path, "XNYS", {"SAP.DE": "XFRA"}))
    (listing,) = await market.universe(MONDAY)
    assert (listing.exchange, listing.currency) == ("XFRA", "USD")


@pytest.mark.parametrize("ticker", ["VOD.L", "NPN.JO", "TEVA.TA"])
async def test_pence_are_asked_for(tmp_path: Path, ticker: str) -> None:
    opened = store(tmp_path, "XNYS", {ticker: "", "AAPL": ""}, sectors=False)
    market = ReplayMarket(opened)
    assert [listing.ticker for listing in await market.universe(MONDAY)] == ["AAPL"]
    with pytest.raises(NoHistory, match=r"\(hundredths\) or .*: write its currency into sectors"):
        await market.bars(ticker, MONDAY, 5)


async def test_a_source_in_pence_says_so(tmp_path: Path) -> None:
    opened = store(tmp_path, "XLON", {"VOD.L": ""}, sectors=False)
    (tmp_path / "source.toml").write_text('exchange = "XLON"\ncurrency = "GBX"\n')
    (listing,) = await ReplayMarket(ReplayStore(tmp_path)).universe(MONDAY)
    assert (listing.exchange, listing.currency) == ("XLON", "GBX")
    assert opened.exchange == "XLON"


async def test_an_unknown_currency_costs_its_ticker_and_no_other(tmp_path: Path) -> None:
    opened = store(tmp_path, "XNYS", {"ACME": "XNYS", "OTHER": "XNYS"})
    text = (tmp_path / "sectors.csv").read_text()
    (tmp_path / "sectors.csv").write_text(
        text.replace("ACME,Tech,XNYS,USD", "ACME,Tech,XNYS,PENCE")
    )
    market = ReplayMarket(opened)
    assert [listing.ticker for listing in await market.universe(MONDAY)] == ["OTHER"]
    with pytest.raises(NoHistory, match=r"'PENCE' is no currency of ISO 4217"):
        await market.bars("ACME", MONDAY, 5)
