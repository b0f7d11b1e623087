"""`deskbus schedule` on a running desk, and a desk whose clock runs by itself."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nats.errors
import pytest

from libs.runtime.schedule_settings import Schedule
from libs.runtime.sections import CycleSettings
from tests.integration.conftest import OwnEnvironmentIn
from tests.integration.desk.command_line import CommandLine
from tests.integration.desk.conftest import Desk, desk_in

JOBS = {
    "decide": {"kind": "decision", "when": "close+30m", "account": "timed"},
    "books": {"kind": "report", "when": ["close+45m"], "account": "timed"},
    # New Year's day is no session: it only runs by hand.
    "sells": {"kind": "exit", "when": "0 12 1 1 *", "account": "timed"},
    "minutely": {"kind": "snapshot", "when": "* * * * *", "account": "minutes"},
}

LIMIT_S = 432.0
"""What the desk allows a cycle whose request sets no limit."""


@pytest.fixture(scope="module")
def scheduled(
    make_open_dir: Callable[[], Path], own_environment_in: OwnEnvironmentIn
) -> Iterator[Desk]:
    """A desk with jobs, on a clock that only a replay moves."""
    schedule = Schedule.model_validate({"clock": "replay", "jobs": JOBS})
    settings: dict[str, Any] = {"schedule": schedule, "cycles": CycleSettings(timeout_s=LIMIT_S)}
    with desk_in(make_open_dir(), own_environment_in, **settings) as running:
        yield running


@pytest.fixture
def deskbus(scheduled: Desk, tmp_path: Path) -> CommandLine:
    return CommandLine(scheduled.settings.data_dir, tmp_path)


def test_a_replay_of_sessions_runs_every_slot_once_and_the_list_tells(
    deskbus: CommandLine,
) -> None:
    assert deskbus("schedule pause minutely").code == 0
    typed = "schedule replay --since 2012-07-03 --until 2012-07-05 --json"
    said = deskbus(typed)

    # The third is a half day, the fourth a holiday.
    assert [(run["job"], run["slot"], run["status"]) for run in said.rows] == [
        ("decide", "2012-07-03T17:30:00Z", "completed"),
        ("books", "2012-07-03T17:45:00Z", "completed"),
        ("decide", "2012-07-05T20:30:00Z", "completed"),
        ("books", "2012-07-05T20:45:00Z", "completed"),
    ]
    assert said.code == 0
    assert deskbus(typed).rows == said.rows, "again it is the same cycles"

    (view,) = deskbus("schedule list --json").rows
    jobs = {job["name"]: job for job in view["jobs"]}
    assert jobs["books"]["last"] == said.rows[-1]
    assert (jobs["minutely"]["paused_by"], jobs["minutely"]["last"]) == ("cli", None)
    written = sorted(path.name for path in (deskbus.data_dir / "reports").iterdir())
    assert written == ["timed-2012-07-03.md", "timed-2012-07-05.md"]
    shown = deskbus("schedule list").out
    assert "paused by cli" in shown
    assert "Thu 2012-07-05 16:45" in shown
    assert deskbus("schedule resume minutely").code == 0


def test_a_job_is_run_by_hand_and_its_cycle_is_the_schedule_s(deskbus: CommandLine) -> None:
    said = deskbus("schedule run books --at 2012-07-09T17:00 --wait --json")
    (run,) = said.rows
    (cycle,) = deskbus(f"cycle show {run['cycle_id']} --json").rows

    assert (said.code, run["as_of"], run["by"]) == (0, "2012-07-09", "cli")
    assert (cycle["requester"], cycle["kind"], cycle["status"]) == (
        "schedule",
        "report",
        "completed",
    )
    assert "timed" in deskbus("portfolio timed").out


def test_a_sell_check_before_the_close_is_in_its_own_session_s_report(deskbus: CommandLine) -> None:
    (run,) = deskbus("schedule run sells --at 2012-07-10T12:30 --wait --json").rows
    (day,) = deskbus("report 2012-07-10 --account timed --json").rows
    (before,) = deskbus("report 2012-07-09 --account timed --json").rows

    assert (run["as_of"], run["session"], run["status"]) == (
        "2012-07-09",
        "2012-07-10",
        "completed",
    )
    assert run["cycle_id"] in [cycle["cycle_id"] for cycle in day["cycles"]]
    assert run["cycle_id"] not in [cycle["cycle_id"] for cycle in before["cycles"]]


def test_a_job_that_is_waited_for_shows_its_decision_and_last_is_the_decision_not_the_report(
    deskbus: CommandLine,
) -> None:
    shown = deskbus("schedule run decide --at 2012-07-11T16:30 --wait")
    assert shown.code == 0
    assert "Decision of Wed 2012-07-11" in shown.out
    assert "Rationale" in shown.out or "not bought" in shown.out
    assert deskbus("schedule run books --at 2012-07-11T16:45 --wait").code == 0

    (decided,) = deskbus("cycle show --json").rows
    assert (decided["kind"], decided["as_of"]) == ("decision", "2012-07-11")
    assert decided["timeout_s"] == LIMIT_S, "neither the job nor the request sets one"
    for named in ("cycle show last --json", "operations status last --json"):
        assert deskbus(named).rows[0]["cycle_id"] == decided["cycle_id"]
    refused = deskbus("cycle cancel last")
    assert refused.code == 4
    assert "executing or has ended" in refused.err


def test_a_job_that_is_not_there_is_3_and_a_moment_to_come_4(deskbus: CommandLine) -> None:
    missing = deskbus("schedule pause nobodys")
    early = deskbus("schedule run books --at 2100-01-01T12:00")
    unclear = deskbus("schedule run books --at soon")

    assert (missing.code, early.code, unclear.code) == (3, 4, 2)
    assert "decide, books, sells, minutely" in missing.err


async def test_nobody_asks_in_the_schedule_s_name(scheduled: Desk) -> None:
    async with scheduled.calling("user") as user:
        with pytest.raises((nats.errors.NoRespondersError, TimeoutError)):
            await user.nats.request(
                "desk.v1.req.orchestrator.cycle.schedule", b'{"idempotency_key": "x"}', timeout=1
            )


def test_a_wrong_cron_stops_the_start_and_is_named_with_its_job_and_field(tmp_path: Path) -> None:
    (tmp_path / "deskbus.toml").write_text(
        '[schedule.jobs.decide]\nkind = "decision"\nwhen = "0 25 * * *"\n'
    )
    said = CommandLine(tmp_path / "data", tmp_path)("up")

    assert said.code == 2
    assert "schedule.jobs.decide.when" in said.err
    assert "field hour" in said.err
