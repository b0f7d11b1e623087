"""A model behind HTTP on loopback: Anthropic Messages and OpenAI Chat Completions, with faults.

The real SDKs talk to it. A script says what the n-th request gets, or a function makes it of the
request; what was asked is kept.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.wire_formats import (
    Refusal,
    Says,
    checked_claude,
    checked_openai,
    claude_error,
    claude_reply,
    openai_error,
    openai_reply,
)
from tests.fakes.wire_streams import claude_events, openai_chunks

HOST = "127.0.0.1"
KEY = "test-key-0123456789"
PATHS = {"/v1/messages": "claude", "/v1/chat/completions": "openai"}


@dataclass(frozen=True)
class Asked:
    """One request as it came over the wire."""

    wire: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    number: int

    @property
    def tools(self) -> Sequence[str]:
        """The names of the tools offered."""
        return [
            tool["name"] if self.wire == "claude" else tool["function"]["name"]
            for tool in self.body.get("tools", ())
        ]

    @property
    def system(self) -> str:
        """The system prompt."""
        if self.wire == "claude":
            system = self.body["system"]
            blocks = [{"text": system}] if isinstance(system, str) else system
            return "".join(str(block["text"]) for block in blocks)
        return str(self.body["messages"][0]["content"])

    @property
    def first(self) -> str:
        """The first user turn: task and evidence."""
        place = 0 if self.wire == "claude" else 1
        return str(self.body["messages"][place]["content"])

    @property
    def sent(self) -> Sequence[str]:
        """The desk's turns: texts, and results of tools."""
        turns = [turn for turn in self.body["messages"] if turn["role"] in ("user", "tool")]
        contents = [turn["content"] for turn in turns]
        return [
            str(block["content"]) if isinstance(block, dict) else block
            for content in contents
            for block in ([content] if isinstance(content, str) else content)
        ]

    @property
    def round(self) -> int:
        """How many rounds of tools have been answered already."""
        return sum(message["role"] == "assistant" for message in self.body["messages"])


@dataclass(frozen=True)
class Error:
    """An error as the API words it."""

    status: int
    kind: str = "api_error"
    message: str = "Internal server error"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Body:
    """Whatever bytes, under whatever status."""

    content: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Drop:
    """The connection ends; after so many bytes of a reply."""

    after_bytes: int = 0


@dataclass(frozen=True)
class Hang:
    """No answer for so long."""

    wait_s: float = 60.0


@dataclass(frozen=True)
class Stalls:
    """A stream of which so many pieces come, `every_s` apart; then nothing, or the end."""

    says: Says
    pieces: int
    every_s: float = 0.0
    ends: bool = False


@dataclass(frozen=True)
class Pours:
    """Bytes without an end, or until the caller has had enough: a fresh iterator for each reply."""

    body: Callable[[], Iterator[bytes]]
    headers: Mapping[str, str]
    status: int = 200


Answer = Says | Error | Body | Drop | Hang | Stalls | Pours
Script = Callable[[Asked], Answer]


