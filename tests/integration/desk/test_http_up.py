"""`deskbus up` with its HTTP API: seed 001's script as it was written, and the port."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
import orjson
import pytest

from libs.runtime.ports import choose_port, is_free
from tests.integration.desk.command_line import CommandLine, ended, up

SCRIPT = Path(__file__).parents[2] / "data/seed_001_verify.sh"
FIRST_LINES = Path(__file__).parents[2] / "data/seed_001_e2e.sh"
SHIM = """#!/bin/sh
exec {python} -m services.cli "$@"
"""
SCRIPT_PORT = 8000
SCRIPT_S = 240
NO_GATES = dict.fromkeys(
    (
        "accuracy_min",
        "final_loss_max",
        "loss_decrease_min",
        "win_rate_min",
        "max_drawdown_max",
        "sharpe_ratio_min",
    )
)
HARD_GATE = {"accuracy_min": 1.0}
TOKEN = "a-token-of-some-length"


@pytest.fixture
def desk_dir(make_open_dir: Callable[[], Path]) -> Path:
    return make_open_dir()


def desk_at(folder: Path, **settings: object) -> CommandLine:
    """A desk that is started in this folder."""
    said = {
        name: each if isinstance(each, str) else orjson.dumps(each).decode()
        for name, each in settings.items()
    }
    return CommandLine(folder / ".deskbus", folder, tuple(said.items()), is_cold=True)


def verified(folder: Path) -> str:
    """What the script says of the desk in this folder; it ends well."""
    run = subprocess.run(
        ["bash", str(SCRIPT)],
        cwd=folder,
        env={**os.environ, "ANTHROPIC_API_KEY": "asked for by the script, used by nobody"},
        capture_output=True,
        text=True,
        timeout=SCRIPT_S,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture
def port_8000() -> str:
    """The script's own port, and the tools that it calls; without them there is nothing to test."""
    for tool in ("bash", "curl", "jq"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed, which the script calls")
    if not is_free(SCRIPT_PORT):
        pytest.skip(f"port {SCRIPT_PORT}, which the script calls, is taken on this machine")
    return str(SCRIPT_PORT)


def test_the_seeds_script_sees_a_cycle_to_its_end_with_both_files(
    desk_dir: Path, port_8000: str
) -> None:
    with up(desk_at(desk_dir, DESKBUS_GATES=NO_GATES), f"--port {port_8000}") as (process, ready):
        assert ready["http_url"] == "http://127.0.0.1:8000"
        said = verified(desk_dir)
        assert ended(process, signal.SIGTERM).code == 0
    assert "Status: completed" in said
    assert "PASS: Strategy file exists: strategies/" in said
    assert "PASS: Assessment file exists: strategies/" in said
    assert "=== M5 Complete - Full cycle works! ===" in said
    children = said.split("6. Child operations:")[1].split("7. Token usage:")[0]
    assert "null" not in children
    assert "Total tokens: 0" in said


def test_the_seeds_script_sees_a_gate_stop_a_cycle(desk_dir: Path, port_8000: str) -> None:
    with up(desk_at(desk_dir, DESKBUS_GATES=HARD_GATE), f"--port {port_8000}") as (process, _):
        said = verified(desk_dir)
        assert ended(process, signal.SIGTERM).code == 0
    assert "Status: failed" in said
    assert "Error: Training gate failed: accuracy_below_threshold (" in said
    assert "=== M5 Complete" not in said


def test_the_seeds_four_lines_show_the_cycle_its_file_and_its_whole_result(desk_dir: Path) -> None:
    """Each line as it was written; a command named `ktrdr` is the desk's."""
    deskbus = desk_at(desk_dir, DESKBUS_GATES=NO_GATES)
    programs = desk_dir / "bin"
    programs.mkdir()
    (programs / "ktrdr").write_text(SHIM.format(python=sys.executable))
    (programs / "ktrdr").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    lines = [line for line in FIRST_LINES.read_text().splitlines() if line and line[0] != "#"]

    def typed(line: str) -> str:
        run = subprocess.run(
            ["sh", "-c", line],
            cwd=desk_dir,
            env={**deskbus.environment, "PATH": path},
            capture_output=True,
            text=True,
            timeout=SCRIPT_S,
            check=False,
        )
        assert run.returncode == 0, f"{line}: {run.stderr}"
        return run.stdout

    with up(deskbus, "--port 0") as (process, _):
        trigger, status, show_file, show_cycle = lines
        cycle_id = typed(trigger).strip()
        deadline = time.monotonic() + SCRIPT_S
        while (told := deskbus("agent status --json").rows[0])["status"] != "idle":
            assert time.monotonic() < deadline, told
            time.sleep(0.5)
        name = told["metadata"]["strategy_name"]
        assert typed(status) == f"idle; {cycle_id[:8]} ({name}) completed\n"
        assessment = orjson.loads(typed(show_file.replace("<strategy_name>", name)))
        points = ("verdict", "strengths", "weaknesses", "suggestions", "assessed_at")
        assert all(assessment[point] for point in points)
        shown = typed(show_cycle.replace("<agent_research_op_id>", cycle_id))
        assert ended(process, signal.SIGTERM).code == 0
    for words in ("completed", name, assessment["verdict"], "0 tokens", f"{name}/assessment.json"):
        assert words in shown


def test_a_busy_port_is_said_before_anything_is_started(desk_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = desk_at(desk_dir)(f"up --port {taken.getsockname()[1]}")
    assert said.code == 1
    assert "--port" in said.err
    assert "Traceback" not in said.err
    assert not (desk_dir / ".deskbus/servers").exists()


def test_beyond_loopback_the_desk_does_not_start_without_a_token(desk_dir: Path) -> None:
    said = desk_at(desk_dir, DESKBUS_HTTP_HOST="0.0.0.0")("up --port 0")
    assert said.code == 1
    assert "DESKBUS_HTTP_TOKEN" in said.err


def test_the_address_is_in_runtime_json_and_the_port_is_free_after_the_stop(
    desk_dir: Path,
) -> None:
    port = choose_port(None, set())
    deskbus = desk_at(desk_dir, DESKBUS_HTTP_PORT=str(port), DESKBUS_HTTP_TOKEN=TOKEN)
    with up(deskbus) as (process, ready):
        told = orjson.loads((deskbus.data_dir / "runtime.json").read_bytes())
        assert told["http_url"] == ready["http_url"] == f"http://127.0.0.1:{port}"
        path = f"{told['http_url']}/api/v1/agent/status"
        assert httpx2.get(path).status_code == 401
        assert httpx2.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).is_success
        stopped = ended(process, signal.SIGTERM)
    assert TOKEN not in stopped.err
    assert is_free(port)


def test_without_http_nothing_listens(desk_dir: Path) -> None:
    with up(desk_at(desk_dir), "--no-http") as (process, ready):
        assert ready["http_url"] is None
        ended(process, signal.SIGTERM)


def test_the_console_in_a_process_of_its_own_answers_too(desk_dir: Path) -> None:
    deskbus = desk_at(desk_dir, DESKBUS_HTTP_TOKEN=TOKEN)
    with up(deskbus, "--processes --replicas console=2 --port 0") as (process, ready):
        path = f"{ready['http_url']}/api/v1/cycles"
        assert httpx2.get(path).status_code == 401
        assert httpx2.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).is_success
        ended(process, signal.SIGTERM)
