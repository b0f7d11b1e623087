"""Whether this container's service can do its work: what its own /readyz says.

It runs every few seconds in every container, so it imports next to nothing. A service that takes
the question and does not answer, three times in a row, is ended, as Kubernetes' liveness probe does
it: Docker restarts what ends, not what is unhealthy.
"""

import os
import signal
import socket
import sys
from pathlib import Path

TIMEOUT_S = 4.0
UNANSWERED_MAX = 3
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
    unanswered = Path(f"/tmp/unanswered.{port}")  # noqa: S108 - the container's own, new at each start
    try:
        ready, words = readiness(port)
    except TimeoutError:
        with unanswered.open("ab") as file:
            file.write(b".")
            times = file.tell()
        words = f"port {port} takes the question and does not answer, {times} times in a row"
        if times >= UNANSWERED_MAX:
            unanswered.unlink()
            end_service(port)
            words += ": the service is ended"
        sys.exit(words)
    except OSError as error:
        sys.exit(f"nothing answers on port {port} (DESKBUS_METRICS_PORT): {error}")
    unanswered.unlink(missing_ok=True)
    if not ready:
        sys.exit(f"not ready: {words}")


def end_service(port: int) -> None:
    """End the service whose port this is: it runs a module of `services` and has the setting."""
    setting = f"DESKBUS_METRICS_PORT={port}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            settings = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # another user's, or it has just ended
        if setting in settings and any(word.startswith(b"services.") for word in words):
            os.kill(int(process.name), signal.SIGKILL)


if __name__ == "__main__":
    main()
