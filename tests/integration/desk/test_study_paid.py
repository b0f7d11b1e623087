"""Studies with a paid model: no question is paid twice, in one or between two, whatever dies."""

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.fakes import model_process
from tests.fakes.model_process import Manner, ModelProcess
from tests.integration.desk.caller import Json
from tests.integration.desk.command_line import PATIENCE_S, CommandLine, ended, up

KEY = "planted-study-0123456789"
LOOK_S = 0.02


@dataclass(frozen=True)
class Lab:
    """A desk's command line beside a model that counts, and a folder for the files of studies."""

    deskbus: CommandLine
    model: ModelProcess
    folder: Path

    def file(self, name: str, **fields: object) -> str:
        """A study's file, as a person writes it."""
        study = {
            "name": name,
            "dates": {"sessions": ["2012-05-31", "2012-06-29"]},
            "universe": ["AAPL", "IBM"],
            "arms": [{"name": "gpt", "provider": "openai"}],
            "budget": {"cost_usd": 20},
            **fields,
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(study))
        return str(path)

    def run(self, file: str, options: str = "") -> Json:
        """The study once it no longer runs."""
        said = self.deskbus(f"study run {file} {options} --json")
        assert said.rows, said.err
        row: Json = said.rows[0]
        return row

    def asked(self) -> list[str]:
        return [json.dumps(line, sort_keys=True) for line in self.model.asked()]


