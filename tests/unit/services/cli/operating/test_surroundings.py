"""The doctor's words on variables of the environment that change how servers are spoken to."""

from pathlib import Path

import pytest

from libs.runtime.settings import Settings
from services.cli.operating import surroundings
from services.cli.operating.checks import CheckVerdict

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    for name in (*CERTIFICATES, *surroundings.OF_POSTGRES, surroundings.KEY_LOG):
        monkeypatch.delenv(name, raising=False)
    return Settings()


def test_nothing_is_said_where_nothing_is_set(settings: Settings) -> None:
    assert surroundings.variables(settings) == []


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_certificates_that_cannot_be_read_are_a_problem(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for path in (tmp_path / "none.pem", tmp_path / "ca.pem"):
        monkeypatch.setenv(name, str(path))
        (check,) = surroundings.variables(settings)
        assert check.verdict is CheckVerdict.PROBLEM
        assert f"{name} {path}: no certificates for" in check.said
        assert check.todo == f"correct or unset {name}"


def test_a_folder_of_certificates_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    (check,) = surroundings.variables(settings)
    assert check.verdict is CheckVerdict.OK
    assert check.said.startswith(f"SSL_CERT_DIR {tmp_path}: its CAs are trusted for models")


def test_a_log_of_tls_keys_is_a_problem(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", "/tmp/keys")
    (check,) = surroundings.variables(settings)
    assert (check.verdict, check.todo) == (CheckVerdict.PROBLEM, "unset SSLKEYLOGFILE")


def test_variables_of_postgres_are_named_where_they_count(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSSLMODE", "require")
    monkeypatch.setenv("PGPASSWORD", "secret")
    assert surroundings.variables(settings) == []
    own = settings.changed(postgres={"dsn": "postgresql://db.example.org/x"})
    (check,) = surroundings.variables(own)
    assert check.said.startswith(
        "PGPASSWORD, PGSSLMODE: each sets a part that DESKBUS_POSTGRES_DSN"
    )
    assert "secret" not in check.said
