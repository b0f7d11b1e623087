"""The program that runs a local model's decision, with a server that stands in for the model."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import model_process
from tests.fakes.model_process import Manner

ROOT = Path(__file__).parents[3]
KEY_OF_NO_KEY = "none"
"""The key that an endpoint without a key is sent."""


@pytest.mark.soak
def test_a_stand_in_server_is_asked_for_the_four_stages_of_the_profile_and_they_are_listed(
    tmp_path: Path,
) -> None:
    log = tmp_path / "asked.jsonl"
    with model_process.running(log, [KEY_OF_NO_KEY], Manner()) as model:
        command = (sys.executable, "-m", "benchmarks.local_model", "--address", f"{model.url}/v1")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        agents = {call["agent"] for call in model.asked()}
    assert done.returncode == 0, done.stderr
    assert agents == {"quant", "analyst", "trader", "risk_review"}
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    for stage in ("quant", "analyst", "picks", "review"):
        assert "llamacpp:model" in lines[stage]
    assert "rules:rules" in lines["plan"]
    assert lines["completed"].startswith("completed in ")
