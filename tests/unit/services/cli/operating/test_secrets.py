"""`deskbus secrets init`: makes what is missing, keeps what is there, shows nothing secret."""

import json
import os
from pathlib import Path

import pytest

from libs.keys.nats_config import NatsPlace
from libs.runtime.proposers import FILE
from libs.runtime.settings import Settings
from services.cli import main as cli
from services.cli.operating.doctor import CheckVerdict, machine
from services.cli.shell.problem import ExitCode
from services.provisioner.secrets import kept_place, provision_secrets

ROOT = Path(__file__).parents[5]


def init(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["deskbus", "secrets", "init", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_it_makes_what_is_missing_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "secrets"
    assert init(monkeypatch, str(folder)) == ExitCode.OK

    said, words = capsys.readouterr()
    made = said.split()
    assert {"orchestrator.nk", "postgres_deskbus_owner.password"} <= set(made)
    assert set(contents(folder)) == {*made, "nats.conf", "roles.sql", FILE}
    assert "next: " in words
    assert f"DESKBUS_SECRETS_DIR={folder}" in words
    for name in made:
        assert (folder / name).read_text().strip() not in said + words
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("tls", [(), ("--tls",)], ids=["plain", "tls"])
def test_the_doctor_finds_well_what_it_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: tuple[str, ...]
) -> None:
    folder = tmp_path / "secrets"
    previous = os.umask(0o027)
    try:
        assert init(monkeypatch, str(folder), *tls) == ExitCode.OK
    finally:
        os.umask(previous)
    (check,) = (
        each for each in machine(Settings(secrets_dir=folder)) if each.name == "credentials"
    )
    assert check.verdict is CheckVerdict.OK
    # Into a container whose root has no rights beyond its own; public keys only.
    assert (folder / "nats.conf").stat().st_mode & 0o777 == 0o644

    (folder / "cli.nk").chmod(0o644)
    (check,) = (
        each for each in machine(Settings(secrets_dir=folder)) if each.name == "credentials"
    )
    assert check.verdict is CheckVerdict.PROBLEM
    assert check.todo == f"chmod 600 {folder / 'cli.nk'}"


def test_again_it_keeps_every_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "secrets"
    init(monkeypatch, str(folder), "--tls", "--host", "desk.example")
    before = contents(folder)
    (folder / "nats.conf").write_text("of an older version")
    capsys.readouterr()

    assert init(monkeypatch, str(folder), "--json") == ExitCode.OK

    told = json.loads(capsys.readouterr().out)
    no_secrets = {"nats.conf", "roles.sql", FILE}
    assert (told["made"], told["kept"]) == ([], len(before.keys() - no_secrets))
    assert set(told["expires"]) == {"nats", "postgres", "http"}
    assert contents(folder) == before, "nats.conf is of this version again"


def test_again_nats_stays_where_it_is_unless_an_option_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or an upgrade would take a cluster apart, or let a server on loopback listen everywhere."""
    folder, conf = tmp_path / "secrets", tmp_path / "secrets/nats.conf"
    where = ("--listen", "127.0.0.1", "--port", "4333", "--monitor-port", "8333")
    nodes = ("--nats-node", "nats-0.nats:6222", "--nats-node", "nats-1.nats:6222")
    folders = ("--store-dir", "/var/lib/nats", "--tls", "--tls-dir", "/etc/nats")
    init(monkeypatch, str(folder), *where, *nodes, *folders)
    before = conf.read_text()
    assert json.loads(before)["cluster"]["routes"] == [
        "nats://nats-0.nats:6222",
        "nats://nats-1.nats:6222",
    ]

    assert init(monkeypatch, str(folder)) == ExitCode.OK
    assert conf.read_text() == before
    assert "compose.tls.yaml" in capsys.readouterr().err

    assert init(monkeypatch, str(folder), "--port", "4444") == ExitCode.OK
    assert json.loads(conf.read_text()) == {**json.loads(before), "port": 4444}

    conf.unlink()
    assert init(monkeypatch, str(folder)) == ExitCode.OK
    assert "cluster" not in json.loads(conf.read_text())


def test_a_name_that_a_kept_certificate_lacks_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "secrets"
    init(monkeypatch, str(folder), "--tls")
    before = contents(folder)

    assert init(monkeypatch, str(folder), "--tls", "--host", "desk.example") == ExitCode.FAILED

    assert "desk.example" in capsys.readouterr().err
    assert contents(folder) == before


def test_a_folder_of_other_things_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    mode = tmp_path.stat().st_mode

    assert init(monkeypatch, str(tmp_path)) == ExitCode.FAILED

    assert "holds other things" in capsys.readouterr().err
    assert contents(tmp_path) == {"letter.txt": "dear"}
    assert tmp_path.stat().st_mode == mode


def test_nats_is_set_up_for_a_cluster_whose_nodes_know_one_another_by_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "secrets"
    nodes = ("--nats-node", "nats-0.nats:6222", "--nats-node", "nats-1.nats:6222")
    assert init(monkeypatch, str(folder), "--tls", "--tls-dir", "/etc/tls", *nodes) == ExitCode.OK

    config = json.loads((folder / "nats.conf").read_text())
    assert config["tls"] == {"cert_file": "/etc/tls/nats.pem", "key_file": "/etc/tls/nats.key"}
    cluster = config["cluster"]
    assert cluster["routes"] == ["nats://nats-0.nats:6222", "nats://nats-1.nats:6222"]
    assert cluster["tls"] == {**config["tls"], "ca_file": "/etc/tls/ca.pem", "verify": True}


def test_a_cluster_without_certificates_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "secrets")
    assert init(monkeypatch, folder, "--nats-node", "nats-0.nats:6222") == ExitCode.FAILED
    assert "add --tls" in capsys.readouterr().err


def test_monitoring_listens_on_loopback_wherever_clients_come_from(tmp_path: Path) -> None:
    """It tells who asks the names of everybody's inboxes."""
    for listen in ("0.0.0.0", "10.0.0.7"):
        place = NatsPlace(listen=listen)
        provision_secrets(tmp_path / listen, place)
        conf = json.loads((tmp_path / listen / "nats.conf").read_text())
        assert (conf["host"], conf["http"]) == (listen, "127.0.0.1:8222")
        assert kept_place(tmp_path / listen) == place


def test_beside_compose_yaml_it_makes_what_that_needs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "deploy").mkdir()
    for name in ("compose.yaml", "deploy/env.example", "deploy/deskbus.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    monkeypatch.chdir(tmp_path)

    assert init(monkeypatch, "deploy/secrets") == ExitCode.OK
    env = (tmp_path / ".env").read_text()
    assert f"\nDESKBUS_UID={os.getuid()}\nDESKBUS_GID={os.getgid()}\n" in env
    assert (tmp_path / "deskbus.toml").exists()
    assert all((tmp_path / name).is_dir() for name in ("strategies", "exit_signals", "reports"))
    assert "for compose.yaml: " in capsys.readouterr().err

    (tmp_path / "deskbus.toml").write_text("[budget]\nday_cost_usd_max = 2\n")
    (tmp_path / ".env").write_text("DESKBUS_UID=4242\nDESKBUS_HTTP_PORT=9000\n")
    assert init(monkeypatch, "deploy/secrets") == ExitCode.OK
    owned = f"DESKBUS_UID={os.getuid()}\nDESKBUS_HTTP_PORT=9000\nDESKBUS_GID={os.getgid()}\n"
    assert (tmp_path / ".env").read_text() == owned, "nothing else is changed"
    assert (tmp_path / "deskbus.toml").read_text() == "[budget]\nday_cost_usd_max = 2\n"

    (tmp_path / ".env").unlink()
    assert init(monkeypatch, "elsewhere") == ExitCode.OK
    assert not (tmp_path / ".env").exists(), "these are not the secrets of compose.yaml"
