"""The demo's own receiver of messages to people, on this machine: one channel is heard, the other
is out of order on purpose, so that a backlog can be seen. It keeps nothing of what it hears."""

import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from libs.channels.addresses import PREFIX
from libs.runtime.notify_settings import variable_name
from libs.runtime.ports import LOOPBACK
from services.cli.demo.sealed import INBOX, PAGER

BODY_BYTES_MAX = 1_000_000


@contextmanager
def receiver() -> Iterator[Mapping[str, str]]:
    """Listen while the block runs; gives the channels' addresses and keys by their variables."""
    server = ThreadingHTTPServer((LOOPBACK, 0), _Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="demo-receiver", daemon=True).start()
    variables: dict[str, str] = {}
    for channel in (INBOX, PAGER):
        variable = f"{PREFIX}{variable_name(channel)}"
        variables[variable] = f"http://{LOOPBACK}:{server.server_address[1]}/{channel}"
        variables[f"{variable}_KEY"] = secrets.token_urlsafe(32)
    try:
        yield variables
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = 10.0

    def do_POST(self) -> None:
        """Hear one message."""
        length = self.headers.get("Content-Length", "")
        self.rfile.read(min(int(length), BODY_BYTES_MAX) if length.isdecimal() else 0)
        is_inbox = self.path == f"/{INBOX}"
        self.close_connection = True
        self.send_response(HTTPStatus.NO_CONTENT if is_inbox else HTTPStatus.SERVICE_UNAVAILABLE)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing: the terminal is the demo's."""
