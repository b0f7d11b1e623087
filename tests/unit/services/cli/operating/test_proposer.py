"""`deskbus proposer` without a running desk: what it leaves, and the next step that it names."""

from pathlib import Path

import pytest

from libs.runtime.proposers import TOKEN_START, Proposers
from services.cli import main as cli
from services.cli.shell.problem import ExitCode
from services.provisioner.secrets import provision_secrets


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run `deskbus proposer`; its exit code."""
    monkeypatch.setattr("sys.argv", ["deskbus", "proposer", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_for_a_stopped_desk_the_next_start_is_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DESKBUS_DATA_DIR", str(tmp_path))
    assert typed(monkeypatch, "add", "bot", "--account", "a") == ExitCode.OK
    token, words = capsys.readouterr()
    found = Proposers(tmp_path / "secrets").bearing(token.strip())
    assert found is not None
    assert (found.name, found.account) == ("bot", "a")
    assert "next: `deskbus up`" in words
    assert typed(monkeypatch, "revoke", "bot") == ExitCode.OK
    assert Proposers(tmp_path / "secrets").active() == []


def test_for_servers_of_ones_own_it_says_which_files_to_make_and_who_reads_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    provision_secrets(tmp_path)
    monkeypatch.setenv("DESKBUS_SECRETS_DIR", str(tmp_path))
    for words in (("add", "bot", "--account", "a"), ("revoke", "bot")):
        assert typed(monkeypatch, *words) == ExitCode.OK
        said, advice = capsys.readouterr()
        assert said.startswith(TOKEN_START) == (words[0] == "add")
        assert f"`deskbus secrets init {tmp_path}`, then have NATS read" in advice
        assert "deskbus up" not in advice


def test_of_a_name_that_nobody_had_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKBUS_DATA_DIR", str(tmp_path / "data"))
    assert typed(monkeypatch, "revoke", "bot") == ExitCode.NOT_FOUND
    assert not (tmp_path / "data").exists()