@pytest.fixture(scope="module")
def lab(
    make_open_dir: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("study")
    with model_process.running(folder / "asked.jsonl", (KEY,), Manner(delay_s=0.02)) as model:
        providers = {"openai": {"base_url": f"{model.url}/v1", "rate": {}}}
        settings = (("OPENAI_API_KEY", KEY), ("DESKBUS_PROVIDERS", json.dumps(providers)))
        yield Lab(CommandLine(make_open_dir() / "data", folder, settings), model, folder)


def test_a_study_that_was_killed_pays_and_says_the_same_and_another_pays_nothing(lab: Lab) -> None:
    whole, halved = lab.file("whole"), lab.file("halved", seed=1)
    with up(lab.deskbus) as (process, _):
        first = lab.run(whole)
        paid = lab.asked()
        spent_today = lab.deskbus("budget --json").rows[0]

        plan = lab.deskbus(f"study plan {whole} --json").rows[0]
        assert plan["arms"][0]["recorded"] > 0, "by what is on record by now"
        assert "on this desk's record" in plan["estimates"][0]

        again = lab.run(lab.file("again", horizons=[10]))

        assert lab.asked() == paid, "the same questions, under another study's name"
        assert (first["completed"], again["completed"]) == (2, 2)
        assert (first["tokens"] > 0, again["tokens"]) == (True, 0)
        assert spent_today["tokens_left"] == spent_today["tokens_max"], (
            "a study takes nothing of the day"
        )

        with lab.deskbus.started(f"study run {halved}"):
            until = time.monotonic() + PATIENCE_S
            while len(lab.asked()) < len(paid) + 4:
                assert time.monotonic() < until
                time.sleep(LOOK_S)
            process.kill()
    with up(lab.deskbus) as (process, _):
        resumed = lab.run(halved)

        assert (resumed["status"], resumed["completed"]) == ("completed", 2)
        more = Counter(lab.asked()) - Counter(paid)
        twice = {line: count for line, count in more.items() if count > 1}
        # A call that was in flight when the desk was killed was recorded by nobody.
        assert sum(twice.values()) - len(twice) <= 2

        offline = lab.run(lab.file("offline", samples=2), "--offline")

        assert (offline["completed"], offline["failed"]) == (2, 2)
        assert len(lab.asked()) == len(paid) + more.total(), "offline nobody is asked"
        ended(process, signal.SIGINT)


def test_a_study_stops_where_its_budget_pays_no_further_cell(lab: Lab) -> None:
    with up(lab.deskbus) as (process, _):
        budget = {"cost_usd": 1, "cell_cost_usd": 1}
        poor = lab.run(lab.file("poor", seed=2, budget=budget))
        assert (poor["status"], poor["completed"]) == ("stopped", 1)
        assert "its budget pays no further cell" in poor["reason"]

        richer = lab.run(lab.file("poor", seed=2, budget={"cost_usd": 5, "cell_cost_usd": 1}))

        assert (richer["status"], richer["completed"]) == ("completed", 2)
        ended(process, signal.SIGINT)


@pytest.mark.soak
def test_what_an_offline_run_lacked_is_asked_under_the_same_name_and_nothing_is_paid_twice(
    lab: Lab,
) -> None:
    arms = [{"name": "rules"}, {"name": "gpt", "provider": "openai"}]
    dates = {"sessions": ["2012-03-30", "2012-04-30"]}
    one = {"sessions": dates["sessions"][:1]}
    with up(lab.deskbus) as (process, _):
        lab.run(lab.file("known", seed=3, dates=one, arms=arms))
        paid = lab.asked()
        file = lab.file("later", seed=3, dates=dates, arms=arms)
        lacking = lab.run(file, "--offline")
        assert lab.asked() == paid, "offline nobody is asked"
        assert (lacking["completed"], lacking["failed"]) == (1, 1), "of its second arm"
        assert outcomes(lab) == ["decided", "decided", "decided", "failed"]
        before = lab.deskbus("study cells later --json").rows

        with lab.deskbus.started(f"study run {file}"):
            until = time.monotonic() + PATIENCE_S
            while len(lab.asked()) < len(paid) + 3:
                assert time.monotonic() < until
                time.sleep(LOOK_S)
            process.kill()
    with up(lab.deskbus) as (process, _):
        view = lab.run(file)

        assert (view["status"], view["completed"], view["failed"]) == ("completed", 2, 0)
        assert outcomes(lab) == ["decided"] * 4
        after = lab.deskbus("study cells later --json").rows
        assert after[:2] == before[:2], "what succeeded is the cycle that it was"
        assert after[2]["weights"] == before[2]["weights"], "beside the same rules"
        more = Counter(lab.asked()) - Counter(paid)
        twice = sum(count - 1 for count in more.values())
        # A call that was in flight when the desk was killed was recorded by nobody.
        assert twice <= 2

        said = lab.run(file)

        assert len(lab.asked()) == len(paid) + more.total(), "once more nobody is asked"
        assert said["tokens"] == view["tokens"]
        ended(process, signal.SIGINT)


def outcomes(lab: Lab) -> list[str]:
    """How the arms of each cell ended, in the order of dates."""
    return [row["status"] for row in lab.deskbus("study cells later --json").rows]


@pytest.mark.soak
def test_an_arm_without_a_stages_model_asks_it_nothing_there_and_is_shown_beside_the_whole(
    lab: Lab,
) -> None:
    arms = [
        {"name": "gpt", "provider": "openai"},
        {"name": "less", "provider": "openai", "without": ["trader"]},
    ]
    with up(lab.deskbus) as (process, _):
        assert lab.run(lab.file("agents", arms=arms, seed=3))["failed"] == 0
        score = lab.deskbus("study score agents --json").rows[0]
        cell = lab.deskbus("study cells agents --arm less --limit 1 --json").rows[0]
        cycle = lab.deskbus(f"cycle show {cell['cycle_id']} --json").rows[0]
        ended(process, signal.SIGINT)

    whole, less = score["arms"][:2]
    assert 0 < less["tokens"] < whole["tokens"]
    (gap,) = score["agents"]
    assert (gap["arm"], gap["less"], gap["stages"]) == ("gpt", "less", ["trader"])
    lanes = {lane["name"]: lane["contracts"] for lane in cycle["pipelines"]}
    assert lanes["gpt"]["daily_picks"]["llm"] == "openai"
    assert lanes["less"]["daily_picks"]["llm"] == "rules"
    assert next(row for row in score["audit"] if row["name"].startswith("P6"))["shown"] is False
