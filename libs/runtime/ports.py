"""Free ports on loopback, the same ones again where they are still free."""

import secrets
import socket

from libs.runtime.errors import StartError

LOOPBACK = "127.0.0.1"
# Below the ranges from which systems take the ports of outgoing connections: while a server is
# down for a moment, no connection may take its port.
PORT_FIRST = 20_000
PORT_LAST = 29_999
TRIES_MAX = 200


LOOPBACK_TRY_S = 2.0


class PortError(StartError):
    """No free port was found, or this machine has no loopback."""


def check_loopback() -> None:
    """Raise PortError where a program on this machine cannot reach another one by LOOPBACK: the
    interface is off, or it has IPv6 alone."""
    try:
        with socket.create_server((LOOPBACK, 0)) as server:
            socket.create_connection(server.getsockname(), timeout=LOOPBACK_TRY_S).close()
    except OSError as error:
        raise PortError(
            f"This machine cannot connect to itself at {LOOPBACK} ({error.strerror or error}), "
            "where the embedded servers listen. Enable its loopback interface (`ip link set lo "
            "up`), or set DESKBUS_NATS_URL and DESKBUS_POSTGRES_DSN to servers of your own."
        ) from error


def is_free(port: int) -> bool:
    """True where a server could listen on this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def choose_port(remembered: int | None, taken: set[int]) -> int:
    """The remembered port where it is free, else a random free one that is not in `taken`."""
    if remembered is not None and remembered not in taken and is_free(remembered):
        return remembered
    for _ in range(TRIES_MAX):
        port = PORT_FIRST + secrets.randbelow(PORT_LAST - PORT_FIRST + 1)
        if port not in taken and is_free(port):
            return port
    raise PortError(
        f"No free port between {PORT_FIRST} and {PORT_LAST} on {LOOPBACK} in {TRIES_MAX} tries."
    )
