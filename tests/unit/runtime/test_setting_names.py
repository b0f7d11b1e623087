"""Settings in sentences for people are called as they are set."""

from pathlib import Path

import pytest

from libs.runtime.setting_names import as_set

HINT = "set DESKBUS_MARKET_REPLAY_DIR to one, or unset it"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DESKBUS_MARKET_REPLAY_DIR", raising=False)
    return tmp_path


def test_a_setting_of_the_file_is_named_by_its_place_there(folder: Path) -> None:
    (folder / "deskbus.toml").write_text('[market]\nreplay_dir = "gone"\n')
    assert as_set(HINT) == "set market.replay_dir in deskbus.toml to one, or unset it"
    assert as_set("DESKBUS_HTTP_PORT, DESKBUS_MARKET_REPLAY_DIR") == (
        "DESKBUS_HTTP_PORT, market.replay_dir in deskbus.toml"
    )


def test_what_neither_sets_or_a_variable_does_keeps_the_variables_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert as_set(HINT) == HINT
    (folder / "deskbus.toml").write_text('[market]\nreplay_dir = "gone"\n')
    monkeypatch.setenv("DESKBUS_MARKET_REPLAY_DIR", "here")
    assert as_set(HINT) == HINT


def test_a_command_to_copy_and_a_file_that_cannot_be_read_change_nothing(folder: Path) -> None:
    (folder / "deskbus.toml").write_text('data_dir = "a"\n')
    command = "export DESKBUS_DATA_DIR=.deskbus-replay; deskbus up --detach"
    assert as_set(command) == command
    (folder / "deskbus.toml").write_text("data_dir = \n")
    assert as_set("set DESKBUS_DATA_DIR") == "set DESKBUS_DATA_DIR"
