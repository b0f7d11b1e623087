"""No look-ahead live, attacked at random: at any moment, any question about any session."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libs.market.calendar import exchange_calendar
from libs.market.errors import MarketError
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from tests.fakes.full_times import times_of
from tests.fakes.yahoo_live import Live, live_fixture

CALENDAR = exchange_calendar()
TICKERS = ["ALFA", "BRVO", "CHRL", "DLTA", "FOXT", "GOLF.DE", "HTEL", "INDI", "NOPE"]
SESSIONS = CALENDAR.sessions(date(2023, 6, 1), date(2024, 4, 5))
EXPECTED = {"no_history", "not_in_source", "unknown_ticker", "reported_since"}

bounded = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with (
        pytest.MonkeyPatch.context() as patch,
        live_fixture(patch, tmp_path_factory.mktemp("live")) as found,
    ):
        yield found


def calls() -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    ticker = st.fixed_dictionaries({"ticker": st.sampled_from(TICKERS)})
    names = sorted(MARKET_TOOL_NAMES - {"get_earnings_calendar", "search_eu_stocks"})
    return st.one_of(
        st.tuples(st.sampled_from(names), ticker),
        st.tuples(st.just("get_earnings_calendar"), st.just({})),
        st.tuples(st.just("search_eu_stocks"), st.just({"query": "golf"})),
    )


async def outcome(live: Live, as_of: date, call: tuple[str, dict[str, Any]]) -> Any:
    try:
        return await MarketTools(live.market, as_of, MARKET_TOOL_NAMES).call(*call)
    except MarketError as error:
        return error.code


@bounded
@given(as_of=st.sampled_from(SESSIONS), later=st.integers(-30, 24 * 20), call=calls())
async def test_nothing_newer_than_the_close_is_ever_answered(
    live: Live, as_of: date, later: int, call: tuple[str, dict[str, Any]]
) -> None:
    close = CALENDAR.close(as_of)
    live.at(close + timedelta(hours=later))
    found = await outcome(live, as_of, call)
    if isinstance(found, str):
        assert found in EXPECTED
        return
    assert found["newest"] is None or datetime.fromisoformat(found["newest"]) <= close
    assert all(moment <= close for moment in times_of(found))
    assert all(row[0] <= as_of.isoformat() for row in found.get("rows", ()))


@bounded
@given(as_of=st.sampled_from(SESSIONS), ticker=st.sampled_from(TICKERS))
async def test_the_answer_of_the_evening_is_the_answer_of_a_year_later(
    live: Live, tmp_path_factory: pytest.TempPathFactory, as_of: date, ticker: str
) -> None:
    """What happened since, splits and dividends above all, does not move a single bit."""
    call = ("get_stock_history", {"ticker": ticker, "days": 60})
    live.at(CALENDAR.close(as_of) + timedelta(hours=2))
    evening = live.fresh(tmp_path_factory.mktemp("evening"))
    then = await outcome(evening, as_of, call)
    live.at(datetime(2024, 4, 12, 23, tzinfo=UTC))
    assert await outcome(live, as_of, call) == then
