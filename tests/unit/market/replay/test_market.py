from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from libs.market.calendar import OutsideCalendar
from libs.market.errors import (
    CryptoNotSupported,
    MarketError,
    NoHistory,
    NotASession,
    NothingTraded,
    NotInSource,
    UnknownTicker,
)
from libs.market.replay.layout import find_bundled
from libs.market.replay.market import (
    ADJUSTED_BARS,
    ADJUSTED_KEPT_MAX,
    UNIVERSES_KEPT_MAX,
    ReplayFills,
    ReplayMarket,
    ReplayStore,
)
from libs.market.source import (
    BAR_SCHEMA,
    FillPrices,
    MarketData,
    SourceLabel,
    move_of,
)
from tests.data.fixture_market.make_fixture import AS_OF

MIDSUMMER = date(2012, 6, 29)


async def test_the_last_close_is_the_raw_one(bundled: ReplayMarket) -> None:
    bars = await bundled.bars("AAPL", MIDSUMMER, 400)
    assert bars.schema == BAR_SCHEMA
    assert bars.height == 400
    assert bars["date"][-1] == MIDSUMMER
    assert bars["close"][-1] == 584.0
    assert bars["volume"][-1] == 15_053_600


async def test_a_split_is_no_fall_in_the_price(bundled: ReplayMarket) -> None:
    before = await bundled.bars("AAPL", date(2005, 2, 25), 2)
    after = await bundled.bars("AAPL", date(2005, 2, 28), 2)
    assert before["close"][-1] == 88.99
    assert after["close"][0] == pytest.approx(88.99 / 2)
    assert after["volume"][0] == pytest.approx(before["volume"][-1] * 2)


@pytest.mark.parametrize("later", [date(2005, 2, 28), MIDSUMMER])
async def test_bars_are_the_same_whatever_was_asked_before(
    bundled: ReplayMarket, later: date
) -> None:
    store = bundled._store
    for asked in (2, ADJUSTED_BARS + 100, 60, ADJUSTED_BARS, 10_000, 1):
        await bundled.bars("AAPL", MIDSUMMER, asked)
        fresh = await ReplayMarket(store).bars("AAPL", later, asked)
        assert (await bundled.bars("AAPL", later, asked)).equals(fresh)


async def test_adjusted_bars_are_kept_for_so_many_tickers_and_sessions(
    bundled: ReplayMarket,
) -> None:
    sessions = bundled.calendar.sessions(date(2012, 1, 3), MIDSUMMER)
    assert len(sessions) > ADJUSTED_KEPT_MAX
    for session in sessions:
        first = await bundled.bars("MSFT", session, 5)
        assert first.equals(await bundled.bars("MSFT", session, 5))
    assert len(bundled._adjusted) == ADJUSTED_KEPT_MAX
    assert ("MSFT", MIDSUMMER) in bundled._adjusted
    assert ("MSFT", sessions[0]) not in bundled._adjusted


async def test_who_traded_is_kept_for_a_session_and_the_tickers_asked_for(
    bundled: ReplayMarket,
) -> None:
    store = bundled._store
    for session in bundled.calendar.sessions(date(2012, 6, 1), MIDSUMMER):
        for tickers in (None, ("MSFT", "AAPL"), ("AAPL", "NOPE"), ()):
            fresh = await ReplayMarket(store).universe(session, tickers)
            assert await bundled.universe(session, tickers) == fresh
            assert await bundled.universe(session, tickers) == fresh
    assert len(bundled._universes) == UNIVERSES_KEPT_MAX


@pytest.mark.parametrize(
    "session",
    [
        date(2000, 3, 1),  # the first bars
        date(2005, 2, 28),  # a split of AAPL
        date(2012, 8, 9),  # dividends
        date(2012, 5, 18),  # the first bar of FB
        MIDSUMMER,
    ],
)
async def test_the_moves_of_a_session_are_those_of_each_tickers_last_two_bars(
    bundled: ReplayMarket, session: date
) -> None:
    tickers = [listing.ticker for listing in await bundled.universe(session)]
    moves = await bundled.session_moves(session, tickers)
    assert moves == {name: move_of(await bundled.bars(name, session, 2)) for name in tickers}
    if session == date(2012, 5, 18):
        assert moves["FB"].change_pct is None


