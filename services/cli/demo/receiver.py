"""The demo's own receiver of messages to people, on this machine: one channel is heard, the other
is out of order on purpose, so that a backlog can be seen."""

import hmac
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
from pydantic import SecretStr

from libs.channels.addresses import PREFIX
from libs.channels.webhook import SIGNATURE_HEADER, SIGNATURE_VERSION, TIMESTAMP_HEADER, signature
from libs.runtime.notify_settings import variable_name
from services.cli.demo.sealed import INBOX, PAGER

HOST = "127.0.0.1"
MESSAGES = "messages.jsonl"
"""The file of what was heard, in the demo's directory: a line a notice."""
MESSAGES_BYTES_MAX = 10_000_000
"""A demo that is left open for months fills no disk: what comes then is heard and not kept."""
BODY_BYTES_MAX = 1_000_000
SILENCE_S_MAX = 10.0
"""How long one who has connected may say nothing."""


@contextmanager
def receiver(folder: Path) -> Iterator[Mapping[str, str]]:
    """Listen while the block runs; gives the channels' addresses and keys by their variables.

    Whoever does not know the key of this run is refused, and nothing of theirs is kept.
    """
    key = SecretStr(secrets.token_urlsafe(32))
    server = ThreadingHTTPServer((HOST, 0), _handler(key, folder / MESSAGES))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="demo-receiver", daemon=True)
    thread.start()
    variables: dict[str, str] = {}
    for channel in (INBOX, PAGER):
        variable = f"{PREFIX}{variable_name(channel)}"
        variables[variable] = f"http://{HOST}:{server.server_address[1]}/{channel}"
        variables[f"{variable}_KEY"] = key.get_secret_value()
    try:
        yield variables
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(key: SecretStr, file: Path) -> type[BaseHTTPRequestHandler]:
    writing = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        timeout = SILENCE_S_MAX

        def do_POST(self) -> None:
            """Judge one message."""
            length = self.headers.get("Content-Length", "")
            size = int(length) if length.isdecimal() else BODY_BYTES_MAX + 1
            if size > BODY_BYTES_MAX:
                self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                return
            body = self.rfile.read(size)
            stamp = self.headers.get(TIMESTAMP_HEADER, "")
            mine = f"{SIGNATURE_VERSION}={signature(key, stamp, body)}"
            if not hmac.compare_digest(mine, self.headers.get(SIGNATURE_HEADER, "")):
                self._answer(HTTPStatus.UNAUTHORIZED)
            elif self.path != f"/{INBOX}":
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE)
            else:
                _keep(body)
                self._answer(HTTPStatus.NO_CONTENT)

        def _answer(self, status: HTTPStatus) -> None:
            self.close_connection = True
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing: the terminal is the demo's."""

    def _keep(body: bytes) -> None:
        lines = b"".join(orjson.dumps(notice) + b"\n" for notice in orjson.loads(body)["notices"])
        with writing, file.open("ab") as out:
            if out.tell() + len(lines) <= MESSAGES_BYTES_MAX:
                out.write(lines)

    return Handler
