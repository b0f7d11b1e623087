"""A private authority and its certificates: made once, kept, checked when they are asked for."""

import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from libs.keys.certificates import CERTIFICATE_DAYS, ensure_certificates
from libs.keys.credentials import CredentialError
from libs.keys.tls import CaUnreadable, client_context

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SERVERS: Mapping[str, Sequence[str]] = {"nats": ("nats", "127.0.0.1"), "http": ("console", "::1")}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_each_server_gets_a_certificate_of_one_authority(tmp_path: Path) -> None:
    expires = ensure_certificates(tmp_path, SERVERS, NOW)

    assert expires == dict.fromkeys(SERVERS, NOW + timedelta(days=CERTIFICATE_DAYS))
    assert set(files(tmp_path)) == {f"{n}.{e}" for n in ("ca", *SERVERS) for e in ("pem", "key")}
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == (0o600 if path.suffix == ".key" else 0o644)
    for name in SERVERS:
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")


def test_what_exists_is_kept(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, SERVERS, NOW)
    before = files(tmp_path)

    ensure_certificates(tmp_path, SERVERS, NOW + timedelta(days=100))

    assert files(tmp_path) == before


def test_a_deleted_pair_is_made_anew_by_the_same_authority(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, SERVERS, NOW)
    before = files(tmp_path)
    for suffix in (".pem", ".key"):
        (tmp_path / "nats").with_suffix(suffix).unlink()

    expires = ensure_certificates(tmp_path, SERVERS, NOW + timedelta(days=100))

    after = files(tmp_path)
    assert expires["nats"] == NOW + timedelta(days=100 + CERTIFICATE_DAYS)
    assert {name for name in after if after[name] != before[name]} == {"nats.pem", "nats.key"}


def test_the_authoritys_key_may_be_kept_elsewhere_until_something_is_signed(
    tmp_path: Path,
) -> None:
    ensure_certificates(tmp_path, SERVERS, NOW)
    (tmp_path / "ca.key").unlink()
    ensure_certificates(tmp_path, SERVERS, NOW)

    with pytest.raises(CredentialError, match=r"ca\.key cannot be read.*Put it back"):
        ensure_certificates(tmp_path, {**SERVERS, "postgres": ("postgres",)}, NOW)


def test_a_name_that_a_kept_certificate_lacks_is_told(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, SERVERS, NOW)
    wanted = {**SERVERS, "nats": ("nats", "desk.example")}
    with pytest.raises(CredentialError, match=r"does not name desk\.example.*Delete .*nats\.pem"):
        ensure_certificates(tmp_path, wanted, NOW)


def test_a_certificate_that_has_expired_is_told(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, SERVERS, NOW)
    with pytest.raises(CredentialError, match=r"nats\.pem expired on 2028-06-03\. Delete"):
        ensure_certificates(tmp_path, SERVERS, NOW + timedelta(days=CERTIFICATE_DAYS))


def test_half_a_pair_is_told(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, SERVERS, NOW)
    (tmp_path / "nats.key").unlink()
    with pytest.raises(CredentialError, match=r"only .*nats\.pem is there\. Delete"):
        ensure_certificates(tmp_path, SERVERS, NOW)


def test_a_certificate_of_another_authority_is_told(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        ensure_certificates(tmp_path / name, SERVERS, NOW)
    for name in ("nats.pem", "nats.key"):
        (tmp_path / "two" / name).replace(tmp_path / "one" / name)
    with pytest.raises(CredentialError, match=r"not signed by the authority in ca\.pem"):
        ensure_certificates(tmp_path / "one", SERVERS, NOW)


def test_a_name_that_no_certificate_can_hold_is_told(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="'größe' is not a host name"):
        ensure_certificates(tmp_path, {"nats": ("größe",)}, NOW)


def test_clients_believe_the_authority_beside_their_key_and_no_other(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, SERVERS, NOW)

    believed = client_context(tmp_path).get_ca_certs()

    assert [dict(x[0] for x in each["subject"])["commonName"] for each in believed] == [
        "Deskbus CA 2026-03-01"
    ]
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(CaUnreadable, match=r"ca\.pem is not a readable certificate file"):
        client_context(tmp_path)
