"""A reply that comes in pieces, put together into the body that it would have been at once.

So a reply is read in one place, streamed or not. A streamed one is asked for because then an
endpoint that has died is told from a model that thinks: the one is silent, the other is not.

Each bound stands before what it limits: the client counts the bytes of a stream, a line is cut off
while it comes, and what is kept of the pieces is counted as they are added.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import httpx2

from libs.llm.endpoints import faults
from libs.llm.endpoints.endpoint import ModelEndpoint
from libs.llm.errors import ProviderFault, ReplyTooLarge
from libs.llm.json_values import loaded, storable

EVENTS = "text/event-stream"
DATA = b"data:"
DONE = b"[DONE]"
BODY_BYTES_MAX = 1_000_000
"""Of one reply at once, of one line of a stream, and of what is kept of all its pieces. A reply is
kept up to a fifth of it; JSON takes up to twenty times its size in memory."""

EVENTS_MAX = 250_000
"""Pieces of one reply: one for each token, of which a reply that can be kept has some 50,000."""
EVENTS_AT_ONCE = 100
"""Pieces after which everything else in the process has its turn: all may have come at once."""
PIECE_BYTES = 64
"""Counted for each piece beside its text: Python's own for it."""


async def received(
    who: str, response: httpx2.Response, assembly: "Assembly", endpoint: ModelEndpoint
) -> bytes:
    """The body of a reply, however it came.

    Raises ProviderUnavailable where a stream ends before its reply, ProviderFault where it is none
    or too large, and what an error in it means.
    """
    if not response.headers.get("content-type", "").startswith(EVENTS):
        return await _whole(who, response)
    count = 0
    async for data in _events(who, response):
        count += 1
        if count % EVENTS_AT_ONCE == 0:
            await asyncio.sleep(0)
        if count > EVENTS_MAX:
            raise _too_large(who, "the reply", f"{EVENTS_MAX:,} pieces")
        if data == DONE:
            assembly.whole = True
        else:
            _take(who, data, assembly)
    if not assembly.whole:
        raise faults.lost(who, None, endpoint)
    return json.dumps(assembly.body()).encode()


async def _whole(who: str, response: httpx2.Response) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            raise _too_large(who, "the reply")
    return bytes(body)


async def _events(who: str, response: httpx2.Response) -> AsyncIterator[bytes]:
    """The data of a stream, line by line; only LF, CR LF and CR end a line."""
    rest = bytearray()
    async for piece in response.aiter_bytes():
        rest += piece
        if b"\n" not in piece and b"\r" not in piece:
            end = -1
        else:  # A CR at the very end may be half of a CR LF.
            end = max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, -1))
        for data in _data(rest[: end + 1]):
            yield data
        del rest[: end + 1]
        if len(rest) > BODY_BYTES_MAX:
            raise _too_large(who, "a line of the reply")
    for data in _data(rest):
        yield data


def _data(lines: bytearray) -> list[bytes]:
    rows = (line for line in bytes(lines).splitlines() if line.startswith(DATA))
    return [data for row in rows if (data := row.removeprefix(DATA).strip())]


def _take(who: str, data: bytes, assembly: "Assembly") -> None:
    try:
        event = loaded(data)
        # Some servers end a reply that is whole, or cut at its limit, with an error of their own.
        if event.get("error") and not assembly.whole:
            raise faults.in_stream(who, event)
        assembly.add(event)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ProviderFault(
            f"{who}: a piece of the reply cannot be read ({type(error).__name__}: {error})",
            may_have_cost=True,
        ) from None
    if assembly.size > BODY_BYTES_MAX:
        raise _too_large(who, "the reply")


def _too_large(who: str, what: str, limit: str = f"{BODY_BYTES_MAX:,} bytes") -> ReplyTooLarge:
    return ReplyTooLarge(f"{faults.CHECK_URL}; {who}: {what} has more than {limit}, the limit")


