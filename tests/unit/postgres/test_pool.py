"""What Postgres says, sorted: an outage is waited for, what cannot be stored is refused."""

import asyncpg
import pytest

from libs.postgres.pool import is_not_storable, is_outage

AWAY = {
    "08000": "connection_exception",
    "08006": "connection_failure",
    "25006": "read_only_sql_transaction",
    "25P03": "idle_in_transaction_session_timeout",
    "28000": "invalid_authorization_specification",
    "28P01": "invalid_password",
    "3D000": "invalid_catalog_name",
    "40001": "serialization_failure",
    "40P01": "deadlock_detected",
    "53100": "disk_full",
    "53200": "out_of_memory",
    "53300": "too_many_connections",
    "55000": "object_not_in_prerequisite_state",
    "55P03": "lock_not_available",
    "57014": "query_canceled",
    "57P01": "admin_shutdown",
    "57P02": "crash_shutdown",
    "57P03": "cannot_connect_now",
    "57P04": "database_dropped",
    "58030": "io_error",
}
OFFENDING = {
    "22001": "string_data_right_truncation",
    "22021": "character_not_in_repertoire",
    "22P05": "untranslatable_character",
    "23505": "unique_violation",
    "23514": "check_violation",
    "54000": "program_limit_exceeded",
}
NOT_IN_ORDER = {
    "42501": "insufficient_privilege",
    "42P01": "undefined_table",
    "42703": "undefined_column",
    "XX000": "internal_error",
    "P0001": "raise_exception",
}


OF_STORAGE = {
    "42501": "md.c",  # could not extend file: Read-only file system
    "XX000": "buffile.c",  # could not write to file: Disk quota exceeded
    "54000": "varsup.c",  # no transaction ids are left until somebody vacuums
}


def said(sqlstate: str, source: str = "execMain.c") -> Exception:
    """The error as asyncpg makes it of a server's message."""
    words = {"C": sqlstate, "S": "ERROR", "M": "words", "F": source}
    error: Exception = asyncpg.PostgresError.new(words)
    return error


@pytest.mark.parametrize("sqlstate", AWAY, ids=AWAY.get)
def test_a_server_that_cannot_be_used_is_an_outage(sqlstate: str) -> None:
    assert is_outage(said(sqlstate))
    assert not is_not_storable(said(sqlstate))


@pytest.mark.parametrize("sqlstate", OFFENDING, ids=OFFENDING.get)
def test_a_fault_of_what_is_written_is_refused(sqlstate: str) -> None:
    assert is_not_storable(said(sqlstate))
    assert not is_outage(said(sqlstate))


@pytest.mark.parametrize("sqlstate", NOT_IN_ORDER, ids=NOT_IN_ORDER.get)
def test_anything_else_is_neither(sqlstate: str) -> None:
    assert not is_outage(said(sqlstate))
    assert not is_not_storable(said(sqlstate))


@pytest.mark.parametrize(("sqlstate", "source"), OF_STORAGE.items())
def test_an_error_of_postgres_own_storage_is_an_outage_whatever_its_state(
    sqlstate: str, source: str
) -> None:
    assert is_outage(said(sqlstate, source))
    assert not is_not_storable(said(sqlstate, source))


def test_damaged_data_is_no_outage() -> None:
    assert not is_outage(said("XX001", "md.c"))
