"""Whether this container's service is connected, asked of NATS and not of the service.

A service that hangs answers no pings; NATS then drops it, and this exits 1.
"""

import json
import os
import socket
import sys
import urllib.request
from urllib.parse import urlsplit

TIMEOUT_S = 4
MONITOR_PORT = 8222


def connected(monitor: str, own_addresses: set[str]) -> bool:
    """Whether NATS has a connection from one of these addresses."""
    # S310: the address comes from this container's own settings.
    with urllib.request.urlopen(f"{monitor}/connz?limit=1024", timeout=TIMEOUT_S) as answer:  # noqa: S310
        connections = json.load(answer)["connections"]
    return any(connection["ip"] in own_addresses for connection in connections)


def own_addresses() -> set[str]:
    """This container's addresses, or the one that DESKBUS_OWN_ADDRESS names."""
    named = os.environ.get("DESKBUS_OWN_ADDRESS")
    if named:
        return {named}
    return {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}


def main() -> None:
    """Exit 0 if connected, else 1."""
    host = urlsplit(os.environ["DESKBUS_NATS_URL"]).hostname
    monitor = os.environ.get("DESKBUS_NATS_MONITOR_URL", f"http://{host}:{MONITOR_PORT}")
    try:
        sys.exit(0 if connected(monitor, own_addresses()) else 1)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"NATS at {monitor} does not answer: {error}")


if __name__ == "__main__":
    main()
