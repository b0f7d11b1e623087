"""The demo's settings and directory: nothing of another desk, and nothing of anybody else's."""

from pathlib import Path

import pytest

from services.cli.demo.place import MARK, DemoFolder, DemoMark
from services.cli.demo.sealed import INBOX, PAGER, seal, settings_in
from services.cli.shell.problem import CliProblem

FOREIGN = {
    "DESKBUS_NATS_URL": "nats://192.0.2.1:4222",
    "DESKBUS_POSTGRES_DSN": "postgresql://192.0.2.1/desk",
    "DESKBUS_DATA_DIR": "elsewhere",
    "DESKBUS_HTTP_TOKEN": "a" * 40,
    "DESKBUS_MARKET_SOURCE": "yahoo",
    "ANTHROPIC_API_KEY": "sk-ant-1",
    "OPENAI_API_KEY": "sk-2",
    "HTTPS_PROXY": "http://192.0.2.1:3128",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1:4318",
    "PGHOST": "192.0.2.1",
    "DESKBUS_NOTIFY_PHONE": "json://192.0.2.1/",
    "DESKBUS_NOTIFY_DEMO_INBOX": "http://192.0.2.1/",
    "DESKBUS_NOTIFY": '{"channels": {"phone": {}}}',
}


def test_only_what_a_terminal_needs_stays_in_the_environment():
    environment = {**FOREIGN, "PATH": "/bin", "TERM": "xterm", "LC_ALL": "C", "HOME": "/home/me"}
    seal(environment)
    assert environment == {"PATH": "/bin", "TERM": "xterm", "LC_ALL": "C", "HOME": "/home/me"}


def test_neither_the_environment_nor_a_deskbus_toml_sets_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deskbus.toml").write_text(
        '[nats]\nurl = "nats://192.0.2.1:4222"\n[broker]\nfee_bps = 99\n'
    )
    settings = settings_in(tmp_path / "demo")
    assert (settings.nats.url, settings.postgres.dsn, settings.http.token) == (None, None, None)
    assert settings.data_dir == tmp_path / "demo"
    assert settings.market.source == "replay"
    assert settings.broker.fee_bps != 99
    assert settings.demo
    assert set(settings.notify.channels) == {INBOX, PAGER}


def test_a_directory_that_no_demo_made_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(CliProblem, match="is not empty and is not a demo's directory"):
        DemoFolder(tmp_path).clear()
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_made_anew_it_deletes_only_its_own(tmp_path: Path):
    place = DemoFolder(tmp_path)
    place.write(DemoMark(sessions=5, filled=True))
    (tmp_path / "market").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    assert place.mark == DemoMark(sessions=5, filled=True)
    place.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.json", "notes.txt"]
    assert place.mark == DemoMark(), "it is a demo's still, and nothing of it is filled"


def test_a_link_in_its_place_is_removed_and_not_followed(tmp_path: Path):
    place, other = DemoFolder(tmp_path / "demo"), tmp_path / "other"
    place.write(DemoMark())
    other.mkdir()
    (other / "kept").touch()
    (place.folder / "market").symlink_to(other)
    place.clear()
    assert (other / "kept").exists()


def test_a_mark_that_cannot_be_read_is_nobodys(tmp_path: Path):
    (tmp_path / MARK).write_text("{")
    with pytest.raises(CliProblem, match="cannot be read"):
        DemoFolder(tmp_path).clear()
