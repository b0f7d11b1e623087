"""Ports: the remembered one while it is free."""

import socket

import pytest

from libs.runtime import ports
from libs.runtime.ports import (
    PORT_FIRST,
    PORT_LAST,
    PortError,
    check_loopback,
    choose_port,
    is_free,
)


def test_a_remembered_port_is_taken_again() -> None:
    port = choose_port(None, set())
    assert PORT_FIRST <= port <= PORT_LAST
    assert choose_port(port, set()) == port


def test_a_port_that_somebody_listens_on_is_not_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        assert choose_port(port, set()) != port


def test_two_servers_of_one_desk_get_different_ports() -> None:
    first = choose_port(None, set())
    assert choose_port(first, {first}) != first


def test_a_machine_without_ipv4_on_loopback_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_loopback()
    monkeypatch.setattr(ports, "LOOPBACK", "192.0.2.1")
    with pytest.raises(
        PortError, match=r"cannot connect to itself at 192\.0\.2\.1 .*DESKBUS_NATS_URL"
    ):
        check_loopback()
