"""A channel's server over loopback: it says what it is told to, and keeps what it was sent.

Only the network's edge is replaced: the desk's own webhook and Apprise's own plugins speak to it.
"""

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.served import served

HEARD_S = 60.0


@dataclass(frozen=True)
class Answer:
    """What is said to one request, after `silence_s` and once the `gate` (if any) is open."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    silence_s: float = 0.0
    gate: threading.Event | None = None
    body: bytes = b""


@dataclass(frozen=True)
class Heard:
    """One request, and when it came by the steady clock."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def titles(self) -> list[str]:
        """Of a webhook's notices."""
        return [notice["title"] for notice in self.json["notices"]]

    @property
    def event_ids(self) -> list[str]:
        """Of a webhook's notices."""
        return [notice["event_id"] for notice in self.json["notices"]]


Judge = Callable[[Heard], Answer]


class ChannelServer:
    """The server: `answers` are given one after the other, then `judge` says."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[Answer] = []
        self.judge: Judge = lambda _: Answer()
        self.heard: list[Heard] = []
        self.taken: list[Heard] = []
        self.down = False
        """While it is, connections break: new ones at once, those in hand after what they brought
        was taken, as if the server had been killed."""
        self._changed = threading.Condition()

    @property
    def port(self) -> int:
        """The port that it listens to."""
        return urlsplit(self.url).port or 0

    def answer_to(self, heard: Heard) -> Answer:
        with self._changed:
            self.heard.append(heard)
            answer = self.answers.pop(0) if self.answers else self.judge(heard)
            self._changed.notify_all()
        return answer

    def took(self, heard: Heard) -> None:
        with self._changed:
            self.taken.append(heard)
            self._changed.notify_all()

    @property
    def event_ids(self) -> list[str]:
        """Of all that it took, in order, as often as it was sent."""
        return [each for heard in self.taken for each in heard.event_ids]

    def wait(self, until: Callable[["ChannelServer"], bool], timeout_s: float = HEARD_S) -> None:
        """Wait until what it has heard is so."""
        with self._changed:
            if not self._changed.wait_for(lambda: until(self), timeout_s):
                heard: Sequence[str] = [f"{each.path} {each.body[:200]!r}" for each in self.heard]
                raise AssertionError(f"after {timeout_s:g} s it has heard {heard}")


@contextmanager
def channel_server(
    path: str = "/hook", certificate: tuple[Path, Path] | None = None, port: int = 0
) -> Iterator[ChannelServer]:
    """A server of its own while the block runs; with a certificate it speaks TLS."""
    told: list[ChannelServer] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if told[0].down:
                self.close_connection = True
                return
            size = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            heard = Heard(self.path, headers, self.rfile.read(size), time.monotonic())
            answer = told[0].answer_to(heard)
            if answer.gate is not None:
                answer.gate.wait(HEARD_S)
            time.sleep(answer.silence_s)
            if 200 <= answer.status < 300:
                told[0].took(heard)
            if told[0].down:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    told.append(ChannelServer(f"{scheme}://127.0.0.1:{server.server_address[1]}{path}"))
    with served(server):
        yield told[0]
