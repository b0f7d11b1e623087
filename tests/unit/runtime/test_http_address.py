"""Where the HTTP API may listen, and with what."""

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from libs.keys.certificates import ensure_certificates
from libs.runtime.http_address import (
    PORTS_TRIED,
    HttpAddress,
    HttpPortTaken,
    HttpRefused,
    OwnerToken,
    http_address,
    with_free_port,
)
from libs.runtime.proposers import FILE, HTTP_TOKEN_FILE, Proposers
from libs.runtime.settings import Settings
from tests.fakes.proposers import added
from tests.flat_settings import settings_with

TOKEN = "a-token-of-some-length"


def settings(**given: Any) -> Settings:
    return settings_with(http_enabled=True, **given)


def test_it_is_off_unless_it_is_asked_for() -> None:
    assert http_address(Settings()) is None


def test_it_is_on_loopback_without_a_token() -> None:
    address = http_address(settings())
    assert address is not None
    assert (address.url, address.token) == ("http://127.0.0.1:8000", None)


def test_port_0_takes_a_free_one() -> None:
    address = http_address(settings(http_port=0))
    assert address is not None
    assert address.port > 0
    address.listening().close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "::1"])
def test_loopback_has_many_names(host: str) -> None:
    address = http_address(settings(http_host=host))
    assert address is not None
    assert address.is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "desk.example"])
def test_beyond_loopback_it_does_not_start_without_a_token(host: str) -> None:
    with pytest.raises(HttpRefused, match="set DESKBUS_HTTP_TOKEN or DESKBUS_HTTP_TOKEN_FILE"):
        http_address(settings(http_host=host))


def test_beside_a_program_loopback_takes_a_token_too(tmp_path: Path) -> None:
    beside = settings(secrets_dir=tmp_path, providers={"local": {"command": ["agent"]}})
    with pytest.raises(HttpRefused, match="a provider that is a command"):
        http_address(beside)
    (tmp_path / "http.token").write_text(TOKEN)
    address = http_address(beside)
    assert address is not None
    assert address.token == TOKEN


def test_beyond_loopback_it_starts_with_a_token_and_never_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    for given in ({"http_token": TOKEN}, {"http_token_file": file}):
        address = http_address(settings(http_host="0.0.0.0", **given))
        assert address is not None
        assert address.token == TOKEN
        assert TOKEN not in repr(address)
        assert address.url == "http://127.0.0.1:8000", "as a program on this machine reaches it"


def test_an_ipv6_address_stands_in_brackets() -> None:
    address = http_address(settings(http_host="::1"))
    assert address is not None
    assert address.url == "http://[::1]:8000"


@pytest.mark.parametrize("token", ["short", "with a\nline break in it", "größer als gedacht"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(HttpRefused, match="16 or more printable ASCII"):
        http_address(settings(http_token=token))


def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HttpRefused, match=r"nowhere.*cannot be read"):
        http_address(settings(http_token_file=tmp_path / "nowhere"))


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = http_address(settings(http_port=taken.getsockname()[1]))
        assert address is not None
        with pytest.raises(HttpRefused, match=r"--port .*0 takes any free port.*--no-http"):
            address.listening()


def test_a_host_that_is_none_is_an_error_that_names_it() -> None:
    address = http_address(settings(http_host="no such host", http_token=TOKEN))
    assert address is not None
    with pytest.raises(HttpRefused, match="this machine has no address 'no such host'"):
        address.listening()


def test_with_a_certificate_it_speaks_tls(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, {"http": ("localhost",)})
    given = {"http_cert_file": tmp_path / "http.pem", "http_key_file": tmp_path / "http.key"}

    address = http_address(settings(**given))

    assert address is not None
    assert address.url == "https://127.0.0.1:8000"


def test_a_certificate_takes_its_own_key(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, {"http": ("localhost",), "nats": ("nats",)})
    own, other = tmp_path / "http.pem", tmp_path / "nats.key"
    with pytest.raises(HttpRefused, match="DESKBUS_HTTP_KEY_FILE is not set"):
        http_address(settings(http_cert_file=own))
    with pytest.raises(HttpRefused, match="DESKBUS_HTTP_CERT_FILE is not set"):
        http_address(settings(http_key_file=other))
    for key in (other, tmp_path / "nowhere"):
        with pytest.raises(HttpRefused, match=r"cannot be used .*belong together"):
            http_address(settings(http_cert_file=own, http_key_file=key))


def test_the_owners_token_is_needed_from_the_first_proposer_to_the_consoles_end(
    tmp_path: Path,
) -> None:
    token = OwnerToken(settings(secrets_dir=tmp_path))
    assert token() is None
    Proposers(tmp_path).ensure()
    assert token() is None
    added(tmp_path, {"bot": {}})
    owner = (tmp_path / HTTP_TOKEN_FILE).read_text().strip()
    assert token() == owner
    Proposers(tmp_path).revoke("bot", datetime.now(UTC))
    assert token() == owner


def test_without_a_readable_register_or_token_nobody_is_let_in(tmp_path: Path) -> None:
    token = OwnerToken(settings(secrets_dir=tmp_path))
    (tmp_path / FILE).write_text("{")
    with pytest.raises(HttpRefused, match="is damaged"):
        token()
    (tmp_path / FILE).unlink()
    added(tmp_path, {"bot": {}})
    (tmp_path / HTTP_TOKEN_FILE).unlink()
    with pytest.raises(HttpRefused, match="cannot be read"):
        token()


def test_the_next_free_port_is_taken_where_the_default_one_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        address = HttpAddress("127.0.0.1", port).free_from_here()
        assert port < address.port < port + PORTS_TRIED
        address.listening().close()


def test_of_a_host_that_is_not_this_machines_no_port_is_looked_for() -> None:
    with pytest.raises(HttpRefused, match=r"no address|cannot listen"):
        HttpAddress("192.0.2.1", 8000).free_from_here()


def test_a_port_that_was_chosen_and_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        chosen = settings(http_port=taken.getsockname()[1])
        with pytest.raises(HttpPortTaken, match="cannot listen"):
            with_free_port(chosen)


def test_of_settings_without_a_port_the_next_free_one_is_in_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        unset = settings().http.model_copy(update={"port": port})
        unset.model_fields_set.discard("port")
        in_force = with_free_port(Settings().changed(http=unset))

    assert port < in_force.http.port < port + PORTS_TRIED
