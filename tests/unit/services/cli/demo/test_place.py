"""The demo's directory: made anew without a word to what others keep in it."""

from pathlib import Path

import pytest

from services.cli.demo.place import DemoFolder
from services.cli.shell.problem import CliProblem


def test_clearing_touches_nothing_where_no_demo_was(tmp_path: Path) -> None:
    (tmp_path / "market").mkdir()
    with pytest.raises(CliProblem, match="is not a demo's directory"):
        DemoFolder(tmp_path).clear()
    assert (tmp_path / "market").is_dir()


def test_clearing_what_is_not_there_makes_nothing(tmp_path: Path) -> None:
    DemoFolder(tmp_path / "demo").clear()
    assert not (tmp_path / "demo").exists()
