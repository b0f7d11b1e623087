"""Moments as people write them."""

from datetime import date, timedelta
from zoneinfo import ZoneInfo

import pytest

from libs.runtime.when import AtSession, Cron, parse

NEW_YORK = ZoneInfo("America/New_York")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("open", AtSession("open", timedelta())),
        ("close+30m", AtSession("close", timedelta(minutes=30))),
        ("close-1h15m", AtSession("close", -timedelta(hours=1, minutes=15))),
        ("open+90m", AtSession("open", timedelta(minutes=90))),
        ("close+12h", AtSession("close", timedelta(hours=12))),
        ("30 16 * * mon-fri", Cron("30 16 * * mon-fri")),
        ("*/15 9-16 * * *", Cron("*/15 9-16 * * *")),
    ],
)
def test_cron_and_session_times_are_understood(text: str, moment: object) -> None:
    assert parse(text) == moment


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 25 * * *", "field hour"),
        ("61 * * * *", "field minute"),
        ("0 0 30 2 *", "field day-of-month"),
        ("* * *", "neither cron's five fields"),
        ("0 0 16 * * *", "neither cron's five fields"),
        ("close+", "neither"),
        ("close+13h", "at most 12 hours"),
        ("lunch+5m", "neither"),
        ("", "neither"),
    ],
)
def test_what_is_neither_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_a_day_has_cron_s_moments_in_the_zone_s_own_time() -> None:
    moments = list(Cron("0 9,16 * * *").on(date(2024, 7, 3), NEW_YORK))

    assert [f"{each:%Y-%m-%d %H:%M %z}" for each in moments] == [
        "2024-07-03 09:00 -0400",
        "2024-07-03 16:00 -0400",
    ]


def test_midnight_is_the_day_s_first_moment() -> None:
    (moment,) = Cron("0 0 * * *").on(date(2024, 7, 3), NEW_YORK)

    assert f"{moment:%Y-%m-%d %H:%M}" == "2024-07-03 00:00"


def test_an_hour_that_a_day_has_not_runs_once_and_one_that_it_has_twice_runs_once() -> None:
    (spring,) = Cron("30 2 * * *").on(date(2024, 3, 10), NEW_YORK)
    autumn = list(Cron("30 1 * * *").on(date(2024, 11, 3), NEW_YORK))

    assert f"{spring:%H:%M %z}" == "03:00 -0400"
    assert len(autumn) == 1
