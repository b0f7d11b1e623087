"""`deskbus check`: all that a file has to be mended for is said, not the first of it alone."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.operating.check import app


def test_a_bad_row_hides_no_other_finding_of_its_file(tmp_path: Path) -> None:
    header = "date,open,high,low,close,volume\n"
    (tmp_path / "AAA.csv").write_text(f"{header}2024-01-02,10,11,9,10.5,1000\n")
    (tmp_path / "fx.csv").write_text(
        "date,pair,rate\n2024-01-02,GBPUSD,1.2\n2024-01-02,EURUSD,abc\n"
    )
    done = CliRunner().invoke(app, [str(tmp_path)])
    told = " ".join(done.output.split())
    assert "line 3: rate is 'abc'" in told
    assert "1 rows without known_at are left out" in told


def test_bad_exit_rules_hide_no_finding_of_the_files(tmp_path: Path) -> None:
    rules, data = tmp_path / "exit_signals.toml", tmp_path / "data"
    rules.write_text("[default]\nstop_pc = 1\n")
    data.mkdir()
    (data / "AAA.csv").write_text("date,open,high,low,close,volume\n2024-01-02,abc,1,1,1,1\n")
    done = CliRunner().invoke(app, [str(data)], env={"DESKBUS_EXIT_RULES_FILE": str(rules)})
    assert "open is 'abc'" in " ".join(done.output.split())
    assert done.exit_code == 1
    assert "stop_pc: unknown field" in str(done.exception)


def test_a_folder_that_the_settings_do_not_name_is_said_not_to_be_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "source.toml").write_text('name = "mine"\n')
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 0, done.output
    assert "the folder data is not in use" in " ".join(done.output.split())


def test_every_plug_in_is_shown_with_its_answer_or_its_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "def few(buy):\n    return 5, 'five'\n\ndef none(buy):\n    return 5\n"
    )
    data = tmp_path / "data"
    data.mkdir()
    (data / "AAA.csv").write_text("date,open,high,low,close,volume\n2024-01-02,1,1,1,1,1\n")
    (tmp_path / "deskbus.toml").write_text('plugins = ["own:few", "own:none"]\n')
    done = CliRunner().invoke(app, [str(data)])
    told = " ".join(done.output.split())
    assert "✓ own:few allows 5 of a sample of 100 shares of MSFT: five" in told
    assert "✗ own:none: it gave no answer that counts: it returned 5" in told
    assert done.exit_code == 1
