"""Prices from Alpaca: raw as asked, adjusted here, and of the company that had the ticker then."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from libs.market.alpaca import feed as feeds
from libs.market.alpaca.standing import PriceFeed
from libs.market.errors import (
    BadVendorData,
    NoHistory,
    NothingTraded,
    NotInSource,
    SourceUnavailable,
    UnknownTicker,
)
from libs.market.source import said_of
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from services.sentiment.sources import Screener
from tests.fakes.alpaca_live import (
    AS_OF,
    BEFORE,
    CALENDAR,
    CLOSE,
    EVENING,
    NEXT,
    TICKERS,
    AlpacaLive,
)
from tests.fakes.alpaca_server import ACTIONS, BARS, Bar

MORNING = datetime(2024, 3, 16, 14, 0, tzinfo=UTC)


async def close_of(live: AlpacaLive, ticker: str, as_of: date = AS_OF) -> float:
    return (await live.market.bars(ticker, as_of, 1))["close"][-1]


async def test_bars_are_asked_raw_as_of_the_day_and_up_to_its_close(alpaca: AlpacaLive) -> None:
    bars = await alpaca.market.bars("ALFA", AS_OF, 300)
    assert (bars.height, bars["date"][-1]) == (300, AS_OF)
    (asked,) = [each for each in alpaca.server.parameters(BARS) if each["symbols"] == "ALFA"]
    assert asked["adjustment"] == "raw"
    assert asked["asof"] == "2024-03-15"
    assert asked["end"] == "2024-03-15T20:00:00Z"
    assert asked["feed"] == "sip"
    assert asked["limit"] == "10000"


async def test_splits_and_dividends_adjust_what_was_before_them(alpaca: AlpacaLive) -> None:
    bars = await alpaca.market.bars("DLTA", AS_OF, 2)
    raw = await alpaca.market.raw_bars("DLTA", AS_OF)
    assert bars["close"][0] == pytest.approx(raw["close"][-2] / 2)
    assert bars["volume"][0] == pytest.approx(raw["volume"][-2] * 2)
    assert bars["close"][1] == raw["close"][-1], "the last close is the raw one"
    paid = (await alpaca.market.raw_bars("BRVO", AS_OF)).filter(pl.col("dividend") > 0)
    assert paid.select("date", "dividend").rows() == [(date(2024, 3, 14), 0.5)]
    (_, split), *rest = [(day, factor) for day, factor in await alpaca.market.splits("DLTA", AS_OF)]
    assert (split, rest) == (2.0, [])


async def test_a_dividend_that_is_processed_weeks_later_counts_from_its_ex_date(
    alpaca: AlpacaLive,
) -> None:
    asked = await alpaca.market.raw_bars("BRVO", BEFORE)
    assert asked["dividend"][-1] == 0.5
    windows = [(each["start"], each["end"]) for each in alpaca.server.parameters(ACTIONS)]
    assert windows == [("2021-03-10", "2024-05-13")]


async def test_a_split_to_come_is_in_no_answer_though_alpaca_tells_it(alpaca: AlpacaLive) -> None:
    assert (await alpaca.market.splits("CHLI", AS_OF)) == []
    before = await alpaca.market.bars("CHLI", AS_OF, 30)
    alpaca.at(datetime(2024, 3, 25, 23, tzinfo=UTC))
    later = alpaca.fresh()
    assert (await later.market.bars("CHLI", AS_OF, 30)).equals(before)
    assert [factor for _, factor in await later.market.splits("CHLI", date(2024, 3, 22))] == [2.0]


async def test_a_ticker_means_the_company_that_had_it_on_the_day(alpaca: AlpacaLive) -> None:
    """Both tickers are one company: the old one before the change, the new one after it."""
    frame = await alpaca.market.raw_bars("NEWN", AS_OF)
    assert frame["date"][0] < date(2024, 1, 1), "with what it was before"
    paid = frame.filter(pl.col("dividend") > 0).select("date", "dividend").rows()
    assert paid == [(date(2023, 11, 15), 0.2), (date(2024, 3, 12), 0.3)]
    old = date(2024, 2, 28)
    assert (await alpaca.market.raw_bars("OLDN", old))["date"][-1] == old
    with pytest.raises(NoHistory):
        await alpaca.market.raw_bars("NEWN", old)
    with pytest.raises(NoHistory):
        await alpaca.market.raw_bars("OLDN", AS_OF)


async def test_actions_of_another_company_that_had_the_ticker_before_are_not_mixed_in(
    alpaca: AlpacaLive,
) -> None:
    alpaca.world.happens(
        "cash_dividends",
        symbol="NEWN",
        ex_date="2023-06-15",
        process_date="2023-06-15",
        rate=9.0,
        special=False,
        foreign=False,
        cusip="7",
    )
    paid = (await alpaca.market.raw_bars("NEWN", AS_OF)).filter(pl.col("dividend") > 0)
    assert 9.0 not in paid["dividend"].to_list()


async def test_a_session_is_usable_16_minutes_after_its_close_and_provisional_until_morning(
    alpaca: AlpacaLive,
) -> None:
    alpaca.at(CLOSE + timedelta(minutes=15, seconds=59))
    with pytest.raises(NothingTraded, match="before 2024-03-15T20:16"):
        await alpaca.market.bars("ALFA", AS_OF, 2)
    assert alpaca.feed.settled() == BEFORE
    alpaca.at(CLOSE + timedelta(minutes=16))
    assert alpaca.feed.settled() == AS_OF
    told = await MarketTools(alpaca.market, AS_OF, MARKET_TOOL_NAMES).call(
        "get_stock_price", {"ticker": "ALFA"}
    )
    assert "the prices of 2024-03-15 are provisional until the next morning" in told["odd"]
    assert "provisional" in said_of(alpaca.market, AS_OF)
    alpaca.at(MORNING)
    assert "provisional" not in said_of(alpaca.market, AS_OF)


async def test_the_mornings_correction_replaces_the_provisional_bar(alpaca: AlpacaLive) -> None:
    evening = await close_of(alpaca, "ALFA")
    low = (await alpaca.market.bars("ALFA", AS_OF, 1))["low"][-1]
    alpaca.world.bars["ALFA"].append(
        Bar(
            AS_OF,
            evening - 0.1,
            evening + 0.1,
            evening - 0.2,
            evening,
            900_000,
            datetime(2024, 3, 16, 10, tzinfo=UTC),
        )
    )
    alpaca.at(datetime(2024, 3, 16, 12, 59, tzinfo=UTC))  # 08:59 in New York
    assert (await alpaca.market.bars("ALFA", AS_OF, 1))["low"][-1] == low
    alpaca.at(datetime(2024, 3, 16, 13, 1, tzinfo=UTC))
    assert (await alpaca.market.bars("ALFA", AS_OF, 1))["low"][-1] == pytest.approx(evening - 0.2)


async def test_half_days_close_early(alpaca: AlpacaLive) -> None:
    half = date(2023, 11, 24)
    alpaca.at(datetime(2023, 11, 24, 18, 16, tzinfo=UTC))
    assert alpaca.feed.settled() == half
    assert (await alpaca.market.bars("ALFA", half, 1))["date"][-1] == half
    assert alpaca.server.parameters(BARS)[-1]["end"] == "2023-11-24T18:00:00Z"


async def test_the_running_session_is_in_no_answer(alpaca: AlpacaLive) -> None:
    world = alpaca.world
    world.bars["ALFA"].append(
        Bar(NEXT, 1.0, 1.0, 1.0, 1.0, 1, datetime(2024, 3, 18, 13, 45, tzinfo=UTC))
    )
    alpaca.at(datetime(2024, 3, 18, 15, tzinfo=UTC))
    bars = await alpaca.market.bars("ALFA", AS_OF, 5)
    assert bars["date"][-1] == AS_OF
    with pytest.raises(NothingTraded):
        await alpaca.market.bars("ALFA", NEXT, 5)
    with pytest.raises(NoHistory, match="the order waits"):
        await alpaca.fills.next_open("ALFA", AS_OF)


# --- what the account may read ------------------------------------------------------------------


async def test_what_the_account_may_read_is_asked_once_and_told(alpaca: AlpacaLive) -> None:
    await alpaca.market.bars("ALFA", AS_OF, 2)
    await alpaca.market.bars("BRVO", AS_OF, 2)
    (probe,) = [each for each in alpaca.server.parameters(BARS) if each["symbols"] == "SPY"]
    assert (probe["feed"], probe["end"]) == ("sip", "2024-03-08T21:00:00Z")
    assert [each.feed for each in alpaca.told] == [PriceFeed.SIP]
    assert "IEX" not in said_of(alpaca.market, AS_OF)


async def test_an_account_of_iex_alone_has_no_volume_screens_and_says_so(
    alpaca: AlpacaLive,
) -> None:
    alpaca.world.sip = False
    moves = await alpaca.market.session_moves(AS_OF, ["ALFA", "BRVO"])
    assert {move.turnover for move in moves.values()} == {None}
    assert all(move.change_pct is not None for move in moves.values())
    asked = [each["feed"] for each in alpaca.server.parameters(BARS)]
    assert asked == ["sip", "iex", "iex"], "an old bar of both, and then the question"
    mentions = await Screener(alpaca.market).find(AS_OF, ["ALFA", "BRVO", "DLTA"])
    assert mentions
    assert not any("most active" in mention.reason for mention in mentions)
    assert (await alpaca.fills.next_open("ALFA", BEFORE)).volume is None
    words = said_of(alpaca.market, AS_OF)
    assert "IEX only" in words
    assert "screens by volume are off" in words
    assert len(words) < 400


async def test_too_late_a_question_of_the_tape_is_no_account_of_iex_alone(
    alpaca: AlpacaLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the desk's clock is ahead: the session is still within the last 15 minutes."""
    await alpaca.feed.price_feed()
    monkeypatch.setattr(alpaca.feed, "settled_after", timedelta(minutes=1))
    alpaca.at(CLOSE + timedelta(minutes=10))
    with pytest.raises(SourceUnavailable, match="clock right"):
        await alpaca.market.bars("ALFA", AS_OF, 2)
    assert alpaca.feed.known_feed is PriceFeed.SIP


