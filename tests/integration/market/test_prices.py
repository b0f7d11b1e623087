"""Prices: raw as traded whatever Yahoo adjusted since, in whole units, final bars only."""

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from libs.market.errors import (
    BadVendorData,
    CryptoNotSupported,
    MarketError,
    NoHistory,
    NotAnEquity,
    NotASession,
    SourceUnavailable,
    UnknownTicker,
)
from libs.market.replay.market import ReplayFills, ReplayMarket, ReplayStore
from tests.fakes.yahoo_live import AS_OF, BEFORE, FIXTURE, Live
from tests.fakes.yahoo_market import Company, Row, weekdays

TRUTH = ReplayMarket(ReplayStore(FIXTURE))
LONDON = ZoneInfo("Europe/London")


def company(ticker: str, rows: list[Row], **told: object) -> Company:
    return Company(ticker, rows, name=f"{ticker} plc", sector="Mining", **told)  # type: ignore[arg-type]


def flat(price: float, days: int = 20, last: date = AS_OF) -> list[Row]:
    """Quiet weekdays up to `last`."""
    found = weekdays(last - timedelta(days=2 * days), 2 * days)
    return [
        Row(day, price, price * 1.01, price * 0.99, price, 1_000) for day in found if day <= last
    ][-days:]


def london(rows: list[Row], **told: object) -> Company:
    zone = {"zone": LONDON, "opens": time(8), "closes": time(16, 30)}
    return company("PIT.L", rows, quoted="GBp", exchange="LSE", **zone, **told)


def listed(live: Live, made: Company) -> None:
    live.server.market.companies[made.ticker] = made


@pytest.mark.parametrize("ticker", ["ALFA", "DLTA", "FOXT", "GOLF.DE", "INDI"])
@pytest.mark.parametrize("as_of", [AS_OF, date(2023, 10, 16), date(2023, 10, 13)])
async def test_bars_are_the_markets_own_to_the_last_bit(
    live: Live, ticker: str, as_of: date
) -> None:
    try:
        expected = await TRUTH.bars(ticker, as_of, 300)
    except NoHistory:
        with pytest.raises(NoHistory):
            await live.market.bars(ticker, as_of, 300)
        return
    assert (await live.market.bars(ticker, as_of, 300)).equals(expected)


async def test_a_split_after_as_of_moves_no_price_of_as_of(live: Live, tmp_path: Path) -> None:
    before = date(2023, 10, 13)
    asked_later = await live.market.bars("DLTA", before, 50)
    live.at(datetime(2023, 10, 13, 23, tzinfo=UTC))
    asked_then = await live.fresh(tmp_path / "b").market.bars("DLTA", before, 50)
    assert asked_later.equals(asked_then)
    assert asked_then["close"][-1] > 300  # it was split two for one on the session after


async def test_fills_and_actions_are_raw(live: Live) -> None:
    truth = ReplayFills(ReplayStore(FIXTURE))
    assert await live.fills.next_open("DLTA", date(2023, 10, 13)) == await truth.next_open(
        "DLTA", date(2023, 10, 13)
    )
    span = (date(2023, 1, 3), AS_OF)
    for ticker in ("DLTA", "FOXT"):
        assert await live.fills.actions(ticker, *span) == await truth.actions(ticker, *span)


async def test_the_open_of_a_session_that_is_not_over_is_not_known(live: Live) -> None:
    with pytest.raises(NoHistory, match=r"2024-03-18.*is not over.*the order waits"):
        await live.fills.next_open("ALFA", AS_OF)
    live.at(datetime(2024, 3, 18, 18, tzinfo=UTC))  # in the middle of it
    with pytest.raises(NoHistory, match="is not over"):
        await live.fills.next_open("ALFA", AS_OF)
    with pytest.raises(NoHistory, match="cannot know"):
        await live.fills.actions("ALFA", AS_OF, date(2024, 3, 18))
    live.at(datetime(2024, 3, 18, 23, tzinfo=UTC))
    assert (await live.fills.next_open("ALFA", AS_OF)).session == date(2024, 3, 18)


