"""Whether this container's service can do its work: what its own /readyz says.

It runs every few seconds in every container, so it imports next to nothing. A service that hangs
does not answer in time, and this exits 1.
"""

import os
import socket
import sys

TIMEOUT_S = 4.0
ASKED = b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n"


def readiness(port: int) -> tuple[bool, str]:
    """Whether the service on this port of loopback is ready, and its words. Raises OSError."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as asked:
        asked.sendall(ASKED)
        answer = b"".join(iter(lambda: asked.recv(4096), b""))
    head, _, words = answer.decode(errors="replace").partition("\r\n\r\n")
    return head.split(" ", 2)[1:2] == ["200"], words.strip()


def main() -> None:
    """Exit 0 if it is ready; else 1, with why."""
    port = int(os.environ["DESKBUS_METRICS_PORT"])
    try:
        ready, words = readiness(port)
    except OSError as error:
        sys.exit(f"nothing answers on port {port} (DESKBUS_METRICS_PORT): {error}")
    if not ready:
        sys.exit(f"not ready: {words}")


if __name__ == "__main__":
    main()
