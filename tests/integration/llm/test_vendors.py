"""What single vendors do differently, as their recorded replies show it."""

from typing import Any

import orjson
import pytest

from contracts.types import ToolDef
from libs.llm.endpoints import claude, openai
from libs.llm.endpoints.endpoint import PRESETS, Capabilities, ModelEndpoint, endpoints_of
from libs.llm.endpoints.streams import OpenAIAssembly
from libs.llm.errors import ModelRefused, RequestRefused
from libs.llm.provider import AssistantMessage, ModelRequest, StopReason, UserMessage
from libs.runtime.model_settings import EndpointSettings
from libs.runtime.settings import Settings
from tests.fakes.model_bench import GOOD, Speaking
from tests.fakes.model_server import Body, Error
from tests.fakes.wire_formats import Says

PLAIN = Capabilities()
DETAIL = {"type": "reasoning.text", "index": 0, "format": None}


def completion(message: dict[str, Any], **usage: Any) -> bytes:
    choice = {"message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return orjson.dumps({"choices": [choice], "usage": usage})


def test_mistrals_content_in_blocks_is_its_text_without_its_thoughts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": '{"word": "no"}'}]}
    said = {"content": [thought, {"type": "text", "text": '{"word": "yes"}'}]}
    reply = openai.reply_of("x", completion(said, prompt_tokens=5, completion_tokens=9))
    assert reply.text == '{"word": "yes"}'
    assert reply.usage.output_tokens == 9
    [sent] = openai.turns_of(AssistantMessage(text=reply.text, raw=reply.raw), PLAIN)
    assert sent["content"] == '{"word": "yes"}'
    echo = Capabilities(reasoning_echo=True)
    [echoed] = openai.turns_of(AssistantMessage(text=reply.text, raw=reply.raw), echo)
    assert echoed["content"] == said["content"]


def test_mistrals_blocks_are_put_together_from_a_stream() -> None:
    assembly = OpenAIAssembly()
    thinking = [[{"type": "thinking", "thinking": [{"type": "text", "text": t}]}] for t in "hm."]
    for content in ("", *thinking, '{"word": ', '"yes"}'):
        assembly.add({"choices": [{"index": 0, "delta": {"content": content}}]})
    assembly.add({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    reply = openai.reply_of("x", orjson.dumps(assembly.body()))
    assert reply.text == '{"word": "yes"}'
    assert isinstance(reply.raw, dict)
    assert reply.raw["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm."}]},
        {"type": "text", "text": '{"word": "yes"}'},
    ]


OPENROUTERS_END = [
    {"delta": {"content": "", "reasoning": "We", "reasoning_details": [DETAIL | {"text": "We"}]}},
    {
        "delta": {"reasoning": " need", "reasoning_details": [DETAIL | {"text": " need"}]},
        "finish_reason": "length",
    },
    {"delta": {"content": "", "reasoning": None, "reasoning_details": []}},
]


async def test_openrouters_reply_cut_at_its_limit_is_that_although_an_error_follows_it(
    on_openai: Speaking,
) -> None:
    """As recorded: comments while it works, thoughts, the limit, an error with HTTP 200."""
    chunks: list[Any] = [{"choices": [{"index": 0, **choice}]} for choice in OPENROUTERS_END]
    chunks.append(
        {
            "error": {"code": 400, "message": "Token limit reached"},
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": None}],
            "usage": {"prompt_tokens": 43, "completion_tokens": 10, "total_tokens": 53},
        }
    )
    lines = [b": OPENROUTER PROCESSING", *(b"data: " + orjson.dumps(each) for each in chunks)]
    cut = Body(b"\n\n".join([*lines, b"data: [DONE]", b""]), content_type="text/event-stream")
    async with on_openai([cut, GOOD]) as bench:
        assert (await bench.plain()).word == "yes"
        first = bench.entries[0]
        assert isinstance(first.reply, dict)
        assert first.reply["stop_reason"] == "output_limit"
        assert first.reply["raw"] == {
            "content": "",
            "reasoning": "We need",
            "reasoning_details": [DETAIL | {"text": "We need"}],
        }
        assert first.usage.output_tokens == 10


