"""Which user and password a process shows to Postgres."""

from pathlib import Path

import pytest

from libs.postgres.pool import CONSOLE_ROLE, PasswordUnreadable, dsn_for

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
