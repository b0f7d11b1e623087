"""Errors: which are outages; and names of what there is, never more than a person reads."""

import errno
import socket

import pytest

from libs.runtime.errors import NAMES_MAX, DeskError, Unavailable, few, is_outage


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), "none yet"),
        (("main",), "main"),
        (("main", "growth"), "main, growth"),
        (["x"] * (NAMES_MAX + 3), ", ".join(["x"] * NAMES_MAX) + " and 3 more"),
    ],
)
def test_the_first_names_are_told_and_how_many_more_there_are(
    names: tuple[str, ...], told: str
) -> None:
    assert few(names, "none yet") == told


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("away"),
        ConnectionResetError("reset"),
        TimeoutError("no answer"),
        socket.gaierror("no such host"),
        OSError(errno.EHOSTUNREACH, "no route"),
        OSError(errno.ENOSPC, "no room"),
    ],
    ids=repr,
)
def test_what_cannot_be_reached_or_has_no_room_is_an_outage(error: Exception) -> None:
    assert is_outage(error)


@pytest.mark.parametrize(
    "error",
    [DeskError("no"), FileNotFoundError("x"), PermissionError("x"), ValueError("x"), KeyError("x")],
    ids=repr,
)
def test_a_refusal_and_a_defect_are_none(error: Exception) -> None:
    assert not is_outage(error)
