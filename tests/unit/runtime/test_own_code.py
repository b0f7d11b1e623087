"""Modules of the user's: found in the working directory, and after everything else."""

import random
import sys
from pathlib import Path

import pytest

from libs.runtime.own_code import own_module


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def test_a_module_beside_the_settings_is_found(folder: Path) -> None:
    (folder / "my_own_desk.py").write_text("ANSWER = 42\n")
    assert own_module("my_own_desk").ANSWER == 42


def test_a_file_never_stands_in_for_a_module_of_pythons(folder: Path) -> None:
    (folder / "random.py").write_text("raise SystemExit\n")
    (folder / "colorsys.py").write_text("raise SystemExit\n")  # that nobody has imported yet
    sys.modules.pop("colorsys", None)
    assert own_module("random") is random
    assert own_module("colorsys").rgb_to_hls


def test_none_of_the_name_is_said(folder: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_desk"):
        own_module("no_such_desk")
