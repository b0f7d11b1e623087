"""A server that answers too slowly, or never to the end: the ways of it, for any stand-in."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

EVERY_S = 0.02
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def _hangs(handler: BaseHTTPRequestHandler, over: threading.Event) -> None:
    over.wait(20)


def _headers_alone(handler: BaseHTTPRequestHandler, over: threading.Event) -> None:
    handler.wfile.write(HEAD + b"Content-Length: 1000\r\n\r\n")
    over.wait(20)


def _closes_in_the_middle(handler: BaseHTTPRequestHandler, over: threading.Event) -> None:
    handler.wfile.write(HEAD + b'Content-Length: 1000\r\n\r\n{"chart": {"res')


def _drips(start: bytes, piece: bytes) -> Callable[[BaseHTTPRequestHandler, threading.Event], None]:
    def drip(handler: BaseHTTPRequestHandler, over: threading.Event) -> None:
        handler.wfile.write(start)
        while not over.wait(EVERY_S):
            handler.wfile.write(piece)

    return drip


SLOW: Mapping[str, Callable[[BaseHTTPRequestHandler, threading.Event], None]] = {
    "hangs": _hangs,
    "headers alone": _headers_alone,
    "closes in the middle": _closes_in_the_middle,
    "drips its headers": _drips(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "drips its body": _drips(HEAD + b"Content-Length: 100000\r\n\r\n", b" "),
    "never ends": _drips(HEAD + b"Connection: close\r\n\r\n[0", b",0"),
}
"""What a server does instead of an answer, until the event is set or the caller has gone."""


def answer_slowly(handler: BaseHTTPRequestHandler, how: str, over: threading.Event) -> None:
    """Answer one request so, and end its connection."""
    handler.close_connection = True
    with contextlib.suppress(OSError):
        SLOW[how](handler, over)


@dataclass
class SlowAnswer:
    """Requests whose address holds `part` are answered in one of the ways of SLOW."""

    part: str
    how: str
