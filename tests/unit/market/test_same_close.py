"""Exit checks of a schedule that can see nothing new."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from libs.market.calendar import exchange_calendar
from libs.market.same_close import same_close
from libs.runtime.schedule_settings import Job, Schedule

ROOT = Path(__file__).parents[3]
CALENDAR = exchange_calendar()
NOW = datetime(2012, 6, 30, tzinfo=UTC)


def warned(**jobs: dict[str, Any]) -> list[str]:
    made = {name: Job.model_validate({"kind": "exit", **job}) for name, job in jobs.items()}
    return same_close(made, CALENDAR, NOW)


def test_checks_within_a_session_look_at_the_close_before_it_again() -> None:
    (told,) = warned(sells={"when": ["open+30m", "30 12 * * *", "close-15m"]})

    assert told.startswith("account main: 3 exit checks look at the same close, that of 2012-05-25")
    assert "sells 2012-05-29 10:00, sells 2012-05-29 12:30, sells 2012-05-29 15:45" in told
    assert told.endswith('check once a session, after the close, with when = "close+30m"')


def test_two_jobs_that_check_one_account_at_one_close_are_told_too() -> None:
    (told,) = warned(evening={"when": "close+30m"}, morning={"when": "open+30m"})
    assert "evening 2012-05-29 16:30, morning 2012-05-30 10:00" in told


@pytest.mark.parametrize(
    "jobs",
    [
        {"once": {"when": "close+30m"}},
        {"once": {"when": "open+30m"}},
        {"one": {"when": "close+30m"}, "other": {"when": "close+40m", "account": "growth"}},
        {
            "one": {"when": "close+30m", "universe": ["AAPL"]},
            "other": {"when": "close+40m", "universe": ["IBM"]},
        },
        {"decide": {"when": ["open+30m", "close-15m"], "kind": "decision"}},
        {"yearly": {"when": "0 12 1 1 *"}},
        {},
    ],
)
def test_checks_that_each_see_something_of_their_own_give_no_warning(jobs: dict[str, Any]) -> None:
    assert warned(**jobs) == []


def test_a_check_of_all_repeats_one_of_some() -> None:
    (told,) = warned(some={"when": "close+30m", "universe": ["AAPL"]}, all={"when": "close+40m"})
    assert "2 exit checks" in told


@pytest.mark.parametrize("path", ["docs/schedule.md", "deploy/deskbus.toml"])
def test_the_schedules_that_we_recommend_give_no_warning(path: str) -> None:
    """The first example of the page, and the one to uncomment."""
    text = (ROOT / path).read_text()
    if path.endswith(".md"):
        example = text.split("```toml\n")[1].split("```")[0]
    else:
        lines = text[text.index("# [schedule") :].splitlines()
        example = "\n".join(line.removeprefix("# ").removeprefix("#") for line in lines)
    jobs = Schedule.model_validate(tomllib.loads(example)["schedule"]).jobs

    assert [job.kind for job in jobs.values()] == ["exit", "decision", "report"]
    assert same_close(jobs, CALENDAR, NOW) == []
