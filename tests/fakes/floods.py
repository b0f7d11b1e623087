"""Answers of a server that wants to fill its caller's memory, each as headers and endless bytes."""

import gzip
import itertools
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from tests.fakes.model_server import Pours

MB = b"x" * 1_000_000


JSON = {"content-type": "application/json"}
PACKED_JSON = JSON | {"content-encoding": "gzip"}
TWICE_PACKED_JSON = JSON | {"content-encoding": "gzip, gzip"}
HTML = {"content-type": "text/html"}
EVENTS = {"content-type": "text/event-stream"}
PACKED_EVENTS = EVENTS | {"content-encoding": "gzip"}


def packed(piece: bytes, times: int) -> Iterator[bytes]:
    """`piece` so many times, as gzip: a thousandth of it on the wire."""
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for _ in range(times):
        if out := packer.compress(piece):
            yield out
    yield packer.flush()


def twice_packed(piece: bytes, times: int) -> Iterator[bytes]:
    """The same packed again: a millionth."""
    yield gzip.compress(b"".join(packed(piece, times)))


def event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(delta: Mapping[str, Any]) -> bytes:
    """A chunk of an OpenAI stream."""
    return event({"choices": [{"index": 0, "delta": delta}]})


def block(kind: str, index: int, **more: Any) -> bytes:
    """An event of a Claude stream about one of its blocks."""
    return event({"type": kind, "index": index, **more})


def calls() -> Iterator[bytes]:
    """Tool calls without an end."""
    for number in itertools.count():
        yield chunk({"tool_calls": [{"id": f"c{number}"}] * 1_000})


def blocks() -> Iterator[bytes]:
    """Blocks without an end, of Claude's format."""
    empty = {"type": "text", "text": ""}
    for first in itertools.count(step=100):
        numbers = range(first, first + 100)
        yield b"".join(block("content_block_start", n, content_block=empty) for n in numbers)


def citations() -> Iterator[bytes]:
    """One block whose citations have no end."""
    yield block("content_block_start", 0, content_block={"type": "text", "text": ""})
    cited = {"type": "citations_delta", "citation": [[]] * 1_000}
    yield from itertools.repeat(block("content_block_delta", 0, delta=cited))


def texts() -> Iterator[bytes]:
    """Text in chunks of a few bytes: quadratic for whoever copies what it has."""
    yield from itertools.repeat(chunk({"content": "four"}) * 100)


def lists() -> Iterator[bytes]:
    """JSON of empty lists, each of three bytes here and twenty times that in memory."""
    return packed(b"[]," * 300_000, 3_000)


FLOODS: Mapping[str, Pours] = {
    "3 GB without a length": Pours(lambda: itertools.repeat(MB, 3_000), JSON),
    "a gzip bomb": Pours(lambda: packed(MB, 3_000), PACKED_JSON),
    "a gzip bomb of empty lists": Pours(lists, PACKED_JSON),
    "a gzip bomb in a gzip bomb": Pours(lambda: twice_packed(MB, 300), TWICE_PACKED_JSON),
    "a gzip bomb as an error": Pours(lambda: packed(MB, 3_000), PACKED_JSON, 500),
    "empty lists as an error": Pours(lists, PACKED_JSON, 400),
    "an endless error page": Pours(lambda: itertools.repeat(MB, 3_000), HTML, 403),
    "an endless line": Pours(lambda: itertools.repeat(MB, 3_000), EVENTS),
    "endless pings": Pours(lambda: itertools.repeat(b": ping\n" * 10_000), EVENTS),
    "a gzip bomb of newlines": Pours(lambda: packed(b"\n" * 1_000_000, 3_000), PACKED_EVENTS),
    "a gzip bomb of events": Pours(lambda: packed(b"data:{}\n" * 100_000, 3_000), PACKED_EVENTS),
    "endless text": Pours(texts, EVENTS),
    "endless tool calls": Pours(calls, EVENTS),
    "endless blocks": Pours(blocks, EVENTS),
    "endless citations": Pours(citations, EVENTS),
}
"""Floods for a model's caller, of both formats: what is none of its format is refused sooner."""
