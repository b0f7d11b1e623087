"""Ports: the remembered one while it is free."""

import socket

from libs.runtime.ports import PORT_FIRST, PORT_LAST, choose_port, is_free


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
