import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.market.calendar import (
    TABLE_FIRST,
    TABLE_LAST,
    TABLE_PATH,
    DayKind,
    ExchangeCalendar,
    OutsideCalendar,
    computed_calendar,
    exchange_calendar,
    table_lines,
)
from libs.market.errors import UnknownExchange
from tests.fakes.calendars import works

NEW_YORK = exchange_calendar()


@pytest.mark.parametrize(
    ("day", "kind"),
    [
        (date(2012, 6, 29), DayKind.SESSION),
        (date(2012, 6, 30), DayKind.WEEKEND),
        (date(2012, 7, 4), DayKind.HOLIDAY),
        (date(2001, 9, 12), DayKind.HOLIDAY),
        (date(2012, 10, 29), DayKind.HOLIDAY),
        (date(1889, 7, 1), DayKind.OUTSIDE),
        (date(2031, 1, 2), DayKind.OUTSIDE),
    ],
)
def test_a_day_is_explained(day: date, kind: DayKind) -> None:
    assert NEW_YORK.kind(day) is kind


@pytest.mark.parametrize(
    ("session", "close"),
    [
        (date(2012, 6, 29), datetime(2012, 6, 29, 20, tzinfo=UTC)),  # summer time
        (date(2012, 12, 28), datetime(2012, 12, 28, 21, tzinfo=UTC)),  # winter time
        (date(2012, 7, 3), datetime(2012, 7, 3, 17, tzinfo=UTC)),  # early close
    ],
)
def test_a_date_means_the_close_of_its_session_in_utc(session: date, close: datetime) -> None:
    assert NEW_YORK.close(session) == close
    assert NEW_YORK.close(session).tzinfo is UTC


def test_the_open_is_half_past_nine_in_new_york() -> None:
    assert NEW_YORK.open(date(2012, 7, 2)) == datetime(2012, 7, 2, 13, 30, tzinfo=UTC)


def test_a_day_without_a_session_has_no_close() -> None:
    with pytest.raises(OutsideCalendar, match="2012-07-04"):
        NEW_YORK.close(date(2012, 7, 4))


def test_neighbours_skip_weekends_and_holidays() -> None:
    assert NEW_YORK.next_session(date(2012, 7, 3)) == date(2012, 7, 5)
    assert NEW_YORK.previous_session(date(2012, 7, 5)) == date(2012, 7, 3)
    assert NEW_YORK.session_on_or_after(date(2012, 6, 30)) == date(2012, 7, 2)
    assert NEW_YORK.session_on_or_before(date(2012, 7, 1)) == date(2012, 6, 29)


def test_a_session_is_the_last_closed_one_only_from_its_close_on() -> None:
    assert NEW_YORK.last_closed(datetime(2012, 7, 3, 16, 59, tzinfo=UTC)) == date(2012, 7, 2)
    assert NEW_YORK.last_closed(datetime(2012, 7, 3, 17, 0, tzinfo=UTC)) == date(2012, 7, 3)
    assert NEW_YORK.last_closed(datetime(2012, 7, 4, 22, 0, tzinfo=UTC)) == date(2012, 7, 3)


def test_the_end_of_the_calendar_is_an_error_and_no_endless_search() -> None:
    with pytest.raises(OutsideCalendar, match="1990-01-01 to 2030-12-31"):
        NEW_YORK.next_session(date(2030, 12, 31))


@given(st.dates(TABLE_FIRST.replace(year=1991), TABLE_LAST.replace(year=2029)))
def test_next_and_previous_undo_each_other_on_sessions(day: date) -> None:
    session = NEW_YORK.session_on_or_after(day)
    assert NEW_YORK.is_session(session)
    assert NEW_YORK.previous_session(NEW_YORK.next_session(session)) == session
    assert NEW_YORK.open(session) < NEW_YORK.close(session)


@pytest.mark.slow
def test_the_table_is_what_exchange_calendars_computes() -> None:
    computed = computed_calendar("XNYS", TABLE_FIRST, TABLE_LAST)
    written = [line for line in TABLE_PATH.read_text().splitlines() if not line.startswith("#")]
    assert written == table_lines(computed)
    assert computed == NEW_YORK


