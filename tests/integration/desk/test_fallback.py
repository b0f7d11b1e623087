"""kill -9 of the desk while a fallback answers, and a start with other settings."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import model_process
from tests.fakes.model_process import Manner, ModelProcess
from tests.integration.desk.command_line import PATIENCE_S, CommandLine, Said, ended, up

KEYS = {"ANTHROPIC_API_KEY": "planted-claude-0123", "OPENAI_API_KEY": "planted-gpt-0123"}
MANNER = Manner(delay_s=0.3, wordy={"planner": "claude"})
"""Claude's planner answers in words; another provider is its fallback."""
ASK = "cycle request --as-of 2012-06-29 --universe AAPL,MSFT --provider claude --key one --json"
QUICK = (
    ("DESKBUS_ORCHESTRATOR_LEASE_S", "2"),
    ("DESKBUS_ORCHESTRATOR_SWEEP_S", "0.2"),
    ("DESKBUS_ORCHESTRATOR_RESEND_AFTER_S", "1"),
    ("DESKBUS_MODEL_PLAN_ATTEMPTS_MAX", "1"),
)
LOOK_S = 0.02


@dataclass(frozen=True)
class Killed:
    """A desk that was killed while the fallback's first call was in flight, and its model."""

    deskbus: Callable[[dict[str, Any]], CommandLine]
    model: ModelProcess
    providers: dict[str, Any]


def planner_calls(model: ModelProcess, wire: str) -> Sequence[dict[str, Any]]:
    """The planner's calls that the model has begun to answer on a wire format."""
    calls = model.asked()
    return [call for call in calls if (call["agent"], call["wire"]) == ("planner", wire)]


def wait_for(happened: Callable[[], object], what: str) -> None:
    """Wait for what another process does."""
    until = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < until, f"never: {what}"
        time.sleep(LOOK_S)


@contextmanager
def killed_in_fallback(folder: Path, data_dir: Path) -> Iterator[Killed]:
    """A desk killed at that point."""
    with model_process.running(folder / "asked.jsonl", tuple(KEYS.values()), MANNER) as model:
        claude = {"base_url": model.url, "rate": {}}
        openai = {"base_url": f"{model.url}/v1", "rate": {}}

        def deskbus(providers: dict[str, Any]) -> CommandLine:
            own = ("DESKBUS_PROVIDERS", json.dumps(providers))
            return CommandLine(data_dir, folder, (*KEYS.items(), *QUICK, own))

        first = deskbus({"claude": {**claude, "fallback": {"planner": "openai"}}, "openai": openai})
        with up(first) as (process, _):
            assert first(ASK).code == 0
            wait_for(lambda: planner_calls(model, "openai"), "the fallback's first call")
            os.kill(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_S)
        yield Killed(deskbus, model, {"claude": claude, "openai": openai})


@contextmanager
def started_again(deskbus: CommandLine) -> Iterator[None]:
    """The desk after its crash, ended properly after the block."""
    with up(deskbus) as (process, _):
        try:
            yield
        finally:
            ended(process, signal.SIGTERM)


@pytest.fixture
def killed(make_open_dir: Callable[[], Path], tmp_path: Path) -> Iterator[Killed]:
    with killed_in_fallback(tmp_path, make_open_dir() / "data") as desk:
        yield desk


def marks(said: Said) -> list[tuple[str, str, str]]:
    """Who answered for the pipeline's own model, by the decision."""
    (view,) = said.rows
    (pipeline,) = view["pipelines"]
    return [(one["stage"], one["by"], one["why"]) for one in pipeline["substitutes"]]


def test_a_fallback_that_the_settings_no_longer_name_still_answers_the_cycle_of_that_day(
    killed: Killed,
) -> None:
    before = planner_calls(killed.model, "claude")
    later = killed.deskbus(killed.providers)
    with started_again(later):
        said = later(f"{ASK} --wait")
        assert said.code == 0, said.err
        assert marks(said) == [("planner", "openai", "fallback")]
        assert planner_calls(killed.model, "claude") == before, "no call of its own is paid again"
        times = Counter(call["request"] for call in killed.model.asked())
        (in_flight,) = [request for request, count in times.items() if count > 1]
        assert in_flight == planner_calls(killed.model, "openai")[0]["request"]
        (view,) = said.rows
        asked = len(killed.model.asked())
        replayed = killed.deskbus({})(f"cycle replay {view['cycle_id']} --json")
        assert replayed.rows[0]["same"], replayed.out
        assert len(killed.model.asked()) == asked


@pytest.mark.soak
def test_a_fallback_whose_provider_is_gone_ends_the_pipeline_with_the_reason(
    killed: Killed,
) -> None:
    later = killed.deskbus({"claude": killed.providers["claude"]})
    with started_again(later):
        said = later(f"{ASK} --wait")
        assert said.code == 1, said.out
        (view,) = said.rows
        assert view["status"] == "failed"
        assert "openai" in view["reason"]
        assert "it was the fallback" in view["reason"]
