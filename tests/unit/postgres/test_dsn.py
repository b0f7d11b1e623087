"""Which user and password a process shows to Postgres."""

from pathlib import Path
from typing import Any

import pytest
from asyncpg import connect_utils

from libs.postgres.pool import CONSOLE_ROLE, PasswordUnreadable, dsn_for, explicit
from libs.runtime.settings import Settings
from libs.servers.postgres_backup import without_password

DSN = "postgresql://postgres:5432/deskbus"


def test_a_role_whose_password_is_there_is_used(tmp_path: Path) -> None:
    (tmp_path / f"postgres_{CONSOLE_ROLE}.password").write_text("a/b\n")
    assert dsn_for(DSN, CONSOLE_ROLE, tmp_path) == (
        "postgresql://deskbus_console:a%2Fb@postgres:5432/deskbus"
    )


def test_without_a_password_the_address_is_used_as_it_is(tmp_path: Path) -> None:
    assert dsn_for(DSN, CONSOLE_ROLE, tmp_path) == DSN


def test_a_password_that_cannot_be_read_is_told_with_what_to_do(tmp_path: Path) -> None:
    """A file of another user's in a container; here a folder, which root cannot read either."""
    (tmp_path / f"postgres_{CONSOLE_ROLE}.password").mkdir()
    says = r"postgres_deskbus_console\.password cannot be read .* DESKBUS_UID and DESKBUS_GID"
    with pytest.raises(PasswordUnreadable, match=says):
        dsn_for(DSN, CONSOLE_ROLE, tmp_path)


SOCKET = "postgresql:///deskbus?host=/run/jos%C3%A9%20a&sslmode=disable"


def test_the_address_of_a_socket_keeps_the_slashes_that_libpq_needs(tmp_path: Path) -> None:
    assert dsn_for(SOCKET, CONSOLE_ROLE, tmp_path) == SOCKET
    assert Settings(postgres={"dsn": SOCKET}).postgres_public == SOCKET
    assert without_password(SOCKET) == (SOCKET, "")
    login = SOCKET.replace(":///", "://me:a%2Fb@/")
    assert without_password(login) == (SOCKET.replace(":///", "://me@/"), "a/b")


def test_authorities_in_a_folder_with_any_name_are_found_by_libpq_too(tmp_path: Path) -> None:
    """libpq takes `%20` for a blank, and `+` for a plus."""
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "ca.pem").touch()
    dsn = dsn_for("postgresql://db/x?sslmode=verify-full", CONSOLE_ROLE, tmp_path / "a b")
    assert dsn.endswith("%2Fa%20b%2Fca.pem")


AMBIENT = {
    "PGSSLMODE": "require",
    "PGSSLNEGOTIATION": "direct",
    "PGTARGETSESSIONATTRS": "standby",
    "PGGSSLIB": "none",
    "PGHOST": "nowhere",
    "PGPORT": "none",
    "PGUSER": "nobody",
    "PGPASSWORD": "wrong",
    "PGDATABASE": "none",
    "PGSERVICE": "none",
    "PGSERVICEFILE": "/nonexistent",
    "PGPASSFILE": "/nonexistent",
    "PGOPTIONS": "-c nonsense=1",
    "PGSSLMINPROTOCOLVERSION": "none",
    "PGSSLROOTCERT": "/nonexistent",
    "SSLKEYLOGFILE": "/nonexistent/keys",
}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
@pytest.mark.parametrize("port", ["", ":20001"])
def test_no_variable_changes_how_a_server_on_this_machine_is_asked(
    monkeypatch: pytest.MonkeyPatch, host: str, port: str
) -> None:
    dsn = f"postgresql://me:word@{host}{port}/deskbus"
    expected = _asked(dsn)
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    assert _asked(dsn) == expected
    ((address, number),), params = expected
    assert (address, number) == (host.strip("[]"), int(port[1:] or 5432))
    assert (params.user, params.password, params.ssl) == ("me", "word", False)


def test_the_options_of_the_address_count() -> None:
    addresses, params = _asked(
        "postgresql://me@127.0.0.1,localhost:7/x?sslmode=require&target_session_attrs=read-write"
    )
    assert addresses == [("127.0.0.1", 5432), ("localhost", 7)]
    assert (params.ssl is not False, params.target_session_attrs.value) == (True, "read-write")
    assert explicit("postgresql://db.example.org/x") == {}


def _asked(dsn: str) -> Any:
    """The addresses and parameters that asyncpg makes of an address."""
    names = ("host", "port", "ssl", "direct_tls", "target_session_attrs", "gsslib")
    nothing = dict.fromkeys(
        ("user", "password", "passfile", "database", "service", "servicefile", "krbsrvname")
    )
    arguments = {**nothing, **dict.fromkeys(names), **explicit(dsn), "server_settings": None}
    return connect_utils._parse_connect_dsn_and_args(dsn=dsn, **arguments)