@pytest.mark.slow
def test_other_exchanges_and_years_are_computed() -> None:
    frankfurt = exchange_calendar("XFRA", date(2024, 1, 1), date(2024, 12, 31))
    assert frankfurt.kind(date(2024, 7, 4)) is DayKind.SESSION
    assert frankfurt.kind(date(2024, 5, 1)) is DayKind.HOLIDAY
    assert frankfurt.close(date(2024, 7, 4)) == datetime(2024, 7, 4, 15, 30, tzinfo=UTC)


@pytest.mark.slow
@pytest.mark.parametrize("exchange", ["XXXX", "../etc", ""])
def test_an_unknown_exchange_is_a_typed_error(exchange: str) -> None:
    with pytest.raises(UnknownExchange, match="ISO 10383"):
        exchange_calendar(exchange)


def test_the_tools_do_not_load_pandas() -> None:
    program = (
        "import asyncio, datetime, sys\n"
        "from libs.market.replay.market import ReplayMarket, ReplayStore\n"
        "from libs.market.tools.toolbox import MARKET_TOOL_NAMES, MarketTools\n"
        "tools = MarketTools(ReplayMarket(ReplayStore()), datetime.date(2012, 6, 29), "
        "MARKET_TOOL_NAMES)\n"
        "asyncio.run(tools.call('get_technical_indicators', {'ticker': 'IBM'}))\n"
        "heavy = {'pandas', 'exchange_calendars', 'bokeh_sampledata', 'yfinance'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


TRIED = ("XTKS", "XSHG", "XBOM", "XSES", "XTAE", "XSAU", "XHKG", "ASEX", "XLON", "CMES")
"""tests/integration/market/test_calendars.py tries all."""


@pytest.fixture(scope="module")
def computed() -> Mapping[str, ExchangeCalendar]:
    return {name: exchange_calendar(name) for name in TRIED}


@pytest.mark.slow
def test_a_calendar_works_within_its_own_years(computed: Mapping[str, ExchangeCalendar]) -> None:
    for calendar in computed.values():
        works(calendar)


@pytest.mark.parametrize(
    ("exchange", "first", "last"),
    [
        ("XTKS", date(1997, 1, 1), TABLE_LAST),
        ("XSHG", date(1990, 12, 3), date(2026, 12, 31)),
        ("XBOM", date(1997, 1, 1), date(2026, 12, 31)),
        ("XSAU", date(2021, 1, 1), date(2029, 12, 31)),
        ("XTAE", TABLE_FIRST, TABLE_LAST),
    ],
)
def test_a_calendar_has_the_years_that_are_known_of_it(
    computed: Mapping[str, ExchangeCalendar], exchange: str, first: date, last: date
) -> None:
    assert (computed[exchange].first, computed[exchange].last) == (first, last)


@pytest.mark.parametrize(
    ("exchange", "day", "kind"),
    [
        ("XSAU", date(2024, 5, 3), DayKind.WEEKEND),
        ("XSAU", date(2024, 5, 5), DayKind.SESSION),
        ("XTAE", date(2025, 6, 15), DayKind.SESSION),  # a Sunday: it traded so until 2026
        ("XTAE", date(2026, 6, 14), DayKind.WEEKEND),
        ("XTKS", date(2024, 1, 1), DayKind.HOLIDAY),
        ("XTKS", date(1996, 12, 30), DayKind.OUTSIDE),
    ],
)
def test_weekends_are_those_of_the_exchange(
    computed: Mapping[str, ExchangeCalendar], exchange: str, day: date, kind: DayKind
) -> None:
    assert computed[exchange].kind(day) is kind


@pytest.mark.parametrize("exchange", ["24/5", "24/7", "24/7/365", "XXXX", "", "x" * 500])
def test_a_market_without_a_close_and_an_unknown_code_are_refused(exchange: str) -> None:
    with pytest.raises(UnknownExchange, match="no calendar for exchange") as refused:
        exchange_calendar(exchange)
    assert len(refused.value.message) < 260
