"""A server of the standard library in a thread, for as long as a block runs."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

POLL_S = 0.02


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
