"""No look-ahead with Alpaca, attacked at random: at any moment, any question about any session."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libs.market.errors import MarketError
from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools
from tests.fakes.alpaca_live import CALENDAR, TICKERS, AlpacaLive, alpaca_serving
from tests.fakes.alpaca_server import Bar, Story
from tests.fakes.full_times import times_of

NAMES = [*TICKERS, "OLDN", "NOPE", "SAP.DE"]
SESSIONS = CALENDAR.sessions(date(2024, 2, 20), date(2024, 4, 4))
EXPECTED = {"no_history", "not_in_source", "unknown_ticker"}
TOOLS = sorted(MARKET_TOOL_NAMES - {"search_eu_stocks"})

bounded = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Held:
    """Hypothesis writes down its arguments, and would the whole world of a dataclass."""

    def __init__(self, live: AlpacaLive) -> None:
        self.live = live


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    """The made-up world, with an edit and a forming bar at each session."""
    with alpaca_serving(tmp_path_factory.mktemp("alpaca")) as live:
        for number, day in enumerate(SESSIONS):
            opens, close = CALENDAR.open(day), CALENDAR.close(day)
            live.world.bars["ALFA"].insert(
                0, Bar(day, 1.0, 1.0, 1.0, 1.0, 1, opens + timedelta(minutes=15))
            )
            live.world.stories.append(
                Story(
                    100 + number,
                    ("ALFA", "BRVO"),
                    opens,
                    [
                        (opens, f"early {day}"),
                        (close + timedelta(hours=1 + number % 30), f"late {day}"),
                    ],
                )
            )
        yield Held(live)


async def outcome(live: AlpacaLive, as_of: date, name: str, ticker: str) -> Any:
    arguments = {} if name == "get_earnings_calendar" else {"ticker": ticker}
    try:
        return await MarketTools(live.market, as_of, MARKET_TOOL_NAMES).call(name, arguments)
    except MarketError as error:
        return error.code


@bounded
@given(
    as_of=st.sampled_from(SESSIONS),
    later=st.integers(-30, 24 * 40),
    name=st.sampled_from(TOOLS),
    ticker=st.sampled_from(NAMES),
)
async def test_nothing_newer_than_the_close_is_ever_answered(
    held: Held, as_of: date, later: int, name: str, ticker: str
) -> None:
    alpaca = held.live
    close = CALENDAR.close(as_of)
    alpaca.at(close + timedelta(hours=later))
    found = await outcome(alpaca.fresh(), as_of, name, ticker)
    if isinstance(found, str):
        assert found in EXPECTED
        return
    assert later > 0
    assert all(moment <= close for moment in times_of(found))
    assert all(row[0] <= as_of.isoformat() for row in found.get("rows", ()))
    for item in found.get("items", ()):
        days = [word for word in item["title"].split() if word[:2] == "20"]
        assert not item["title"].startswith("late") or all(day < as_of.isoformat() for day in days)


@bounded
@given(as_of=st.sampled_from(SESSIONS[:-3]), ticker=st.sampled_from(NAMES))
async def test_the_prices_of_the_evening_are_those_of_weeks_later(
    held: Held, as_of: date, ticker: str
) -> None:
    """Splits, dividends and changes of tickers since do not move a single bit."""
    alpaca = held.live
    alpaca.at(CALENDAR.close(as_of) + timedelta(hours=2))
    then = await outcome(alpaca.fresh(), as_of, "get_stock_history", ticker)
    alpaca.at(datetime(2024, 4, 12, 23, tzinfo=UTC))
    later = await outcome(alpaca.fresh(), as_of, "get_stock_history", ticker)
    if isinstance(then, dict):
        notes = then.pop("odd")
        assert notes.pop() == f"the prices of {as_of} are provisional until the next morning"
        then |= {"odd": notes} if notes else {}
    assert later == then


async def test_a_changed_future_changes_no_answer_of_the_past(held: Held) -> None:
    alpaca = held.live
    as_of = date(2024, 3, 8)
    alpaca.at(CALENDAR.close(as_of) + timedelta(hours=2))
    names = [name for name in TOOLS if name != "get_earnings_calendar"]

    async def everything() -> list[Any]:
        live = alpaca.fresh()
        return [await outcome(live, as_of, name, ticker) for name in names for ticker in NAMES]

    before = await everything()
    alpaca.world.happens(
        "reverse_splits",
        symbol="ALFA",
        ex_date="2024-03-11",
        process_date="2024-03-11",
        new_rate=1,
        old_rate=10,
        old_cusip="0",
        new_cusip="1",
    )
    alpaca.world.happens(
        "name_changes",
        old_symbol="ALFA",
        new_symbol="OMGA",
        process_date="2024-03-12",
        old_cusip="0",
        new_cusip="1",
    )
    alpaca.world.lists("OMGA", "ALFA", date(2024, 3, 12))
    assert await everything() == before
