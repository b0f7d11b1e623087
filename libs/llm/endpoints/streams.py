"""A reply that comes in pieces, put together into the body that it would have been at once.

So a reply is read in one place, streamed or not. A streamed one is asked for because then an
endpoint that has died is told from a model that thinks: the one is silent, the other is not.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import httpx2
import orjson

from libs.llm.endpoints import faults
from libs.llm.endpoints.endpoint import Endpoint
from libs.llm.errors import ProviderFault

EVENTS = "text/event-stream"
DATA = "data:"
DONE = "[DONE]"
BODY_BYTES_MAX = 16_000_000
"""Of one reply with all that is around its pieces: an endpoint that never ends is given up."""


class Assembly(Protocol):
    """Puts the pieces of one wire format together."""

    whole: bool
    """The reply has come to its end."""

    def add(self, event: dict[str, Any]) -> None:
        """Take in one event; one of another shape may raise LookupError, TypeError, ValueError."""
        ...

    def body(self) -> dict[str, Any]:
        """The reply as the format's body without a stream."""
        ...


async def received(
    who: str, response: httpx2.Response, assembly: Assembly, endpoint: Endpoint
) -> bytes:
    """The body of a reply, however it came.

    Raises ProviderUnavailable where a stream ends before its reply, ProviderFault where it is none,
    and what an error in it means.
    """
    if not response.headers.get("content-type", "").startswith(EVENTS):
        return await response.aread()
    size_bytes = 0
    async for line in response.aiter_lines():
        size_bytes += len(line)
        if size_bytes > BODY_BYTES_MAX:
            raise ProviderFault(
                f"{who}: the reply is over {BODY_BYTES_MAX} bytes", may_have_cost=True
            )
        data = line.removeprefix(DATA).strip() if line.startswith(DATA) else ""
        if data == DONE:
            assembly.whole = True
        elif data:
            _take(who, data, assembly)
    if not assembly.whole:
        raise faults.lost(who, None, endpoint)
    return orjson.dumps(assembly.body())


def _take(who: str, data: str, assembly: Assembly) -> None:
    try:
        event = orjson.loads(data)
        # Some servers end a reply that is whole, or cut at its limit, with an error of their own.
        if event.get("error") and not assembly.whole:
            raise faults.in_stream(who, event)
        assembly.add(event)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ProviderFault(
            f"{who}: a piece of the reply cannot be read ({type(error).__name__}: {error})",
            may_have_cost=True,
        ) from None


class ClaudeAssembly:
    """Anthropic's events: blocks that begin, grow and end; the usage last told is the sum."""

    TEXTS: Mapping[str, tuple[str, str]] = {
        "text_delta": ("text", "text"),
        "thinking_delta": ("thinking", "thinking"),
        "signature_delta": ("signature", "signature"),
    }
    """By the kind of a piece: where its text stands, and the block's field that it extends."""

    def __init__(self) -> None:
        self.whole = False
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}

    def add(self, event: dict[str, Any]) -> None:
        """Take in one event."""
        match event["type"]:
            case "message_start":
                self._message = event["message"]
            case "content_block_start":
                self._blocks[event["index"]] = event["content_block"]
            case "content_block_delta":
                self._extend(event["index"], event["delta"])
            case "message_delta":
                self._message |= event["delta"]
                usage = {k: v for k, v in (event.get("usage") or {}).items() if v is not None}
                self._message["usage"] = {**(self._message.get("usage") or {}), **usage}
            case "message_stop":
                self.whole = True
            case _:
                pass  # A ping, or news of a kind that came later: nothing of the reply.

    def _extend(self, index: int, delta: dict[str, Any]) -> None:
        block, kind = self._blocks[index], delta["type"]
        if kind in self.TEXTS:
            source, target = self.TEXTS[kind]
            block[target] = (block.get(target) or "") + delta[source]
        elif kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + delta["partial_json"]
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]

    def body(self) -> dict[str, Any]:
        """The message, with the inputs of its tools read."""
        for index, text in self._inputs.items():
            self._blocks[index]["input"] = _read(text)
        blocks = [block for _, block in sorted(self._blocks.items())]
        return {**self._message, "content": blocks}


def _read(text: str) -> Any:
    """The input of a tool; what is no JSON stays text, and is told to the model as unreadable."""
    try:
        return orjson.loads(text) if text.strip() else {}
    except ValueError:
        return text


class OpenAIAssembly:
    """OpenAI's chunks, and what other servers make of them."""

    def __init__(self) -> None:
        self.whole = False
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
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
        known = self._message.get(name)
        if name == "tool_calls":
            for piece in value or ():
                self._call(piece)
        elif value is None or name == "role":
            pass
        elif isinstance(value, list) or isinstance(known, list):
            self._message[name] = _joined([*_as_blocks(known), *_as_blocks(value)])
        elif isinstance(value, str) and isinstance(known, str):
            self._message[name] = known + value
        else:
            self._message[name] = value

    def _call(self, piece: dict[str, Any]) -> None:
        call = self._calls[self._place(piece)]
        for name, value in piece.items():
            if name not in {"function", "index"} and value:
                call[name] = value
        function, news = call["function"], piece.get("function") or {}
        function["name"] = function["name"] or news.get("name") or ""
        arguments = news.get("arguments")
        if isinstance(arguments, str):
            function["arguments"] += arguments
        elif arguments is not None:
            # Whole and already read, as some servers give them.
            function["arguments"] = orjson.dumps(arguments).decode()

    def _place(self, piece: dict[str, Any]) -> int:
        """The place of a piece's call: some servers give all of them one index, or none."""
        index, call_id = piece.get("index"), piece.get("id")
        place = len(self._calls) - 1 if index is None else self._at.get(index, -1)
        begun = self._calls[place] if place >= 0 else None
        named = index is None and not call_id and (piece.get("function") or {}).get("name")
        if begun is None or (call_id and call_id != begun.get("id")) or named:
            self._calls.append({"function": {"name": "", "arguments": ""}})
            place = len(self._calls) - 1
        if index is not None:
            self._at[index] = place
        return place

    def body(self) -> dict[str, Any]:
        """The completion, of one choice."""
        calls = {"tool_calls": self._calls} if self._calls else {}
        message = {"content": None, **self._message, **calls}
        choice = {"message": message, "finish_reason": self._finish_reason}
        return {"choices": [choice], "usage": self._usage}


GROWS = {"text", "thinking", "summary"}
"""Fields of a block that come in pieces, each piece as a block of its own."""


def _joined(blocks: Sequence[Any]) -> list[Any]:
    """The blocks, with neighbours that are pieces of one put together: a block a token is too long
    to keep."""
    joined: list[Any] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if isinstance(block, dict) and isinstance(last, dict) and _is_one(last, block):
            joined[-1] = {**last, **{name: _grown(name, last, block) for name in block}}
        else:
            joined.append(block)
    return joined


def _is_one(last: Mapping[str, Any], block: Mapping[str, Any]) -> bool:
    same = all(last.get(name) == block.get(name) for name in ("type", "index", "id"))
    return same and bool(GROWS & block.keys() & last.keys())


def _grown(name: str, last: Mapping[str, Any], block: Mapping[str, Any]) -> Any:
    known, new = last.get(name), block[name]
    if name in GROWS and isinstance(known, str) and isinstance(new, str):
        return known + new
    if name in GROWS and isinstance(known, list) and isinstance(new, list):
        return _joined([*known, *new])
    return known if new is None else new


def _as_blocks(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return list(value or ())