async def test_a_bar_counts_half_an_hour_after_the_close(live: Live) -> None:
    live.at(datetime(2024, 3, 15, 20, 29, tzinfo=UTC))
    with pytest.raises(NoHistory, match=r"cannot be read.*before 2024-03-15T20:30.*2024-03-14"):
        await live.market.bars("ALFA", AS_OF, 1)
    assert (await live.market.bars("ALFA", BEFORE, 1))["date"][-1] == BEFORE
    live.at(datetime(2024, 3, 15, 20, 30, tzinfo=UTC))
    assert (await live.market.bars("ALFA", AS_OF, 1))["date"][-1] == AS_OF


async def test_pence_become_pounds(live: Live) -> None:
    listed(live, london(flat(4.5)))
    bars = await live.market.bars("PIT.L", AS_OF, 5)
    assert bars["close"].to_list() == [4.5] * 5
    (listing,) = await live.market.universe(AS_OF, ["PIT.L"])
    assert (listing.currency, listing.exchange, listing.country) == ("GBP", "XLON", "GB")


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"dividend_unit": 0.01},  # pounds, where prices are pence
        {"dividend_unit": 0.013, "dividend_currency": "USD"},
    ],
)
async def test_a_dividend_comes_out_in_the_prices_currency_however_yahoo_says_it(
    live: Live, told: dict[str, object]
) -> None:
    rows = flat(4.5)
    rows[-5].dividend = 0.09
    listed(live, london(rows, **told))
    (paid,) = await live.fills.actions("PIT.L", rows[0].day, AS_OF)
    assert (paid.session, float(paid.dividend_per_share)) == (rows[-5].day, pytest.approx(0.09))


async def test_a_dividend_in_another_currency_that_cannot_be_worked_out_is_refused(
    live: Live,
) -> None:
    rows = flat(4.5)
    rows[0].close, rows[1].dividend = None, 0.09  # nothing stands before it
    listed(live, london(rows, dividend_currency="USD"))
    live.server.market.companies["PIT.L"].rows[1].dividend = 1e-9
    rows[1].dividend = 1e-9
    rows[2].dividend = 1e-9
    with pytest.raises(BadVendorData, match="a dividend in USD"):
        await live.market.bars("PIT.L", AS_OF, 5)


async def test_days_without_a_close_are_left_out_and_their_events_move_on(live: Live) -> None:
    rows = flat(10.0)
    rows[-4].dividend = 0.5
    rows[-4].close = rows[-4].open = None
    rows[-8].close = None
    listed(live, company("GAPS", rows))
    bars = await live.market.bars("GAPS", AS_OF, 50)
    assert bars.height == len(rows) - 2
    (paid,) = await live.fills.actions("GAPS", rows[0].day, AS_OF)
    assert (paid.session, float(paid.dividend_per_share)) == (rows[-3].day, 0.5)


async def test_a_split_that_is_listed_but_not_in_the_prices_is_refused(
    live: Live, tmp_path: Path
) -> None:
    rows = flat(10.0)
    rows[-5].split = 4.0
    for row in rows[:-5]:
        row.open, row.high, row.low, row.close = 40.0, 40.4, 39.6, 40.0
    listed(live, company("SPLT", rows, splits_applied=False))
    with pytest.raises(BadVendorData, match=f"the split of {rows[-5].day} is not in its prices"):
        await live.market.bars("SPLT", AS_OF, 5)
    live.server.market.companies["SPLT"].splits_applied = True
    applied = live.fresh(tmp_path / "b").market
    assert (await applied.bars("SPLT", AS_OF, 9))["close"].to_list() == [10.0] * 9


