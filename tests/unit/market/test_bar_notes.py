"""Jumps and holes in a ticker's bars are told, because they cannot be refused."""

from datetime import date

import polars as pl
import pytest

from libs.market.bar_notes import NOTES_MAX, notes_of
from libs.market.calendar import exchange_calendar
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.market.source import BAR_SCHEMA
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from libs.market.yahoo.bars import _gathered
from libs.market.yahoo.calls import YahooChart
from tests.unit.market.conftest import FIXTURE_DIRECTORY

CALENDAR = exchange_calendar()
DAYS = CALENDAR.sessions(date(2024, 3, 1), date(2024, 3, 28))


def bars(closes, days=DAYS):
    rows = [
        (day, close, close, close, close, 1.0) for day, close in zip(days, closes, strict=False)
    ]
    return pl.DataFrame(rows, schema=BAR_SCHEMA, orient="row")


def test_whole_and_calm_bars_have_nothing_odd() -> None:
    assert notes_of("AAA", bars([100.0] * len(DAYS)), CALENDAR, 40) == []


def test_a_jump_is_told_where_it_is_beyond_the_setting() -> None:
    odd = bars([100.0, 100.0, 7_000.0, 100.0])
    up, down = notes_of("AAA", odd, CALENDAR, 40)
    assert up.startswith("2024-03-05: the close moved by +6,900.0% in a session")
    assert down.startswith("2024-03-06: the close moved by -98.6%")
    assert notes_of("AAA", odd, CALENDAR, 7_000) == []


def test_sessions_without_a_bar_are_counted() -> None:
    days = [day for day in DAYS if not date(2024, 3, 5) <= day <= date(2024, 3, 8)]
    (note,) = notes_of("AAA", bars([100.0] * len(days), days), CALENDAR, 40)
    assert note == "2024-03-11: 4 sessions without a bar before it, since 2024-03-04"


def test_holidays_of_another_exchange_are_no_holes() -> None:
    days = [day for day in DAYS if day != date(2024, 3, 5)]
    assert notes_of("AAA.DE", bars([100.0] * len(days), days), CALENDAR, 40) == []
    assert len(notes_of("AAA", bars([100.0] * len(days), days), CALENDAR, 40)) == 1


def test_only_the_newest_are_told_and_the_others_counted() -> None:
    notes = notes_of("AAA", bars([1.0, 100.0] * 9), CALENDAR, 40)
    assert len(notes) == NOTES_MAX + 1
    assert notes[0] == "and 7 earlier ones"


async def test_the_tools_tell_what_is_odd(tmp_path) -> None:
    odd = bars([100.0, 100.0, 100.0, 180.0], [DAYS[0], DAYS[1], DAYS[3], DAYS[4]])
    odd.write_csv(tmp_path / "AAA.csv")
    tools = MarketTools(ReplayMarket(ReplayStore(tmp_path)), DAYS[4], MARKET_TOOL_NAMES)
    price = await tools.call("get_stock_price", {"ticker": "AAA"})
    assert [note[:10] for note in price["odd"]] == ["2024-03-07"]
    for name in ("get_stock_history", "get_technical_indicators"):
        told = await tools.call(name, {"ticker": "AAA"})
        assert [note[:10] for note in told["odd"]] == ["2024-03-06", "2024-03-07"]


@pytest.mark.parametrize("ticker", ["ALFA", "FOXT"])
async def test_the_fixture_has_nothing_odd_where_splits_explain_it(ticker: str) -> None:
    tools = MarketTools(
        ReplayMarket(ReplayStore(FIXTURE_DIRECTORY)), date(2024, 3, 15), MARKET_TOOL_NAMES
    )
    assert "odd" not in await tools.call("get_technical_indicators", {"ticker": ticker})


def test_a_vendors_bar_that_contradicts_itself_is_none() -> None:
    columns = {
        "Open": [10.0, 10.0, 12.0, 10.0],
        "High": [11.0] * 4,
        "Low": [9.0] * 4,
        "Close": [10.0, 999.0, 10.0, 11.0005],
        "Adj Close": [10.0, 999.0, 10.0, 11.0005],
        "Volume": [1.0] * 4,
        "Dividends": [0.0, 0.5, 0.0, 0.0],
        "Stock Splits": [0.0] * 4,
    }
    table = _gathered("AAA", YahooChart(DAYS[:4], columns, {}, {}))
    whole = table.filter(pl.col("close").is_not_null())
    assert whole["date"].to_list() == [DAYS[0], DAYS[3]]
    assert whole["dividend"].to_list() == [0.0, 0.5]
