"""What `deskbus new` writes works as it is, and nothing is ever written over."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contracts.risk import RuleOutcome
from libs.runtime.settings import Settings, settings_in_force
from services.cli.desk.new import app
from services.cli.main import app as deskbus
from services.cli.operating.plugins import plugins_tried
from services.cli.shell.problem import CliProblem, ExitCode
from tests.unit.services.risk.test_plugins import asked, bought, calm_market, decided

__all__ = ["calm_market"]


def _new(*words: str) -> str:
    done = CliRunner().invoke(app, [*words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def _tested(folder: Path, name: str) -> str:
    """The written test, run as a user would, in a process that knows nothing of the desk."""
    command = [sys.executable, "-I", "-m", "pytest", "-q", "-p", "no:cacheprovider", name]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, env=alone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("calm_market")
def test_a_new_rule_passes_its_test_is_accepted_and_cuts_a_buy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = _new("rule", "small_parts")
    setting = 'plugins = ["small_parts:small_parts"]'
    assert setting in shown
    assert {it.name for it in tmp_path.iterdir()} == {"small_parts.py", "test_small_parts.py"}

    assert "3 passed" in _tested(tmp_path, "test_small_parts.py")

    (tmp_path / "deskbus.toml").write_text(setting + "\n")
    checked = CliRunner().invoke(deskbus, ["check"])
    assert checked.exit_code == 0, checked.output

    name = "small_parts:small_parts"
    as_json = CliRunner().invoke(deskbus, ["check", "--json"]).stdout.splitlines()
    *_files, plugin = map(json.loads, as_json)
    assert (plugin["name"], plugin["what"], plugin["refused"]) == (name, "plug-in", "")
    assert plugin["note"] in checked.output.replace("\n", " ")

    free, bound = decided(asked(price=10)), decided(asked(name, price=10), (name,))
    assert 0 < bought(bound)["AAA"] < bought(free)["AAA"]
    (check,) = [it for it in bound.checks if it.rule == name]
    assert check.outcome is RuleOutcome.CUT
    assert "2% of the account at most" in check.reason


def test_a_new_exit_rule_passes_its_test_and_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    setting = 'exit_plugins = ["tired_money:tired_money"]'
    assert setting in _new("exit", "tired_money")
    assert "3 passed" in _tested(tmp_path, "test_tired_money.py")
    (tmp_path / "deskbus.toml").write_text(setting + "\n")
    checked = CliRunner().invoke(deskbus, ["check"])
    assert checked.exit_code == 0, checked.output
    (tried,) = asyncio.run(plugins_tried(settings_in_force()))
    assert tried.said == (
        "tired_money:tired_money sells 50% of a sample of 100 shares of MSFT: no gain after 84 "
        "sessions"
    )


def test_a_new_tool_passes_its_test_and_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    setting = 'tool_plugins = ["drawdown:drawdown"]'
    assert setting in _new("tool", "drawdown")
    assert "2 passed" in _tested(tmp_path, "test_drawdown.py")
    (tmp_path / "deskbus.toml").write_text(setting + "\n")
    (tried,) = asyncio.run(plugins_tried(settings_in_force()))
    assert tried.said == (
        "drawdown:drawdown returns for a sample of MSFT: "
        '{"below_high_pct":0.0,"largest_fall_pct":0.0}'
    )


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("def mine(asked):\n    return {}\n", "no function of this name with a docstring"),
        ("def mine(asked)\n", "cannot be read: SyntaxError: expected ':' (own.py, line 1)"),
        ("def mine(asked):\n    'Doc.'\n    return 5\n", "it returned 5, and not a dict"),
        ("def mine(asked):\n    'Doc.'\n    raise KeyError('pe')\n", "KeyError: 'pe'"),
    ],
)
def test_what_is_wrong_with_a_tool_is_said(
    source: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(source)
    (tried,) = asyncio.run(plugins_tried(Settings(tool_plugins=("own:mine",))))
    assert wrong in tried.said
    assert "models do not have it" in tried.todo


def test_a_tool_has_no_name_of_the_desks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CliProblem, match="is the name of a built-in tool"):
        _new("tool", "get_price")


def test_what_sells_nothing_of_the_sample_is_accepted_and_what_fails_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "def keeps(position):\n    pass\ndef bad(position):\n    return 200, 'all'\n"
    )
    settings = Settings(exit_plugins=("mine:keeps", "mine:bad"))
    keeps, bad = asyncio.run(plugins_tried(settings))
    assert keeps.said == "mine:keeps sells 0% of a sample of 100 shares of MSFT: it returned None"
    assert "it returned 200, which is no percentage from 0 to 100" in bad.said
    assert "only the built-in exit rules" in bad.todo


def test_an_exit_rule_has_no_name_of_the_desks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CliProblem, match="stop_loss"):
        _new("exit", "stop_loss")
    assert list(tmp_path.iterdir()) == []


def test_another_folder_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "desk"
    assert 'plugins = ["small_parts:small_parts"]' in _new(
        "rule", "small_parts", "--in", str(folder)
    )
    assert {it.name for it in folder.iterdir()} == {"small_parts.py", "test_small_parts.py"}


@pytest.mark.parametrize("there", ["mine.py", "test_mine.py"])
def test_a_file_that_is_there_stays_and_nothing_is_written(
    there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / there).write_text("mine")
    with pytest.raises(CliProblem, match="exists already; not changed") as refused:
        _new("rule", "mine")
    assert refused.value.code is ExitCode.REJECTED
    assert [(it.name, it.read_text()) for it in tmp_path.iterdir()] == [(there, "mine")]


@pytest.mark.parametrize(
    "name",
    ["", "Penny", "a-b", "a.b", "../x", "1st", "é", "x" * 41, "test_x", "x_test", "conftest",
     "class", "int", "json", "polars", "services"],
)  # fmt: skip
def test_a_name_that_is_none_or_is_anothers_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CliProblem) as refused:
        _new("rule", name)
    assert refused.value.code is ExitCode.USAGE
    assert list(tmp_path.iterdir()) == []