async def test_a_split_of_today_without_a_price_since_waits(live: Live) -> None:
    rows = flat(10.0)
    rows[-1].split, rows[-1].close = 2.0, None
    listed(live, company("SPLT", rows))
    with pytest.raises(SourceUnavailable, match="has no price since"):
        await live.market.bars("SPLT", BEFORE, 5)


async def test_an_exchange_that_closes_later_than_new_york_is_not_known_at_its_close(
    live: Live,
) -> None:
    later = {"zone": ZoneInfo("America/Los_Angeles"), "opens": time(6, 30), "closes": time(14)}
    listed(live, company("LATE", flat(10.0), **later))
    with pytest.raises(NoHistory, match="trades on after the close of XNYS"):
        await live.market.bars("LATE", AS_OF, 5)
    assert await live.market.universe(AS_OF, ["LATE", "ALFA"]) != ()


@pytest.mark.parametrize("ticker", ["BTC-USD", "BTC/USD", "ETH-EUR"])
async def test_crypto_is_refused_without_asking(live: Live, ticker: str) -> None:
    with pytest.raises(CryptoNotSupported):
        await live.market.bars(ticker, AS_OF, 5)
    assert live.server.asked == []


@pytest.mark.parametrize(
    ("kind", "error"),
    [("CRYPTOCURRENCY", CryptoNotSupported), ("INDEX", NotAnEquity), ("FUTURE", NotAnEquity)],
)
async def test_what_is_no_share_is_refused(live: Live, kind: str, error: type[MarketError]) -> None:
    listed(live, company("ODD", flat(10.0), kind=kind))
    with pytest.raises(error):
        await live.market.bars("ODD", AS_OF, 5)
    assert await live.market.universe(AS_OF, ["ODD"]) == ()


async def test_unknown_delisted_and_young_tickers_say_which(live: Live) -> None:
    with pytest.raises(UnknownTicker, match="source yahoo"):
        await live.market.bars("NOPE", AS_OF, 1)
    with pytest.raises(NoHistory, match="2024-01"):
        await live.market.bars("HTEL", AS_OF, 1)
    listed(live, company("YUNG", flat(10.0, 3)))
    with pytest.raises(NoHistory, match="2024-01-05"):
        await live.market.bars("YUNG", date(2024, 1, 5), 1)
    assert await live.market.universe(AS_OF, ["NOPE", "HTEL"]) == ()


async def test_a_ticker_without_any_row_in_the_years_asked_for_has_no_history(live: Live) -> None:
    listed(live, company("LONG", flat(10.0, last=date(2015, 6, 30))))
    with pytest.raises(NoHistory, match="LONG has no prices on Yahoo for these days"):
        await live.market.bars("LONG", AS_OF, 1)


async def test_a_class_of_shares_has_yahoos_name(live: Live) -> None:
    listed(live, company("BRK-B", flat(400.0)))
    assert (await live.market.bars("BRK.B", AS_OF, 1))["close"][0] == 400.0
    (listing,) = await live.market.universe(AS_OF, ["BRK.B"])
    assert (listing.ticker, listing.name) == ("BRK.B", "BRK-B plc")


async def test_a_day_without_trading_names_its_neighbours(live: Live) -> None:
    with pytest.raises(NotASession, match="2024-03-15 or 2024-03-18"):
        await live.market.bars("ALFA", date(2024, 3, 16), 1)


async def test_an_older_question_than_the_three_years_kept_asks_for_more(live: Live) -> None:
    rows = flat(10.0, 1_500)
    listed(live, company("LONG", rows))
    assert (await live.market.bars("LONG", AS_OF, 5)).height == 5
    charts = live.server.count("/chart/LONG?period1")
    assert (await live.market.bars("LONG", AS_OF, 1_200)).height == 1_200
    assert live.server.count("/chart/LONG?period1") == charts + 1
    assert (await live.market.bars("LONG", date(2020, 1, 3), 3)).height == 3
