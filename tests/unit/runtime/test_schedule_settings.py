"""The schedule's settings: what is wrong is named with its job and field before anything runs."""

from pathlib import Path

import orjson
import pytest
from pydantic import SecretStr, ValidationError

from contracts.message import Pipeline
from libs.runtime.settings import Settings


def _in_file(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Settings:
    (folder / "deskbus.toml").write_text(text)
    monkeypatch.chdir(folder)
    return Settings()


def test_nothing_is_scheduled_unless_it_is_configured() -> None:
    assert Settings().schedule.jobs == {}


def test_a_job_of_two_lines_asks_for_the_rules_on_its_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[schedule.jobs.sell-checks]\nkind = "exit"\nwhen = ["open+30m", "close-15m"]\n'
    job = _in_file(tmp_path, monkeypatch, text).schedule.jobs["sell-checks"]

    request = job.request("a-key")
    assert (request.kind, request.pipelines) == ("exit", (Pipeline(name="rules", account="main"),))
    assert len(job.moments) == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('when = "0 25 * * *"', "schedule.jobs.decide.when"),
        ('when = ["close+30m", "close+"]', "schedule.jobs.decide.when"),
        ("when = []", "schedule.jobs.decide.when"),
        ('when = "close"\nmised = "skip"', "schedule.jobs.decide.mised"),
        ('when = "close"\nmissed = "never"', "schedule.jobs.decide.missed"),
        ('when = "close"\naccount = "No Name"', "schedule.jobs.decide.account"),
        (
            (
                'when = "close"\n'
                'pipelines = [{name = "a", account = "x"}, {name = "b", account = "x"}]'
            ),
            "schedule.jobs.decide",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_its_job_and_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, named: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        _in_file(tmp_path, monkeypatch, f'[schedule.jobs.decide]\nkind = "decision"\n{text}\n')

    assert named in [".".join(map(str, each["loc"])) for each in caught.value.errors()]


def test_pipelines_that_no_request_could_have_are_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        '[schedule.jobs.decide]\nkind = "decision"\nwhen = "close"\n'
        'pipelines = [{name = "a", account = "x"}, {name = "b", account = "x"}]\n'
    )
    with pytest.raises(ValidationError) as caught:
        _in_file(tmp_path, monkeypatch, text)

    (error,) = caught.value.errors()
    assert error["msg"] == "Value error, pipelines: two trade the same account"


def test_a_child_process_gets_the_same_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        '[schedule]\nclock = "replay"\n[schedule.jobs.decide]\nkind = "decision"\n'
        'when = "close+30m"\nbudgets = {cost_usd = "0.5"}\npipelines = [{name = "rules"}]\n'
    )
    settings = _in_file(tmp_path, monkeypatch, text).changed(
        postgres={"dsn": SecretStr("postgresql://127.0.0.1/x")}
    )
    given = settings.environment["DESKBUS_SCHEDULE"]

    assert orjson.loads(given)["jobs"]["decide"]["when"] == ["close+30m"]
    (tmp_path / "deskbus.toml").unlink()
    monkeypatch.setenv("DESKBUS_SCHEDULE", given)
    assert Settings().schedule == settings.schedule
