"""What Yahoo tells without a date counts for the newest session only, between close and open."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from contracts.facts import UNKNOWN_SECTOR
from libs.market.errors import NoHistory, NotInSource
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from libs.market.yahoo.market import YahooMarket
from libs.market.yahoo.shapes import ReportedSince
from tests.fakes.yahoo_live import AS_OF, BEFORE, EVENING, Live

CLOSE = datetime(2024, 3, 15, 20, tzinfo=UTC)
IN_TRADING = datetime(2024, 3, 18, 15, tzinfo=UTC)
SUNDAY = datetime(2024, 3, 17, 12, tzinfo=UTC)


async def test_figures_of_the_newest_session_are_known_at_its_close(live: Live) -> None:
    found = await live.market.fundamentals("ALFA", AS_OF)
    assert found is not None
    assert (found.known_at, found.period_end) == (CLOSE, date(2023, 12, 31))
    assert (found.eps_ttm, found.shares_outstanding, found.revenue_ttm) == (3.3, 40e6, 980e6)
    assert (found.profit_margin_pct, found.debt_to_equity) == (13.5, pytest.approx(0.33))


@pytest.mark.parametrize("moment", [EVENING, SUNDAY, datetime(2024, 3, 18, 13, 29, tzinfo=UTC)])
async def test_until_the_next_open_they_can_be_asked(live: Live, moment: datetime) -> None:
    live.at(moment)
    assert await live.market.fundamentals("ALFA", AS_OF) is not None
    assert await live.market.earnings(AS_OF, ["ALFA"])
    assert (await live.market.universe(AS_OF, ["ALFA"]))[0].sector == "Information Technology"


async def test_an_older_session_gets_a_refusal_that_says_what_to_do(live: Live) -> None:
    asked = (
        live.market.fundamentals("ALFA", BEFORE),
        live.market.earnings(BEFORE, ["ALFA"]),
        live.market.earnings(BEFORE, None),
        live.market.search(BEFORE, "alfa"),
    )
    for question in asked:
        with pytest.raises(NotInSource, match=r"only for the newest session.*replay recorded data"):
            await question
    with pytest.raises(NotInSource, match=r"universe as of 2024-03-14.*--universe"):
        await live.market.universe(BEFORE)
    for part in ("quoteSummary", "calendar", "visualization", "screener", "search"):
        assert live.server.count(part) == 0


async def test_an_older_listing_has_no_name_or_sector_of_today(live: Live) -> None:
    (listing,) = await live.market.universe(BEFORE, ["GOLF.DE"])
    assert (listing.name, listing.sector) == ("GOLF.DE", UNKNOWN_SECTOR)
    assert (listing.currency, listing.exchange, listing.country) == ("EUR", "XETR", "DE")


async def test_while_the_exchange_is_open_they_cannot_be_asked(live: Live, tmp_path: Path) -> None:
    live.at(IN_TRADING)
    with pytest.raises(NotInSource):
        await live.market.fundamentals("ALFA", AS_OF)


async def test_what_was_seen_in_the_night_still_counts_the_day_after(live: Live) -> None:
    in_the_night = await live.market.fundamentals("ALFA", AS_OF)
    live.at(datetime(2024, 3, 15, 23, 59, tzinfo=UTC))
    asked = len(live.server.asked)
    assert await live.market.fundamentals("ALFA", AS_OF) == in_the_night
    assert len(live.server.asked) == asked


async def test_a_report_after_the_close_withholds_the_figures(live: Live) -> None:
    info = live.server.market.companies["ALFA"].info
    info["earningsTimestamp"] = int(datetime(2024, 3, 15, 20, 5, tzinfo=UTC).timestamp())
    with pytest.raises(ReportedSince, match=r"reported at 2024-03-15T20:05:00.*next session"):
        await live.market.fundamentals("ALFA", AS_OF)


async def test_a_report_before_or_to_come_does_not(live: Live) -> None:
    info = live.server.market.companies["ALFA"].info
    info["earningsTimestamp"] = int(datetime(2024, 3, 15, 12, tzinfo=UTC).timestamp())
    info["earningsTimestampStart"] = int(datetime(2024, 5, 14, 20, tzinfo=UTC).timestamp())
    assert await live.market.fundamentals("ALFA", AS_OF) is not None


async def test_earnings_of_a_receipt_are_in_the_currency_of_its_price(live: Live) -> None:
    """The report's currency says nothing of it: Yahoo's own P/E does."""
    info = live.server.market.companies["ALFA"].info
    info["financialCurrency"] = "TWD"
    found = await live.market.fundamentals("ALFA", AS_OF)
    assert found is not None
    assert (found.currency, found.eps_ttm, found.revenue_ttm) == ("TWD", 3.3, 980e6)


async def test_earnings_that_the_price_earnings_ratio_contradicts_are_left_out(live: Live) -> None:
    info = live.server.market.companies["ALFA"].info
    info |= {"trailingPE": 10.0, "trailingEps": 3.3}
    found = await live.market.fundamentals("ALFA", AS_OF)
    assert found is not None
    assert found.eps_ttm is None


async def test_a_loss_is_taken_as_told(live: Live) -> None:
    info = live.server.market.companies["ALFA"].info
    info["trailingEps"] = -1.2
    found = await live.market.fundamentals("ALFA", AS_OF)
    assert found is not None
    assert found.eps_ttm == -1.2


async def test_the_market_value_is_yahoos_own_whatever_share_classes_there_are(live: Live) -> None:
    tools = MarketTools(live.market, AS_OF, MARKET_TOOL_NAMES)
    found = (await tools.call("get_fundamentals", {"ticker": "ALFA"}))["figures"]
    company = live.server.market.companies["ALFA"]
    price = (await tools.call("get_stock_price", {"ticker": "ALFA"}))["price"]
    assert found["market_cap"] == pytest.approx(price * company.shares, rel=1e-4)
    assert company.info["sharesOutstanding"] < company.shares / 2
    company.info["marketCap"] = None
    live.feed._questions._kept._answers.clear()
    unknown = (await tools.call("get_fundamentals", {"ticker": "ALFA"}))["figures"]
    assert (unknown["market_cap"], unknown["shares_outstanding"]) == (None, None)


async def test_missing_and_odd_figures_are_not_reported(live: Live) -> None:
    live.server.market.companies["ALFA"].info |= {"profitMargins": "Infinity", "totalRevenue": None}
    found = await live.market.fundamentals("ALFA", AS_OF)
    assert found is not None
    assert (found.profit_margin_pct, found.revenue_ttm) == (None, None)
    live.server.market.companies["BRVO"].info = {}
    assert await live.market.fundamentals("BRVO", AS_OF) is None


async def test_dividends_of_a_year_are_in_shares_of_as_of(live: Live) -> None:
    found = await live.market.fundamentals("FOXT", AS_OF)
    assert found is not None
    assert found.dividend_per_share_ttm == pytest.approx(0.42 * 3 + 0.45)


async def test_earnings_show_as_they_stood_at_the_close(live: Live) -> None:
    live.server.market.companies["ALFA"].reports = [
        (datetime(2023, 12, 20, 21, tzinfo=UTC), 0.88, 0.97),
        (datetime(2024, 3, 15, 20, tzinfo=UTC), 1.1, 1.4),
        (datetime(2024, 5, 14, 20, tzinfo=UTC), 0.91, None),
    ]
    past, evening, coming = await live.market.earnings(AS_OF, ["ALFA"])
    assert (past.eps_actual, past.known_at) == (0.97, datetime(2023, 12, 20, 22, tzinfo=UTC))
    assert (evening.eps_actual, evening.eps_estimate, evening.known_at) == (None, 1.1, CLOSE)
    assert (coming.eps_actual, coming.period_end) == (None, date(2024, 3, 31))


async def test_a_ticker_without_a_page_of_reports_says_so(live: Live) -> None:
    with pytest.raises(NotInSource, match=r"earnings dates of INDI.*a fund or a young listing"):
        await live.market.earnings(AS_OF, ["INDI"])


async def test_the_calendar_names_who_reports_soon(live: Live) -> None:
    due = await live.market.earnings(AS_OF, None)
    assert {row.ticker for row in due} == {"DLTA", "ECHO", "BRVO"}
    assert all(row.known_at == CLOSE for row in due)
    few = YahooMarket(live.feed, ["ECHO"])
    assert {row.ticker for row in await few.earnings(AS_OF, None)} == {"ECHO"}


async def test_without_tickers_the_screens_are_the_universe(live: Live) -> None:
    found = [listing.ticker for listing in await live.market.universe(AS_OF)]
    assert found == ["ALFA", "BRVO", "CHRL", "DLTA", "ECHO", "FOXT"]
    assert live.server.count("screener") == 3


async def test_tickers_of_the_settings_are_the_universe_of_any_session(live: Live) -> None:
    few = YahooMarket(live.feed, ["ALFA", "HTEL", "NOPE"])
    assert [listing.ticker for listing in await few.universe(BEFORE)] == ["ALFA"]
    assert live.server.count("screener") == 0
    with pytest.raises(NoHistory, match="none of the 1 tickers"):
        await YahooMarket(live.feed, ["NOPE"]).universe(BEFORE)


async def test_european_listings_are_found_live_beside_the_offline_names(live: Live) -> None:
    tools = MarketTools(live.market, AS_OF, MARKET_TOOL_NAMES)
    found = await tools.call("search_eu_stocks", {"query": "golf"})
    assert [match["ticker"] for match in found["matches"]] == ["GOLF.DE"]
    assert found["matches"][0]["in_source"]
    # An American of the same search is no European listing, and an older as_of has no live search.
    assert (await tools.call("search_eu_stocks", {"query": "alfa"}))["matches"] == []
    older = MarketTools(live.market, BEFORE, MARKET_TOOL_NAMES)
    with pytest.raises(NotInSource, match="European listings"):
        await older.call("search_eu_stocks", {"query": "golf"})
