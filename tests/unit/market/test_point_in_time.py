"""No look-ahead, attacked at random: what later rows say must not move a single bit."""

import shutil
from datetime import date, datetime
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libs.market.calendar import exchange_calendar
from libs.market.errors import MarketError
from libs.market.replay.files import read_bundled
from libs.market.replay.layout import find_bundled
from libs.market.replay.market import ReplayMarket, ReplayStore
from libs.market.tools.answers import RESULT_BYTES_MAX
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from tests.data.fixture_market.make_fixture import HERE as FIXTURE_DIRECTORY
from tests.data.fixture_market.make_fixture import LAST, SESSIONS, STORIES
from tests.fakes.full_times import times_of

CALENDAR = exchange_calendar()
FIXTURE_TICKERS = [story.ticker for story in STORIES]
BUNDLED_TICKERS = ["AAPL", "FB", "GOOG", "IBM", "MSFT"]
RECORDS = ("news", "fundamentals", "filings", "earnings", "sectors")

quick = settings(max_examples=60)
slow_to_build = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])


def calls(tickers: list[str]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    ticker = st.fixed_dictionaries({"ticker": st.sampled_from(tickers)})
    history = st.tuples(ticker, st.integers(1, 400)).map(lambda got: got[0] | {"days": got[1]})
    news = st.tuples(ticker, st.integers(1, 50)).map(lambda got: got[0] | {"max_items": got[1]})
    return st.one_of(
        st.tuples(st.just("get_stock_price"), ticker),
        st.tuples(st.just("get_fundamentals"), ticker),
        st.tuples(st.just("get_filings"), ticker),
        st.tuples(st.just("get_technical_indicators"), ticker),
        st.tuples(st.just("get_stock_history"), history),
        st.tuples(st.just("get_news"), news),
        st.tuples(st.just("get_earnings"), ticker),
        st.tuples(st.just("get_earnings_calendar"), st.just({})),
        st.tuples(st.just("search_eu_stocks"), st.fixed_dictionaries({"query": st.just("a")})),
    )


async def outcome(market: ReplayMarket, as_of: date, name: str, arguments: dict[str, Any]) -> Any:
    try:
        return await MarketTools(market, as_of, MARKET_TOOL_NAMES).call(name, arguments)
    except MarketError as error:
        return (error.code, str(error))


@quick
@given(as_of=st.dates(date(2000, 3, 1), date(2013, 3, 8)), call=calls([*BUNDLED_TICKERS, "NOPE"]))
async def test_no_result_on_real_prices_is_newer_than_as_of(
    bundled: ReplayMarket, as_of: date, call: tuple[str, dict[str, Any]]
) -> None:
    found = await outcome(bundled, as_of, *call)
    if isinstance(found, tuple):
        assert found[0] in {"not_a_session", "no_history", "not_in_source", "unknown_ticker"}
    else:
        assert found["as_of"] == as_of.isoformat()
        # Filings are not of every session; before the sample's there are none.
        if call[0] != "get_filings" and found.get("figures", call) is not None:
            assert datetime.fromisoformat(found["newest"]) == CALENDAR.close(as_of)
        assert all(time <= CALENDAR.close(as_of) for time in times_of(found))
        assert all(row[0] <= as_of.isoformat() for row in found.get("rows", ()))


@quick
@given(as_of=st.sampled_from(SESSIONS), call=calls(FIXTURE_TICKERS))
async def test_no_result_on_the_fixture_is_newer_than_as_of(
    fixture: ReplayMarket, as_of: date, call: tuple[str, dict[str, Any]]
) -> None:
    found = await outcome(fixture, as_of, *call)
    text = orjson.dumps(found).decode()
    assert "UNDATED" not in text
    if as_of < date(2024, 3, 18):
        assert "FROM THE FUTURE" not in text
        assert "AFTER THE CLOSE" not in text
    if isinstance(found, dict):
        assert all(time <= CALENDAR.close(as_of) for time in times_of(found))


def truncated_fixture(folder: Path, as_of: date) -> ReplayMarket:
    """The fixture directory as it stood at the close of as_of."""
    shutil.copy(FIXTURE_DIRECTORY / "source.toml", folder)
    for path in FIXTURE_DIRECTORY.glob("*.csv"):
        rows = pl.read_csv(path, infer_schema=False)
        if path.stem not in RECORDS:
            rows = rows.filter(pl.col("date") <= as_of.isoformat())
        elif "known_at" in rows.columns:
            known = [_known_by(text, as_of) for text in rows["known_at"]]
            rows = rows.filter(pl.Series(known, dtype=pl.Boolean))
        if rows.height or path.stem in RECORDS:
            rows.write_csv(folder / path.name)
    return ReplayMarket(ReplayStore(folder))


def _told(found: Any) -> Any:
    """The outcome; before its first bar a share is unknown to one source and bare to the other."""
    if isinstance(found, tuple):
        return "no_history" if found[0] == "unknown_ticker" else found[0]
    return found


def _known_by(text: str | None, as_of: date) -> bool:
    if not text:
        return False
    if len(text) == 10:
        return date.fromisoformat(text) <= as_of
    return datetime.fromisoformat(text) <= CALENDAR.close(as_of)


@slow_to_build
@given(
    as_of=st.sampled_from(SESSIONS),
    some=st.lists(calls(FIXTURE_TICKERS), min_size=3, max_size=8),
)
async def test_every_tool_answers_the_same_when_the_later_rows_do_not_exist(
    fixture: ReplayMarket,
    tmp_path_factory: pytest.TempPathFactory,
    as_of: date,
    some: list[tuple[str, dict[str, Any]]],
) -> None:
    cut = truncated_fixture(tmp_path_factory.mktemp("cut"), as_of)
    for name, arguments in some:
        full = await outcome(fixture, as_of, name, arguments)
        assert _told(full) == _told(await outcome(cut, as_of, name, arguments))


@pytest.fixture(scope="module")
def vendor_rows() -> pl.DataFrame:
    return pl.read_csv(find_bundled(), try_parse_dates=True)


@slow_to_build
@given(
    as_of=st.dates(date(2000, 3, 10), date(2013, 3, 1)).map(CALENDAR.session_on_or_before),
    ticker=st.sampled_from(["AAPL", "IBM", "MSFT"]),
    sessions=st.integers(1, 600),
)
async def test_bars_equal_those_of_a_file_downloaded_at_as_of(
    bundled: ReplayMarket,
    vendor_rows: pl.DataFrame,
    tmp_path_factory: pytest.TempPathFactory,
    as_of: date,
    ticker: str,
    sessions: int,
) -> None:
    # A vendor restates the adjusted close with every later dividend. On as_of it still ended at
    # the raw close; vendors print six decimals.
    then = vendor_rows.filter((pl.col("Ticker") == ticker) & (pl.col("Date") <= as_of))
    scale = then["Close"][-1] / then["Adj Close"][-1]
    folder = tmp_path_factory.mktemp("then")
    restated = then.with_columns((pl.col("Adj Close") * scale).round(6))
    restated.write_csv(folder / "stocks.csv")
    read_bundled(folder / "stocks.csv")[ticker].write_parquet(folder / f"{ticker}.parquet")
    (folder / "stocks.csv").unlink()
    cut = ReplayMarket(ReplayStore(folder))
    full = await bundled.bars(ticker, as_of, sessions)
    assert full.equals(await cut.bars(ticker, as_of, sessions))
    assert full["close"][-1] == then["Close"][-1]


@quick
@given(
    days=st.tuples(st.sampled_from(SESSIONS), st.sampled_from(SESSIONS)).map(sorted),
    ticker=st.sampled_from(["ALFA", "DLTA", "FOXT"]),
)
async def test_returns_do_not_depend_on_the_day_they_are_asked_on(
    fixture: ReplayMarket, days: list[date], ticker: str
) -> None:
    earlier, later = days
    then = await fixture.bars(ticker, earlier, 50)
    now = await fixture.bars(ticker, later, len(SESSIONS))
    now = now.filter(pl.col("date").is_in(then["date"].to_list()))
    ratio = now["close"] / then["close"]
    assert ratio.max() == pytest.approx(ratio.min(), rel=1e-12)


def test_the_last_session_of_the_fixture_is_the_end_of_its_calendar() -> None:
    assert SESSIONS[-1] == LAST


@pytest.fixture(scope="module")
def bare_fixtures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ReplayMarket]:
    """The fixture directory without one of its files of records each."""
    made = {}
    for missing in RECORDS:
        folder = tmp_path_factory.mktemp(missing)
        for path in FIXTURE_DIRECTORY.iterdir():
            if path.suffix in {".csv", ".toml"} and path.stem != missing:
                shutil.copy(path, folder)
        made[missing] = ReplayMarket(ReplayStore(folder))
    return made


REFUSALS = {"not_a_session", "no_history", "not_in_source", "unknown_ticker"}


@quick
@given(
    missing=st.sampled_from(RECORDS),
    as_of=st.dates(date(2022, 12, 20), date(2024, 4, 30)),
    call=calls([*FIXTURE_TICKERS, "NOPE"]),
)
async def test_whatever_file_is_missing_on_whatever_day_an_answer_is_bounded_and_of_the_past(
    bare_fixtures: dict[str, ReplayMarket],
    missing: str,
    as_of: date,
    call: tuple[str, dict[str, Any]],
) -> None:
    found = await outcome(bare_fixtures[missing], as_of, *call)
    if isinstance(found, tuple):
        assert found[0] in REFUSALS
        return
    assert len(orjson.dumps(found)) <= RESULT_BYTES_MAX
    assert all(time <= CALENDAR.close(as_of) for time in times_of(found))
    assert missing not in {"news", "fundamentals", "filings", "earnings"} or missing not in call[0]
