"""Replies in the forms that vendors' recorded traffic has: words, calls and tokens are all read.

The values are made up; the fields, their order and their odd companions are as recorded.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from libs.llm.endpoints import claude, openai
from libs.llm.endpoints.streams import ClaudeAssembly, OpenAIAssembly
from libs.llm.provider import ModelReply, StopReason

CALL = {"name": "get_news", "arguments": '{"ticker": "AAPL"}'}
CALLED = [("get_news", {"ticker": "AAPL"})]


def message(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, **fields}


def call(**fields: Any) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": CALL, **fields}


def usage(prompt: int = 20, completion: int = 5, **fields: Any) -> dict[str, Any]:
    total = prompt + completion
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    return {**counts, **fields}


WHOLE: Mapping[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "OpenAI": (
        message(content="yes", refusal=None, annotations=[]),
        usage(
            prompt_tokens_details={"cached_tokens": 0, "audio_tokens": 0},
            completion_tokens_details={"reasoning_tokens": 0, "accepted_prediction_tokens": 0},
        ),
        "stop",
    ),
    "OpenAI, a call": (
        message(tool_calls=[call()], refusal=None, annotations=[]),
        usage(),
        "tool_calls",
    ),
    "Azure": (
        message(
            content="yes",
            content_filter_results={"hate": {"filtered": False, "severity": "safe"}},
        ),
        usage(),
        "stop",
    ),
    "DeepSeek": (
        message(content="yes", reasoning_content="I look at it."),
        usage(prompt_cache_hit_tokens=0, prompt_cache_miss_tokens=20),
        "stop",
    ),
    "DeepSeek, a call": (
        message(content="", reasoning_content="I look.", tool_calls=[call(index=0)]),
        usage(),
        "tool_calls",
    ),
    "Groq": (
        message(content="yes", reasoning="I look at it."),
        usage(queue_time=0.01, prompt_time=0.002, completion_time=0.01, total_time=0.012),
        "stop",
    ),
    "Z.ai": (
        message(content="\nyes", reasoning_content="\nI look at it."),
        usage(prompt_tokens_details={"cached_tokens": 0}),
        "stop",
    ),
    "Cerebras": (message(content="yes", reasoning="I look."), usage(), "stop"),
    "Cerebras, a call": (
        message(tool_calls=[call(id="a1b2c3d4e")], reasoning="I look."),
        usage(),
        "tool_calls",
    ),
    "Ollama, a call": (
        message(content="", tool_calls=[call(id="call_x7", index=0)]),
        usage(),
        "tool_calls",
    ),
    "Ollama, stop for a call": (message(content="", tool_calls=[call()]), usage(), "stop"),
    "vLLM": (
        message(content="yes", refusal=None, reasoning=None, function_call=None, tool_calls=[]),
        usage(prompt_tokens_details=None),
        "stop",
    ),
    "Hugging Face, arguments that are read": (
        message(tool_calls=[call(id="0", function={**CALL, "arguments": {"ticker": "AAPL"}})]),
        usage(),
        "stop",
    ),
    "Mistral": (
        message(
            content=[
                {"type": "thinking", "thinking": [{"type": "text", "text": "no"}], "closed": True},
                {"type": "text", "text": "yes"},
            ],
            tool_calls=None,
            prefix=False,
        ),
        usage(num_cached_tokens=0),
        "stop",
    ),
    "Gemini, a call": (
        message(tool_calls=[call(id="f", extra_content={"google": {"thought_signature": "c2ln"}})]),
        usage(),
        "stop",
    ),
    "OpenRouter": (
        message(content="yes", refusal=None, reasoning="I look.", reasoning_details=[]),
        usage(cost=0.001, is_byok=False, cost_details={"upstream_inference_cost": None}),
        "stop",
    ),
}


def body(said: Mapping[str, Any], counted: Mapping[str, Any], stop: str) -> bytes:
    choice = {"index": 0, "message": said, "logprobs": None, "finish_reason": stop}
    return json.dumps({"id": "x", "choices": [choice], "usage": counted}).encode()


def streamed(said: Mapping[str, Any], counted: Mapping[str, Any], stop: str) -> bytes:
    """The same in pieces, behind a chunk without a choice, as Azure begins."""
    assembly = OpenAIAssembly()
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{name: value} for name, value in said.items() if name != "role"]
    events: list[dict[str, Any]] = [{"choices": [], "prompt_filter_results": []}]
    events += [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    for event in (*events, {"choices": [], "usage": counted}):
        assembly.add(event)
    assert assembly.whole
    return json.dumps(assembly.body()).encode()


def as_expected(reply: ModelReply, is_call: bool) -> None:
    calls = [(one.name, one.arguments) for one in reply.tool_calls]
    assert (reply.text, calls) == (("", CALLED) if is_call else ("yes", []))
    assert reply.stop_reason is (StopReason.TOOL_CALLS if is_call else StopReason.END)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (20, 5)


@pytest.mark.parametrize("form", WHOLE, ids=str)
@pytest.mark.parametrize("way", [body, streamed])
def test_a_reply_of_a_compatible_vendor_is_read_whole_and_in_pieces(form: str, way: Any) -> None:
    said, counted, stop = WHOLE[form]
    as_expected(openai.reply_of("it", way(said, counted, stop)), bool(said.get("tool_calls")))


TEXT = {"type": "text", "text": "yes"}
BLOCKS: Mapping[str, list[dict[str, Any]]] = {
    "text": [{**TEXT, "citations": None}],
    "thinking": [{"type": "thinking", "thinking": "I look.", "signature": "c2ln"}, TEXT],
    "thinking without words": [{"type": "thinking", "thinking": "", "signature": "c2ln"}, TEXT],
    "redacted thinking": [{"type": "redacted_thinking", "data": "ZGF0YQ=="}, TEXT],
    "citations": [{**TEXT, "citations": [{"type": "char_location", "cited_text": "a"}]}],
    "a server's tool": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        TEXT,
    ],
    "a call": [
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "get_news",
            "input": {"ticker": "AAPL"},
            "caller": {"type": "direct"},
        }
    ],
}


@pytest.mark.parametrize("form", BLOCKS, ids=str)
def test_a_message_of_claudes_is_read_whole_and_in_events_and_goes_back_as_it_came(
    form: str,
) -> None:
    blocks = BLOCKS[form]
    stop = "tool_use" if form == "a call" else "end_turn"
    counted = {"input_tokens": 20, "output_tokens": 5, "cache_read_input_tokens": None}
    whole = {"type": "message", "content": blocks, "stop_reason": stop, "usage": counted}
    assembly = ClaudeAssembly()
    assembly.add({"type": "message_start", "message": {**whole, "content": []}})
    for index, block in enumerate(blocks):
        assembly.add({"type": "content_block_start", "index": index, "content_block": block})
    assembly.add({"type": "message_delta", "delta": {"stop_reason": stop}})
    assembly.add({"type": "message_stop"})
    for reply in (
        claude.reply_of("it", json.dumps(whole).encode()),
        claude.reply_of("it", json.dumps(assembly.body()).encode()),
    ):
        as_expected(reply, form == "a call")
        assert reply.raw == blocks
