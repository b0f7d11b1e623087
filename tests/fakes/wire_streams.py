"""The same replies in pieces, as the two APIs stream them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PIECE_CHARS = 7


def pieces_of(text: str) -> Sequence[str]:
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]


def claude_events(reply: Mapping[str, Any]) -> Iterator[bytes]:
    """A message as Anthropic streams it, with a ping where it likes one."""
    usage = reply.get("usage")
    begun = {**reply, "content": [], "stop_reason": None}
    if usage is not None:
        begun["usage"] = {**usage, "output_tokens": 1}
    yield _named({"type": "message_start", "message": begun})
    yield _named({"type": "ping"})
    for index, block in enumerate(reply["content"]):
        empty, deltas = _claude_block(block)
        yield _named({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            yield _named({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named({"type": "content_block_stop", "index": index})
    ended = {name: reply.get(name) for name in ("stop_reason", "stop_sequence", "stop_details")}
    counted = {} if usage is None else {"usage": {"output_tokens": usage["output_tokens"]}}
    yield _named({"type": "message_delta", "delta": ended, **counted})
    yield _named({"type": "message_stop"})


def _claude_block(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            pieces = pieces_of(block["text"])
            return {**block, "text": ""}, [{"type": "text_delta", "text": p} for p in pieces]
        case "thinking":
            pieces = pieces_of(block["thinking"])
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
            signed = [{"type": "signature_delta", "signature": block["signature"]}]
            return {**block, "thinking": "", "signature": ""}, [*deltas, *signed]
        case "tool_use":
            given = block["input"]
            text = given if isinstance(given, str) else json.dumps(given)
            deltas = [{"type": "input_json_delta", "partial_json": p} for p in pieces_of(text)]
            return {**block, "input": {}}, deltas
        case _:
            return dict(block), []


def openai_chunks(reply: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[bytes]:
    """A completion as OpenAI streams it; the usage where it is asked for."""
    head = {name: reply[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    choice = reply["choices"][0]
    for delta in _deltas(choice["message"]):
        yield _plain({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield _plain({**head, "choices": [last]})
    if options.get("include_usage"):
        yield _plain({**head, "choices": [], "usage": reply["usage"]})
    yield b"data: [DONE]\n\n"


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for name, value in message.items():
        if name == "tool_calls":
            for index, call in enumerate(value):
                function = call["function"]
                begun = {**call, "index": index, "function": {**function, "arguments": ""}}
                yield {"tool_calls": [begun]}
                for piece in pieces_of(function["arguments"]):
                    yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
        elif isinstance(value, str) and name != "role":
            for piece in pieces_of(value):
                yield {name: piece}
        elif value is not None and name != "role":
            yield {name: value}


def _named(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _plain(event: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()
