"""Secrets: made once, kept private, never shown; and the NATS rules that are made from them."""

import json
import stat
from pathlib import Path

import nkeys
import pytest

from libs.keys.accounts import NatsPermissions
from libs.keys.credentials import (
    CredentialError,
    ensure_secrets,
    nkey_public_key,
    nkey_seed_path,
    postgres_password,
    postgres_password_path,
)
from libs.keys.nats_config import NatsPlace, nats_config, nats_config_text


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _config(permissions: dict[str, NatsPermissions]) -> dict:
    return nats_config(
        permissions,
        {name: f"U{name.upper()}" for name in permissions},
        NatsPlace("127.0.0.1", 20001, 20002, Path("/data/nats")),
    )


def test_secrets_are_private_files_in_a_private_directory(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    ensure_secrets(secrets, nats_identities=["risk"], postgres_roles=["console"])
    assert _mode(secrets) == 0o700
    assert {path.name: _mode(path) for path in secrets.iterdir()} == {
        "risk.nk": 0o600,
        "postgres_console.password": 0o600,
    }


def test_existing_secrets_are_kept_and_missing_ones_are_added(tmp_path: Path) -> None:
    ensure_secrets(tmp_path / "s", nats_identities=["risk"], postgres_roles=["console"])
    before = (nkey_public_key(tmp_path / "s", "risk"), postgres_password(tmp_path / "s", "console"))
    ensure_secrets(tmp_path / "s", nats_identities=["risk", "trader"], postgres_roles=["console"])
    after = (nkey_public_key(tmp_path / "s", "risk"), postgres_password(tmp_path / "s", "console"))
    assert after == before
    assert nkey_public_key(tmp_path / "s", "trader") != before[0]


def test_loose_modes_are_tightened(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    ensure_secrets(secrets, nats_identities=["risk"], postgres_roles=[])
    secrets.chmod(0o755)
    nkey_seed_path(secrets, "risk").chmod(0o644)
    ensure_secrets(secrets, nats_identities=["risk"], postgres_roles=[])
    assert (_mode(secrets), _mode(nkey_seed_path(secrets, "risk"))) == (0o700, 0o600)


def test_a_seed_is_a_user_key_whose_signatures_verify(tmp_path: Path) -> None:
    ensure_secrets(tmp_path / "s", nats_identities=["risk"], postgres_roles=[])
    seed = nkey_seed_path(tmp_path / "s", "risk").read_bytes().strip()
    pair = nkeys.from_seed(bytearray(seed))
    assert seed.startswith(b"SU")
    assert pair.public_key.decode() == nkey_public_key(tmp_path / "s", "risk")
    assert pair.verify(b"nonce", pair.sign(b"nonce"))


def test_an_empty_secret_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    ensure_secrets(tmp_path / "s", nats_identities=[], postgres_roles=["console"])
    path = postgres_password_path(tmp_path / "s", "console")
    path.write_text("")
    with pytest.raises(CredentialError, match=r"postgres_console\.password is empty"):
        ensure_secrets(tmp_path / "s", nats_identities=[], postgres_roles=["console"])


def test_a_spoiled_seed_is_an_error_without_the_seed_in_it(tmp_path: Path) -> None:
    ensure_secrets(tmp_path / "s", nats_identities=["risk"], postgres_roles=[])
    nkey_seed_path(tmp_path / "s", "risk").write_text("SUAAHIDDEN\n")
    with pytest.raises(CredentialError, match=r"risk\.nk does not hold") as caught:
        nkey_public_key(tmp_path / "s", "risk")
    assert "HIDDEN" not in str(caught.value)


def test_a_missing_secret_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="deskbus secrets init"):
        postgres_password(tmp_path, "console")


@pytest.mark.parametrize("name", ["", "../risk", "Risk", "a b", "risk.nk"])
def test_a_name_that_is_no_plain_word_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="can't name a secret"):
        nkey_seed_path(tmp_path, name)


def test_the_config_listens_on_loopback_only_and_bounds_sizes() -> None:
    config = _config({"risk": NatsPermissions(("a",), ("b",))})
    assert (config["host"], config["port"], config["http"]) == (
        "127.0.0.1",
        20001,
        "127.0.0.1:20002",
    )
    assert config["max_payload"] == 1024 * 1024
    assert config["jetstream"]["store_dir"] == "/data/nats"
    assert config["jetstream"]["max_file_store"] > 0


def test_an_empty_list_of_subjects_refuses_everything() -> None:
    (user,) = _config({"risk": NatsPermissions((), ())})["accounts"]["risk"]["users"]
    assert user["permissions"] == {"publish": {"deny": [">"]}, "subscribe": {"deny": [">"]}}


def test_subjects_become_allow_lists_of_an_account_of_ones_own() -> None:
    config = _config(
        {
            "risk": NatsPermissions(("$JS.ACK.CMD.risk.>",), ("_INBOX_risk.>",)),
            "orchestrator": NatsPermissions(("x",), ("y",)),
        }
    )
    assert set(config["accounts"]) == {"risk", "orchestrator"}
    (risk,) = config["accounts"]["risk"]["users"]
    assert risk == {
        "nkey": "URISK",
        "permissions": {
            "publish": {"allow": ["$JS.ACK.CMD.risk.>"]},
            "subscribe": {"allow": ["_INBOX_risk.>"]},
        },
    }
    assert "allow_responses" not in json.dumps(config)


def test_a_config_without_users_is_refused_because_it_would_let_everyone_in() -> None:
    with pytest.raises(ValueError, match="at least one"):
        _config({})


def test_a_path_is_written_by_the_escapes_that_nats_reads() -> None:
    name = "/数据/josé/🚀 $HOME 'a' \"b\" \\u {c} #1"
    text = nats_config_text({"jetstream": {"store_dir": name}})
    assert json.loads(text) == {"jetstream": {"store_dir": name}}
    assert r'''"/数据/josé/🚀 $HOME 'a' \"b\" \\u {c} #1"''' in text


def test_a_path_with_a_line_break_is_refused_because_nats_cannot_read_it() -> None:
    with pytest.raises(CredentialError, match=r'control character: "store_dir": "/a\\nb"'):
        nats_config_text({"jetstream": {"store_dir": "/a\nb"}})