@dataclass
class ModelServer:
    """The running server. `keys` are those it takes; None takes any."""

    answers: Sequence[Answer] | Script
    keys: Sequence[str] | None = (KEY,)
    listed: Sequence[str] | None = None
    """The models that it lists; None: it has no list."""
    streams: bool = True
    """Whether it heeds `stream`."""
    asked: list[Asked] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    port: int = 0
    at_once: int = 0
    _running: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Where the Anthropic SDK looks."""
        return f"http://{HOST}:{self.port}"

    @property
    def openai_url(self) -> str:
        """Where the OpenAI SDK looks."""
        return f"{self.url}/v1"

    async def on_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Requests of one connection, one after the other."""
        self._open.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._one(reader, writer):
                pass
        self._open.discard(writer)
        writer.close()

    def hang_up(self) -> None:
        """End all connections."""
        for writer in self._open:
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        _, path, _ = head[0].split(" ")
        headers = {
            name.lower(): value.strip() for name, _, value in (h.partition(":") for h in head[1:])
        }
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        wire = PATHS.get(path.partition("?")[0])
        if path == "/v1/models" and self.listed is not None:
            rows = [{"id": name, "object": "model"} for name in self.listed]
            return await _send(writer, 200, {"object": "list", "data": rows}, {})
        if wire is None:
            return await _send(writer, 404, {"error": {"message": "not found"}}, {})
        asked = Asked(wire, json.loads(content), headers, len(self.asked))
        self.asked.append(asked)
        self._running += 1
        self.at_once = max(self.at_once, self._running)
        try:
            return await self._answer(asked, reader, writer)
        finally:
            self._running -= 1

    async def _answer(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        refused = self._refused(asked)
        answer = refused or self._next(asked)
        ids = {
            f"{'request-id' if asked.wire == 'claude' else 'x-request-id'}": f"req_{asked.number}"
        }
        match answer:
            case Says():
                if self.streams and asked.body.get("stream"):
                    return await _stream(writer, asked, answer, ids)
                made = claude_reply if asked.wire == "claude" else openai_reply
                return await _send(writer, 200, made(answer, asked.body, asked.number), ids)
            case Stalls(says, pieces, every_s, ends):
                await _stream(writer, asked, says, ids, pieces, every_s, ends=ends)
                return not ends and await self._silence(reader, 60.0)
            case Error(status, kind, message, headers):
                worded = claude_error if asked.wire == "claude" else openai_error
                body = worded(kind, message, asked.number)
                return await _send(writer, status, body, {**ids, **headers})
            case Body(content, status, content_type, headers):
                return await _send(
                    writer, status, content, {**ids, **headers, "content-type": content_type}
                )
            case Drop(after_bytes):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"[:after_bytes])
                await writer.drain()
                return False
            case Pours(body, headers, status):
                return await _pour(writer, status, headers, body())
            case Hang(wait_s):
                return await self._silence(reader, wait_s)

    async def _silence(self, reader: asyncio.StreamReader, wait_s: float) -> bool:
        gone = asyncio.ensure_future(reader.read())
        await asyncio.wait({gone}, timeout=wait_s)
        gone.cancel()
        return False

    def _refused(self, asked: Asked) -> Error | None:
        token = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if self.keys is not None and token not in self.keys:
            # Real endpoints quote a part of the key; this one quotes all, to be worse than they.
            return Error(401, "authentication_error", f"Incorrect API key provided: {token}")
        try:
            check = checked_claude if asked.wire == "claude" else checked_openai
            check(asked.body, asked.headers)
        except Refusal as error:
            self.refused.append(str(error))
            return Error(400, "invalid_request_error", str(error))
        return None

    def _next(self, asked: Asked) -> Answer:
        if callable(self.answers):
            return self.answers(asked)
        if asked.number < len(self.answers):
            return self.answers[asked.number]
        return Error(400, "invalid_request_error", f"the script has no answer {asked.number}")


async def _send(
    writer: asyncio.StreamWriter, status: int, body: object, headers: Mapping[str, str]
) -> bool:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"content-type": "application/json", "content-length": str(len(content)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + content)
    await writer.drain()
    return True


async def _pour(
    writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str], body: Iterator[bytes]
) -> bool:
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {status} X\r\n{head}connection: close\r\n\r\n".encode())
    for piece in body:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    return False


async def _stream(
    writer: asyncio.StreamWriter,
    asked: Asked,
    says: Says,
    ids: Mapping[str, str],
    pieces: int | None = None,
    every_s: float = 0.0,
    *,
    ends: bool = True,
) -> bool:
    """A reply in pieces, in HTTP's chunks; only the first so many of them where that is said."""
    if asked.wire == "claude":
        events = list(claude_events(claude_reply(says, asked.body, asked.number)))
    else:
        options = asked.body.get("stream_options") or {}
        events = list(openai_chunks(openai_reply(says, asked.body, asked.number), options))
    lines = {"content-type": "text/event-stream; charset=utf-8", **ids}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"HTTP/1.1 200 OK\r\n{head}transfer-encoding: chunked\r\n\r\n".encode())
    for event in events[:pieces]:
        await asyncio.sleep(every_s)
        writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        await writer.drain()
    if ends:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


@contextlib.asynccontextmanager
async def model_server(
    answers: Sequence[Answer] | Script | ModelServer, keys: Sequence[str] | None = (KEY,)
) -> AsyncIterator[ModelServer]:
    """A server on a free port while the block runs."""
    server = answers if isinstance(answers, ModelServer) else ModelServer(answers, keys)
    listening = await asyncio.start_server(server.on_connection, HOST, 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        server.hang_up()
        await asyncio.sleep(0)