async def test_no_move_is_told_of_a_session_without_a_bar(bundled: ReplayMarket) -> None:
    with pytest.raises(NoHistory):
        await bundled.session_moves(date(2012, 5, 17), ["FB"])
    with pytest.raises(NotASession):
        await bundled.session_moves(date(2012, 6, 30), ["AAPL"])


async def test_returns_are_those_of_the_adjusted_close(bundled: ReplayMarket) -> None:
    vendor = (
        pl.read_csv(find_bundled(), try_parse_dates=True)
        .filter((pl.col("Ticker") == "MSFT") & (pl.col("Date") <= MIDSUMMER))
        .sort("Date")
    )
    ours = await bundled.bars("MSFT", MIDSUMMER, vendor.height)
    theirs = vendor["Adj Close"] / vendor["Adj Close"][-1] * vendor["Close"][-1]
    assert (ours["close"] / theirs - 1).abs().max() < 1e-9


async def test_dividends_of_the_bundled_prices_are_whole_cents(bundled_fills: ReplayFills) -> None:
    actions = await bundled_fills.actions("IBM", date(2000, 1, 1), date(2013, 3, 1))
    cents = [action.dividend_per_share * 100 for action in actions]
    assert len(cents) == 52
    assert all(cent == int(cent) for cent in cents)
    assert all(action.split_ratio == 1 for action in actions)


async def test_splits_of_the_bundled_prices_are_recognised(bundled_fills: ReplayFills) -> None:
    found = {
        (action.ticker, action.session, action.split_ratio)
        for ticker in ("AAPL", "MSFT", "GOOG", "FB", "IBM")
        for action in await bundled_fills.actions(ticker, date(2000, 1, 1), date(2013, 3, 1))
        if action.split_ratio != 1
    }
    assert found == {
        ("AAPL", date(2000, 6, 21), 2),
        ("AAPL", date(2005, 2, 28), 2),
        ("MSFT", date(2003, 2, 18), 2),
    }


async def test_actions_are_those_after_the_first_day_through_the_last(
    bundled_fills: ReplayFills,
) -> None:
    ex_date = date(2012, 8, 9)
    assert await bundled_fills.actions("AAPL", ex_date, date(2012, 8, 10)) == ()
    (action,) = await bundled_fills.actions("AAPL", date(2012, 8, 8), ex_date)
    assert action.dividend_per_share == Decimal("2.65")


async def test_the_fill_is_the_raw_open_of_the_next_session(bundled_fills: ReplayFills) -> None:
    fill = await bundled_fills.next_open("AAPL", MIDSUMMER)
    assert fill.session == date(2012, 7, 2)
    assert fill.opens_at == datetime(2012, 7, 2, 13, 30, tzinfo=UTC)
    assert fill.open == Decimal("584.73")
    assert fill.currency == "USD"
    assert fill.action is None


async def test_a_fill_names_the_split_at_its_open(fixture_fills: ReplayFills) -> None:
    fill = await fixture_fills.next_open("DLTA", date(2023, 10, 13))
    assert fill.action is not None
    assert fill.action.split_ratio == 2


async def test_a_fill_is_in_the_currency_of_the_listing(fixture_fills: ReplayFills) -> None:
    assert (await fixture_fills.next_open("GOLF.DE", AS_OF)).currency == "EUR"


async def test_fundamentals_are_in_the_currency_of_the_listing(fixture: ReplayMarket) -> None:
    for ticker, currency in (("GOLF.DE", "EUR"), ("ALFA", "USD")):
        known = await fixture.fundamentals(ticker, AS_OF)
        assert known is not None
        assert known.currency == currency


async def test_there_is_no_fill_after_the_data_or_the_delisting(
    bundled_fills: ReplayFills, fixture_fills: ReplayFills
) -> None:
    with pytest.raises(NoHistory, match="2013-03-04"):
        await bundled_fills.next_open("AAPL", date(2013, 3, 1))
    with pytest.raises(NoHistory, match="HTEL did not trade"):
        await fixture_fills.next_open("HTEL", date(2024, 1, 5))