async def test_a_clock_that_is_ahead_of_alpacas_gets_no_answer(alpaca: AlpacaLive) -> None:
    alpaca.server.clock_offset = timedelta(minutes=-6)
    with pytest.raises(SourceUnavailable, match="ahead of its own"):
        await alpaca.market.bars("ALFA", AS_OF, 2)


# --- pages, and answers that contradict themselves ----------------------------------------------


async def test_pages_of_many_tickers_are_joined(alpaca: AlpacaLive) -> None:
    whole = {ticker: await alpaca.market.bars(ticker, AS_OF, 5) for ticker in TICKERS}
    other = alpaca.fresh()
    alpaca.server.page_rows_max = 70
    found = await other.feed.frames(TICKERS, AS_OF, 12)
    for ticker in TICKERS:
        frame = found[ticker]
        assert isinstance(frame, pl.DataFrame)
        assert frame["date"].to_list()[-5:] == whole[ticker]["date"].to_list()


@pytest.mark.parametrize("fault", ["repeats", "endless"])
async def test_pages_that_never_end_end_with_what_is_wrong(
    alpaca: AlpacaLive, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "PAGES_MAX", 10)
    await alpaca.feed.price_feed()
    setattr(alpaca.server, fault, True)
    for _ in range(2):
        with pytest.raises(BadVendorData, match=r"came before|more than"):
            await alpaca.market.universe(AS_OF)
    assert alpaca.server.count(BARS) <= 12


