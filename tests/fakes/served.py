"""A server of the standard library in a thread, for as long as a block runs."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

POLL_S = 0.02


class KeptConnections:
    """Of a BaseHTTPRequestHandler: HTTP/1.1 on connections that are kept; it says nothing."""

    protocol_version = "HTTP/1.1"
    # Head and body are two writes. By Nagle's algorithm the second waits for the client's
    # acknowledgement of the first, which a client may delay: 40 ms an answer.
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def served(server: socketserver.BaseServer) -> Iterator[None]:
    """Answer while the block runs; then close, without what is still being answered."""
    thread = threading.Thread(target=server.serve_forever, args=(POLL_S,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