class ClaudeAssembly:
    """Anthropic's events: blocks that begin, grow and end; the usage last told is the sum.

    `whole`: the reply has come to its end; `size`: characters kept so far.
    """

    TEXTS: Mapping[str, tuple[str, str]] = {
        "text_delta": ("text", "text"),
        "thinking_delta": ("thinking", "thinking"),
        "signature_delta": ("signature", "signature"),
    }
    """By the kind of a piece: where its text stands, and the block's field that it extends."""

    def __init__(self) -> None:
        self.whole = False
        self.size = 0
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._texts: dict[int, dict[str, list[str]]] = {}
        self._inputs: dict[int, list[str]] = {}

    def add(self, event: dict[str, Any]) -> None:
        """Take in one event; one of another shape may raise LookupError, TypeError, ValueError."""
        match event["type"]:
            case "message_start":
                self._message = self._kept(event["message"])
            case "content_block_start":
                index = int(event["index"])
                self._blocks[index] = self._kept(event["content_block"])
                self._texts[index] = {}
            case "content_block_delta":
                self._extend(int(event["index"]), event["delta"])
            case "message_delta":
                self._message |= self._kept(event["delta"])
                usage = self._kept(event.get("usage") or {})
                counted = {name: value for name, value in usage.items() if value is not None}
                self._message["usage"] = {**(self._message.get("usage") or {}), **counted}
            case "message_stop":
                self.whole = True
            case _:
                pass  # A ping, or news of a kind that came later: nothing of the reply.

    def _kept(self, value: dict[str, Any]) -> dict[str, Any]:
        self.size += _size(value)
        return {**value}

    def _extend(self, index: int, delta: dict[str, Any]) -> None:
        block, kind = self._blocks[index], delta["type"]
        if kind in self.TEXTS:
            source, target = self.TEXTS[kind]
            pieces = self._texts[index].setdefault(target, [])
            self.size += _append_text(pieces, delta[source])
        elif kind == "input_json_delta":
            pieces = self._inputs.setdefault(index, [])
            self.size += _append_text(pieces, delta["partial_json"])
        elif kind == "citations_delta":
            self.size += _size(delta["citation"])
            # Null in the block that began.
            block["citations"] = block.get("citations") or []
            block["citations"].append(delta["citation"])

    def body(self) -> dict[str, Any]:
        """The message, with its texts joined and the inputs of its tools read."""
        for index, texts in self._texts.items():
            block = self._blocks[index]
            for target, pieces in texts.items():
                block[target] = "".join([block.get(target) or "", *pieces])
        for index, pieces in self._inputs.items():
            self._blocks[index]["input"] = _read("".join(pieces))
        blocks = [block for _, block in sorted(self._blocks.items())]
        return {**self._message, "content": blocks}


def _append_text(pieces: list[str], text: str) -> int:
    """Add a piece of text and return its size. Raises TypeError where it is none."""
    if not isinstance(text, str):
        raise TypeError(f"text is expected, not {type(text).__name__}")
    pieces.append(text)
    return len(text) + PIECE_BYTES


def _size(value: Any) -> int:
    return len(json.dumps(value)) + PIECE_BYTES


def _read(text: str) -> Any:
    """The input of a tool; what is no JSON stays text, and is told to the model as unreadable."""
    try:
        return storable(loaded(text)) if text.strip() else {}
    except ValueError:
        return text