async def test_a_symbol_that_is_none_costs_no_other(
    alpaca: AlpacaLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "is_us_ticker", lambda _: True)
    frames = await alpaca.feed.frames(("ALFA", "B-D", "BRVO"), AS_OF, 12)
    assert isinstance(frames["B-D"], UnknownTicker)
    assert all(isinstance(frames[name], pl.DataFrame) for name in ("ALFA", "BRVO"))


async def test_tickers_of_other_markets_are_not_asked_for(alpaca: AlpacaLive) -> None:
    for ticker in ("SAP.DE", "AAPL1", "alfa", "ÄLFA"):
        with pytest.raises(UnknownTicker):
            await alpaca.market.bars(ticker, AS_OF, 2)
    assert not alpaca.server.asked


async def test_a_bar_that_contradicts_itself_is_told(alpaca: AlpacaLive) -> None:
    since = CLOSE + timedelta(minutes=15)
    alpaca.world.bars["ALFA"].append(Bar(AS_OF, 10.0, 9.0, 11.0, 10.0, 5, since))
    with pytest.raises(BadVendorData, match="contradicts itself"):
        await alpaca.market.bars("ALFA", AS_OF, 2)
    listed = [each.ticker for each in await alpaca.market.universe(AS_OF)]
    assert listed == ["BRVO", "CHLI", "DLTA", "NEWN"]