@pytest.mark.parametrize(
    "pieces",
    [
        # OpenAI: an index for each call, its id once.
        [(0, "a", "price", '{"t"'), (0, None, None, ": 1}"), (1, "b", "news", "{}")],
        # The same index for all, as some servers give it.
        [(0, "a", "price", '{"t": 1}'), (0, "b", "news", "{}")],
        # No index, whole calls.
        [(None, "a", "price", '{"t": 1}'), (None, "b", "news", "{}")],
        # Neither index nor id.
        [(None, None, "price", '{"t": 1}'), (None, None, "news", "{}")],
        # The id and the name with every piece.
        [(0, "a", "price", '{"t"'), (0, "a", "price", ": 1}"), (1, "b", "news", "{}")],
        # Arguments that have been read already.
        [(0, "a", "price", {"t": 1}), (1, "b", "news", {})],
    ],
)
def test_calls_are_put_together_however_a_server_numbers_their_pieces(pieces: Any) -> None:
    assembly = OpenAIAssembly()
    for index, call_id, name, arguments in pieces:
        call = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
        assembly.add({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    assembly.add({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    calls = openai.reply_of("x", orjson.dumps(assembly.body())).tool_calls
    assert [(each.name, each.arguments) for each in calls] == [("price", {"t": 1}), ("news", {})]
    assert len({each.id for each in calls}) == 2


def test_moonshots_usage_stands_in_its_choice() -> None:
    assembly = OpenAIAssembly()
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop", "usage": usage}
    assembly.add({"choices": [choice]})
    assert openai.reply_of("x", orjson.dumps(assembly.body())).usage.tokens == 7


async def test_geminis_signature_goes_back_with_the_call_it_came_with(on_openai: Speaking) -> None:
    signature = {"google": {"thought_signature": "c2lnbmVk"}}
    calls = [
        {
            "id": f"c{place}",
            "type": "function",
            "function": {"name": "price", "arguments": f'{{"ticker": "T{place}"}}'},
            **({"extra_content": signature} if place == 0 else {}),
        }
        for place in range(2)
    ]
    asks = Says(extra={"tool_calls": calls}, stop="tool_calls")
    async with on_openai([asks, Says("enough"), GOOD]) as bench:
        await bench.with_tools()
        said = next(m for m in bench.server.asked[1].body["messages"] if m["role"] == "assistant")
        assert [call.get("extra_content") for call in said["tool_calls"]] == [signature, None]


def test_geminis_thoughts_are_counted_although_only_the_total_has_them() -> None:
    usage = {"prompt_tokens": 40, "completion_tokens": 7, "total_tokens": 109}
    assert openai.reply_of("x", completion({"content": "a"}, **usage)).usage.output_tokens == 69


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        # OpenRouter, recorded: written and read are the same tokens.
        (
            {
                "prompt_tokens": 2168,
                "prompt_tokens_details": {"cached_tokens": 2161, "cache_write_tokens": 2161},
            },
            (0, 2161, 7),
        ),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 90}}, (0, 10, 0)),
        ({"prompt_tokens": 100, "num_cached_tokens": 64}, (36, 64, 0)),
    ],
)
def test_no_token_of_a_prompt_is_counted_twice(
    usage: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    used = openai.reply_of("x", completion({"content": "a"}, completion_tokens=1, **usage)).usage
    assert (used.input_tokens, used.cache_read_tokens, used.cache_write_tokens) == expected


async def test_why_claude_declined_is_told(on_claude: Speaking) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It could do harm."}
    silent = Says(stop="refusal", extra={"stop_details": details})
    async with on_claude([silent]) as bench:
        with pytest.raises(ModelRefused, match=r"declined to answer: cyber: It could do harm\."):
            await bench.plain()
    async with on_claude([Says(stop="refusal")]) as bench:
        with pytest.raises(ModelRefused, match="it gave no reason"):
            await bench.plain()


def test_a_refusal_with_a_reason_keeps_it_apart_from_the_words() -> None:
    body = {
        "type": "message",
        "content": [],
        "stop_reason": "refusal",
        "stop_details": {"type": "refusal", "category": None, "explanation": None},
    }
    reply = claude.reply_of("x", orjson.dumps(body))
    assert (reply.stop_reason, reply.why) == (StopReason.REFUSAL, "")


GRAMMARS = [
    "output_config.format.schema: Invalid schema: The compiled grammar is too large.",
    "The specified schema produces a constraint that has too many states for serving.",
    "Invalid schema for response_format 'answer': 6 levels of nesting exceeds limit of 5.",
]


@pytest.mark.parametrize("words", GRAMMARS)
async def test_a_refused_grammar_is_asked_for_in_words_and_paid_for_once(
    speaking: Speaking, words: str
) -> None:
    too_large = Error(400, "invalid_request_error", words)
    async with speaking([too_large, GOOD, GOOD]) as bench:
        assert (await bench.plain()).word == "yes"
        bench.entries.clear()
        assert (await bench.plain()).word == "yes"
        bound = [
            "response_format" in each.body or "format" in each.body.get("output_config", {})
            for each in bench.server.asked
        ]
        assert bound == [True, False, False]
        assert all("JSON Schema" in each.system for each in bench.server.asked[1:])
        assert len(bench.entries) == 2


async def test_a_field_that_a_server_does_not_know_is_left_out_from_then_on(
    on_openai: Speaking,
) -> None:
    message = '{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"]}]}'
    unknown = Error(422, "invalid_request_error", message)
    async with on_openai([unknown, GOOD, GOOD]) as bench:
        await bench.plain()
        bench.entries.clear()
        await bench.plain()
        assert ["stream_options" in each.body for each in bench.server.asked] == [
            True,
            False,
            False,
        ]


async def test_a_request_that_is_wrong_in_itself_is_not_asked_again(speaking: Speaking) -> None:
    wrong = Error(400, "invalid_request_error", "messages: the roles must alternate")
    async with speaking([wrong]) as bench:
        with pytest.raises(RequestRefused, match="alternate"):
            await bench.plain()


# --- effort -------------------------------------------------------------------------------------


def endpoint(name: str, **fields: Any) -> ModelEndpoint:
    return endpoints_of(Settings(providers={name: EndpointSettings(**fields)}))[name]


def asked(**fields: Any) -> ModelRequest:
    words = (UserMessage(text="hello"),)
    return ModelRequest(
        agent="a", model="m", system="s", system_sha256="0", messages=words, **fields
    )


def test_the_effort_of_an_endpoint_is_asked_for_in_its_own_terms() -> None:
    tools = (ToolDef(name="price", description="", parameters={"type": "object"}),)
    mine = endpoint("claude", effort="low", effort_with_tools="high")
    assert claude.parameters(asked(), mine)["output_config"] == {"effort": "low"}
    assert claude.parameters(asked(tools=tools), mine)["output_config"] == {"effort": "high"}
    bound = claude.parameters(asked(output_schema={"type": "object", "properties": {}}), mine)
    assert set(bound["output_config"]) == {"effort", "format"}
    theirs = endpoint("openai", effort="high")
    assert openai.parameters(asked(), theirs)["reasoning_effort"] == "high"
    assert openai.parameters(asked(tools=tools), theirs)["reasoning_effort"] == "none"
    old = endpoint("openai", effort_with_tools="")
    assert "reasoning_effort" not in openai.parameters(asked(tools=tools), old)
    assert "output_config" not in claude.parameters(asked(), PRESETS["claude"])


def test_the_output_limit_of_an_endpoint_is_what_is_asked_for() -> None:
    mine = endpoint("claude", output_tokens_max=40_000)
    assert claude.parameters(asked(), mine)["max_tokens"] == 40_000
    assert claude.parameters(asked(room=2), mine)["max_tokens"] == 80_000