class OpenAIAssembly:
    """OpenAI's chunks, and what other servers make of them; `whole` and `size` as for Anthropic."""

    def __init__(self) -> None:
        self.whole = False
        self.size = 0
        self._fields: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._blocks: dict[str, list[Any]] = {}
        self._calls: list[dict[str, Any]] = []
        self._arguments: list[list[str]] = []
        self._at: dict[int, int] = {}
        self._finish_reason: str | None = None
        self._usage: Any = None

    def add(self, event: dict[str, Any]) -> None:
        """Take in one chunk; of several choices the first counts."""
        self._usage = event.get("usage") or self._usage
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue
            # Moonshot counts here.
            self._usage = choice.get("usage") or self._usage
            for name, value in (choice.get("delta") or choice.get("message") or {}).items():
                self._extend(name, value)
            if choice.get("finish_reason"):
                self._finish_reason, self.whole = choice["finish_reason"], True

    def _extend(self, name: str, value: Any) -> None:
        if name == "tool_calls":
            for piece in value or ():
                self._call(piece)
        elif value is None or name == "role":
            pass
        elif isinstance(value, str) and name not in self._blocks:
            self.size += len(name) + _append_text(self._texts.setdefault(name, []), value)
        elif isinstance(value, str | list):
            self.size += len(name) + _size(value)
            begun = "".join(self._texts.pop(name, ()))
            blocks = self._blocks.setdefault(name, _as_blocks(begun))
            for block in _as_blocks(value):
                _append_block(blocks, block)
        else:
            self.size += len(name) + _size(value)
            self._fields[name] = value

    def _call(self, piece: dict[str, Any]) -> None:
        self.size += _size(piece)
        place = self._place(piece)
        call = self._calls[place]
        for name, value in piece.items():
            if name not in {"function", "index"} and value:
                call[name] = value
        function, news = call["function"], piece.get("function") or {}
        if not self._arguments[place]:
            function["name"] = _name(function["name"], news.get("name") or "")
        arguments = news.get("arguments")
        if isinstance(arguments, str):
            self._arguments[place] += [arguments] if arguments else []
        elif arguments is not None:
            # Whole and already read, as some servers give them.
            self._arguments[place] = [json.dumps(arguments)]

    def _place(self, piece: dict[str, Any]) -> int:
        """The place of a piece's call: some servers give all of them one index, or none."""
        index = piece.get("index")
        place = len(self._calls) - 1 if index is None else self._at.get(index, -1)
        begun = self._calls[place] if place >= 0 else None
        if begun is None or _begins(piece, begun, self._arguments[place]):
            self._calls.append({"function": {"name": ""}})
            self._arguments.append([])
            place = len(self._calls) - 1
        if index is not None:
            self._at[index] = place
        return place

    def body(self) -> dict[str, Any]:
        """The completion, of one choice."""
        message: dict[str, Any] = {"content": None, **self._fields, **self._blocks}
        texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        message |= {name: text for name, text in texts.items() if text or not message.get(name)}
        for call, pieces in zip(self._calls, self._arguments, strict=True):
            call["function"]["arguments"] = "".join(pieces)
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {"message": message, "finish_reason": self._finish_reason}
        return {"choices": [choice], "usage": self._usage}


Assembly = ClaudeAssembly | OpenAIAssembly
"""Puts the pieces of one wire format together."""


def _begins(piece: Mapping[str, Any], begun: Mapping[str, Any], arguments: Sequence[str]) -> bool:
    """Whether a piece begins another call than the one that its place holds.

    An id tells. Without one a name does, where the call before is whole: one that still lacks its
    arguments' end is continued, also by servers that repeat the name in every piece.
    """
    call_id, news = piece.get("id"), piece.get("function") or {}
    name = news.get("name")
    if call_id:
        return bool(call_id != begun.get("id"))
    if not name:
        return False
    is_repeated = name == begun["function"]["name"]
    if piece.get("index") is None:
        return _is_whole(arguments) or not (is_repeated and arguments)
    return _is_whole(arguments) and (not is_repeated or bool(news.get("arguments")))


def _is_whole(arguments: Sequence[str]) -> bool:
    """Whether the pieces of a call's arguments are JSON that has come to its end."""
    if len(arguments) > NAMED_PIECES_MAX:
        return False
    try:
        json.loads("".join(arguments))
    except (ValueError, RecursionError):
        return False
    return True


def _name(known: str, news: str) -> str:
    """The name with what a piece adds: a part of it, or all of it once more."""
    if not news or known.endswith(news):
        return known or news
    return news if news.startswith(known) else known + news


NAMED_PIECES_MAX = 1_000
"""Pieces of one call in which a server repeats its name; more are taken as one call's."""
GROWS = {"text", "thinking", "summary"}
"""Fields of a block that come in pieces, each piece as a block of its own."""


def _append_block(blocks: list[Any], block: Any) -> None:
    """Add a block; one that is a piece of the last is put together with it: a block a token is too
    long to keep."""
    last = blocks[-1] if blocks else None
    if not (isinstance(block, dict) and isinstance(last, dict) and _is_one(last, block)):
        blocks.append(block)
        return
    for name, new in block.items():
        known = last.get(name)
        if name in GROWS and isinstance(known, str) and isinstance(new, str):
            last[name] = known + new
        elif name in GROWS and isinstance(known, list) and isinstance(new, list):
            for inner in new:
                _append_block(known, inner)
        elif new is not None:
            last[name] = new


def _is_one(last: Mapping[str, Any], block: Mapping[str, Any]) -> bool:
    same = all(last.get(name) == block.get(name) for name in ("type", "index", "id"))
    return same and bool(GROWS & block.keys() & last.keys())


def _as_blocks(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return list(value or ())