@pytest.mark.parametrize(
    ("ticker", "as_of", "error", "says"),
    [
        ("XYZ", MIDSUMMER, UnknownTicker, "XYZ is not in source bokeh-sampledata"),
        ("aapl", MIDSUMMER, UnknownTicker, "check the spelling"),
        ("../AAPL", MIDSUMMER, CryptoNotSupported, "equities only"),
        ("BTC/USD", MIDSUMMER, CryptoNotSupported, "leave it out"),
        ("BTC-USD", MIDSUMMER, CryptoNotSupported, "leave it out"),
        ("AAPL", date(2012, 6, 30), NotASession, "weekend.*2012-06-29 or 2012-07-02"),
        ("AAPL", date(2012, 7, 4), NotASession, "holiday.*2012-07-03 or 2012-07-05"),
        ("FB", date(2012, 5, 17), NoHistory, "no prices at or before 2012-05-17"),
        ("AAPL", date(2000, 2, 29), NoHistory, "no prices at or before"),
        ("AAPL", date(2013, 3, 4), NothingTraded, "last one is of 2013-03-01"),
        ("AAPL", date(1850, 1, 2), OutsideCalendar, "1990-01-01 to 2030-12-31"),
    ],
)
async def test_what_cannot_be_answered_says_why(
    bundled: ReplayMarket, ticker: str, as_of: date, error: type[MarketError], says: str
) -> None:
    with pytest.raises(error, match=says) as caught:
        await bundled.bars(ticker, as_of, 10)
    assert type(caught.value) is error
    assert caught.value.code != MarketError.code


async def test_a_missing_price_does_not_tell_when_the_share_will_be_listed(
    bundled: ReplayMarket,
) -> None:
    with pytest.raises(NoHistory) as caught:
        await bundled.bars("FB", date(2010, 1, 4), 10)
    assert "2012" not in str(caught.value)


async def test_a_delisted_share_is_an_error_and_not_an_old_price(fixture: ReplayMarket) -> None:
    assert (await fixture.bars("HTEL", date(2024, 1, 5), 5)).height == 5
    with pytest.raises(NoHistory, match="last one is of 2024-01-05, so it was delisted"):
        await fixture.bars("HTEL", date(2024, 1, 8), 5)


async def test_the_universe_holds_what_traded_at_the_close(
    bundled: ReplayMarket, fixture: ReplayMarket
) -> None:
    assert [found.ticker for found in await bundled.universe(date(2012, 5, 17))] == [
        "AAPL",
        "GOOG",
        "IBM",
        "MSFT",
    ]
    assert "FB" in {found.ticker for found in await bundled.universe(date(2012, 5, 18))}
    listed = {found.ticker: found for found in await fixture.universe(AS_OF)}
    assert "HTEL" not in listed
    assert listed["INDI"].sector == "unknown"
    assert listed["GOLF.DE"].currency == "EUR"
    assert sum(found.sector == "Information Technology" for found in listed.values()) == 4


async def test_a_universe_outside_the_data_names_the_span(bundled: ReplayMarket) -> None:
    for day, where in ((date(2000, 2, 29), "before the data"), (date(2013, 3, 4), "after the da")):
        with pytest.raises(NoHistory, match=f"{where}.*2000-03-01 to 2013-03-01"):
            await bundled.universe(day)


async def test_asking_for_named_tickers_leaves_out_what_did_not_trade(
    bundled: ReplayMarket,
) -> None:
    found = await bundled.universe(date(2012, 5, 17), ("FB", "AAPL", "NOPE"))
    assert [listing.ticker for listing in found] == ["AAPL"]


async def test_all_bundled_companies_were_information_technology_then(
    bundled: ReplayMarket,
) -> None:
    sectors = {found.sector for found in await bundled.universe(MIDSUMMER)}
    assert sectors == {"Information Technology"}


async def test_news_ends_at_the_close_newest_first_and_leaves_out_the_undated(
    fixture: ReplayMarket,
) -> None:
    items = await fixture.news(AS_OF, ["ALFA"], 50)
    assert [item.known_at for item in items] == [
        datetime(2024, 3, 15, 19, 59, tzinfo=UTC),
        datetime(2024, 3, 12, 14, 5, tzinfo=UTC),
        datetime(2024, 2, 20, 13, 0, tzinfo=UTC),
    ]
    assert len(await fixture.news(AS_OF, None, 4)) == 4