async def test_a_split_that_the_raw_prices_do_not_show_is_refused(alpaca: AlpacaLive) -> None:
    alpaca.world.happens(
        "reverse_splits",
        symbol="ALFA",
        ex_date="2024-03-13",
        process_date="2024-03-13",
        new_rate=1,
        old_rate=15,
        old_cusip="0",
        new_cusip="1",
    )
    with pytest.raises(BadVendorData, match="split of 2024-03-13 is not in its raw prices"):
        await alpaca.market.bars("ALFA", AS_OF, 30)


async def test_the_universe_is_named_and_holds_who_traded(alpaca: AlpacaLive) -> None:
    listings = await alpaca.market.universe(AS_OF)
    assert [listing.ticker for listing in listings] == sorted(TICKERS)
    assert {(each.currency, each.sector) for each in listings} == {("USD", "unknown")}
    with pytest.raises(NotInSource, match="DESKBUS_ALPACA_TICKERS"):
        await alpaca.fresh(tickers=()).market.universe(AS_OF)
    with pytest.raises(NoHistory, match="none of the 1 tickers"):
        await alpaca.fresh(tickers=("ZZZZ",)).market.universe(AS_OF)
    assert alpaca.server.count(ACTIONS) == 3, "one for all tickers, one for those they had before"


async def test_fills_are_at_the_raw_open_with_what_happened_there(alpaca: AlpacaLive) -> None:
    fill = await alpaca.fills.next_open("DLTA", BEFORE)
    raw = (await alpaca.market.raw_bars("DLTA", AS_OF)).row(-1, named=True)
    assert (fill.session, fill.opens_at) == (AS_OF, CALENDAR.open(AS_OF))
    assert fill.open == Decimal(str(raw["open"]))
    assert fill.action is not None
    assert fill.action.split_ratio == 2
    assert fill.volume == raw["volume"]
    actions = await alpaca.fills.actions("BRVO", date(2024, 3, 1), AS_OF)
    assert [(each.session, each.dividend_per_share) for each in actions] == [
        (date(2024, 3, 14), Decimal("0.5"))
    ]
    with pytest.raises(NoHistory, match="not over"):
        await alpaca.fills.actions("BRVO", BEFORE, NEXT)


async def test_what_is_known_is_not_asked_for_again(alpaca: AlpacaLive) -> None:
    await alpaca.market.universe(AS_OF)
    asked = len(alpaca.server.asked)
    assert asked == 4, "what the account may read, bars, actions, those of earlier tickers"
    for ticker in TICKERS:
        await alpaca.market.universe(AS_OF, (ticker,))
    await alpaca.market.session_moves(AS_OF, TICKERS)
    assert len(alpaca.server.asked) == asked
    await alpaca.market.bars("ALFA", AS_OF, 500)
    assert len(alpaca.server.asked) == asked, "few tickers are asked for with their whole history"


async def test_of_many_tickers_only_the_session_is_asked_for_at_once(
    alpaca: AlpacaLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "FEW", 3)
    await alpaca.market.universe(AS_OF)
    assert alpaca.server.parameters(BARS)[-1]["start"] == "2024-03-03"
    await alpaca.market.bars("ALFA", AS_OF, 500)
    assert alpaca.server.parameters(BARS)[-1]["start"] == "2021-03-11"
    asked = len(alpaca.server.asked)
    await alpaca.market.universe(AS_OF, ("ALFA",))
    assert len(alpaca.server.asked) == asked


async def test_what_alpaca_has_not_is_named_with_who_may_have_it(alpaca: AlpacaLive) -> None:
    for question in (
        alpaca.market.fundamentals("ALFA", AS_OF),
        alpaca.market.filings("ALFA", AS_OF),
        alpaca.market.earnings(AS_OF, ["ALFA"]),
    ):
        with pytest.raises(NotInSource, match="DESKBUS_MARKET_"):
            await question
    assert EVENING > CLOSE
