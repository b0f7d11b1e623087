"""Who looks at the stops of an account at a broker: only a job that runs each session."""

from typing import Any

import pytest

from libs.runtime.settings import Settings
from services.execution.app import watched_by

DAILY: dict[str, Any] = {"kind": "exit", "when": "close+30m"}


@pytest.mark.parametrize(
    ("clock", "job", "watches"),
    [
        ("wall", {}, True),
        ("wall", {"kind": "report"}, True),
        ("wall", {"when": "30 16 * * *"}, True),
        ("wall", {"when": ["0 12 * * mon-wed", "0 12 * * thu-fri"]}, True),
        ("replay", {}, False),  # it runs in a replay or by hand
        ("wall", {"account": "other"}, False),
        ("wall", {"when": "30 16 * * fri"}, False),
        ("wall", {"when": "30 16 1 * *"}, False),
    ],
)
def test_a_job_watches_an_accounts_stops_where_it_runs_each_session(
    clock: str, job: dict[str, Any], watches: bool
) -> None:
    settings = Settings(schedule={"clock": clock, "jobs": {"look": {**DAILY, **job}}})
    assert watched_by(settings, "main") == ("look" if watches else "")