async def test_news_of_a_day_is_known_at_that_sessions_close(fixture: ReplayMarket) -> None:
    upgraded = datetime(2024, 3, 14, 20, tzinfo=UTC)
    assert upgraded in {item.known_at for item in await fixture.news(AS_OF, ["BRVO"], 50)}
    before = await fixture.news(date(2024, 3, 13), ["BRVO"], 50)
    assert upgraded not in {item.known_at for item in before}


async def test_a_restatement_counts_from_the_time_it_was_known(fixture: ReplayMarket) -> None:
    eps = {}
    for day in (date(2024, 2, 16), date(2024, 2, 20), AS_OF, date(2024, 4, 2)):
        known = await fixture.fundamentals("ALFA", day)
        assert known is not None
        eps[day] = known.eps_ttm
    assert list(eps.values()) == [3.10, 3.45, 3.30, 1.05]
    assert await fixture.fundamentals("ALFA", date(2023, 11, 7)) is None


async def test_figures_from_before_a_split_are_in_todays_shares(fixture: ReplayMarket) -> None:
    before = await fixture.fundamentals("DLTA", date(2023, 10, 13))
    after = await fixture.fundamentals("DLTA", date(2023, 10, 16))
    assert before is not None
    assert after is not None
    assert (before.eps_ttm, before.shares_outstanding) == (8.40, 100e6)
    assert (after.eps_ttm, after.shares_outstanding) == (4.20, 200e6)


async def test_an_earnings_date_moves_when_the_news_is_out(fixture: ReplayMarket) -> None:
    (then,) = await fixture.earnings(AS_OF, ["BRVO"])
    (later,) = await fixture.earnings(date(2024, 3, 25), ["BRVO"])
    assert (then.report_date, later.report_date) == (date(2024, 4, 30), date(2024, 3, 28))


async def test_filings_are_those_known_at_the_close_in_whatever_order_it_is_asked(
    bundled: ReplayMarket,
) -> None:
    late = await bundled.filings("AAPL", date(2010, 5, 28))
    early = await bundled.filings("AAPL", date(2009, 10, 30))
    assert 0 < len(early) < len(late)
    assert early == late[: len(early)]
    assert all(filing.known_at <= bundled.calendar.close(date(2009, 10, 30)) for filing in early)
    assert await bundled.filings("AAPL", date(2010, 5, 28)) == late


async def test_what_the_bundled_source_lacks_is_said(bundled: ReplayMarket) -> None:
    with pytest.raises(NotInSource, match=r"no news; .*your own folder: docs/own-data\.md$"):
        await bundled.news(MIDSUMMER, ["AAPL"], 5)
    with pytest.raises(NotInSource, match="no earnings"):
        await bundled.earnings(MIDSUMMER, None)


async def test_what_a_folder_lacks_is_to_be_put_into_that_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    bars = "date,open,high,low,close,volume\n2012-06-28,1,1,1,1,9\n2012-06-29,1,1,1,1,9\n"
    (tmp_path / "own" / "AAA.csv").write_text(bars)
    (tmp_path / "own" / "source.toml").write_text('name = "prices"\n')
    monkeypatch.chdir(tmp_path / "own")
    for directory in (tmp_path / "own", Path(), Path("../own/")):
        market = ReplayMarket(ReplayStore(directory))
        with pytest.raises(NotInSource, match=r"no news; .* put news\.csv into own/$"):
            await market.news(date(2012, 6, 29), ["AAA"], 5)


async def test_made_up_prices_are_labelled(fixture: ReplayMarket, bundled: ReplayMarket) -> None:
    assert fixture.label.synthetic
    assert "synthetic" in SourceLabel("mine", "", synthetic=True).in_words, (
        "also without a description"
    )
    assert "made-up" in fixture.label.description
    assert not bundled.label.synthetic


async def test_asking_for_no_sessions_is_a_fault_of_the_caller(bundled: ReplayMarket) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        await bundled.bars("AAPL", MIDSUMMER, 0)


def test_the_sources_fit_their_protocols(bundled_store: ReplayStore) -> None:
    market: MarketData = ReplayMarket(bundled_store)
    fills: FillPrices = ReplayFills(bundled_store)
    assert not hasattr(market, "next_open")
    assert not hasattr(fills, "bars")
