"""How a command finds the running desk."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from libs.runtime.settings import Settings
from services.cli.shell.problem import CliProblem, ExitCode
from services.cli.shell.running import find_desk, load_settings


def _write(data_dir: Path, **changes: object) -> None:
    said = {
        "nats_url": "nats://127.0.0.1:1",
        "postgres_dsn": "postgresql://127.0.0.1:2/deskbus",
        "secrets_dir": str(data_dir / "secrets"),
        "data_dir": str(data_dir),
        "replay_dir": None,
        "pid": os.getpid(),
        "started_at": "2026-11-22T02:27:33+00:00",
        **changes,
    }
    (data_dir / "runtime.json").write_bytes(orjson.dumps(said))


def _ended_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_desk_that_runs_is_found_by_its_file(tmp_path: Path) -> None:
    _write(tmp_path)

    desk = find_desk(Settings(data_dir=tmp_path))

    assert desk.nats_url == "nats://127.0.0.1:1"
    assert desk.secrets_dir == tmp_path / "secrets"
    assert desk.pid == os.getpid()


def test_without_the_file_the_desk_is_not_reachable_and_the_hint_says_how_to_start(
    tmp_path: Path,
) -> None:
    with pytest.raises(CliProblem) as caught:
        find_desk(Settings(data_dir=tmp_path))

    assert caught.value.code is ExitCode.NOT_REACHABLE
    assert "deskbus up" in caught.value.hint


def test_a_file_left_by_a_desk_that_was_killed_counts_as_no_desk(tmp_path: Path) -> None:
    _write(tmp_path, pid=_ended_pid())

    with pytest.raises(CliProblem) as caught:
        find_desk(Settings(data_dir=tmp_path))

    assert caught.value.code is ExitCode.NOT_REACHABLE
    assert "has crashed" in caught.value.message


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"nats_url": "x"}'])
def test_a_spoiled_file_is_a_sentence_and_no_traceback(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "runtime.json").write_bytes(body)

    with pytest.raises(CliProblem) as caught:
        find_desk(Settings(data_dir=tmp_path))

    assert caught.value.code is ExitCode.NOT_REACHABLE
    assert "runtime.json" in caught.value.message


def test_own_servers_are_taken_from_the_settings(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, nats={"url": "nats://bus:4222"})

    assert find_desk(settings).nats_url == "nats://bus:4222"


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DESKBUS_ORCHESTRATOR_SWEEP_S", "often")

    with pytest.raises(CliProblem) as caught:
        load_settings()

    assert caught.value.code is ExitCode.USAGE
    assert "sweep_s" in caught.value.message


@pytest.mark.parametrize("text", ["sweep_s = ", "swep_s = 1", "[http]\nprot = 1", "sweep_s = 1"])
def test_a_wrong_settings_file_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deskbus.toml").write_text(text)

    with pytest.raises(CliProblem) as caught:
        load_settings()

    assert caught.value.code is ExitCode.USAGE


def test_settings_that_are_no_toml_name_their_file_and_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deskbus.toml").write_text("[schedule]\nclock = 'replay'\n```\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CliProblem) as refused:
        load_settings()
    assert "deskbus.toml" in str(refused.value)
    assert "line 3" in str(refused.value)
