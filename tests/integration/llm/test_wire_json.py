"""Requests and replies in the two wire formats, without a socket."""

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from contracts.memory import MemoryDraft
from contracts.research import PlanDraft, QuantDraft, ResearchDraft
from contracts.risk import ReviewDraft
from contracts.sentiment import SentimentDraft
from contracts.strategy import StrategyDraft
from contracts.trader import PicksDraft
from contracts.types import ToolDef
from libs.llm.endpoints import claude, openai
from libs.llm.endpoints.endpoint import PRESETS, Capabilities, OutputMode
from libs.llm.errors import ProviderFault
from libs.llm.provider import (
    AssistantMessage,
    ModelRequest,
    StopReason,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from libs.llm.reply_values import spoken
from libs.llm.schema import has_maps
from tests.fakes.wire_formats import Call, Says, claude_reply, openai_reply

DRAFTS = [
    PlanDraft,
    QuantDraft,
    ResearchDraft,
    SentimentDraft,
    PicksDraft,
    ReviewDraft,
    MemoryDraft,
]
TOOL = ToolDef(name="price", description="the price", parameters={"type": "object"})
BODY = {"model": "m", "messages": []}


def request(**fields):
    base = {"agent": "a", "model": "m", "system": "Be brief.", "system_sha256": "0"}
    return ModelRequest(**{**base, "messages": (UserMessage(text="hello"),), **fields})


def sent_to_claude(asked, **changes):
    return claude.parameters(asked, replace(PRESETS["claude"], **changes))


def from_claude(said):
    return claude.reply_of("x", json.dumps(claude_reply(said, BODY, 0)).encode())


def from_openai(said):
    return openai.reply_of("x", json.dumps(openai_reply(said, BODY, 0)).encode())


BOTH = pytest.mark.parametrize("reply_from", [from_claude, from_openai])


@BOTH
def test_calls_of_one_reply_keep_their_order_and_their_arguments(reply_from):
    said = Says(calls=[Call("price", {"ticker": "A"}), Call("news", {})])
    reply = reply_from(said)
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [
        ("price", {"ticker": "A"}),
        ("news", {}),
    ]
    assert reply.stop_reason is StopReason.TOOL_CALLS
    assert len({c.id for c in reply.tool_calls}) == 2


@pytest.mark.parametrize(
    ("reply_from", "stop", "reason"),
    [
        (from_claude, "end_turn", StopReason.END),
        (from_claude, "max_tokens", StopReason.OUTPUT_LIMIT),
        (from_claude, "model_context_window_exceeded", StopReason.CONTEXT_LIMIT),
        (from_claude, "refusal", StopReason.REFUSAL),
        (from_claude, "pause_turn", StopReason.END),
        (from_claude, "something_new", StopReason.END),
        (from_openai, "stop", StopReason.END),
        (from_openai, "length", StopReason.OUTPUT_LIMIT),
        (from_openai, "content_filter", StopReason.REFUSAL),
        (from_openai, "something_new", StopReason.END),
    ],
)
def test_every_reason_to_stop_has_its_meaning(reply_from, stop, reason):
    assert reply_from(Says("text", stop=stop)).stop_reason is reason


def test_a_refusal_field_is_a_refusal():
    reply = from_openai(Says(extra={"refusal": "I will not"}))
    assert (reply.stop_reason, reply.text) == (StopReason.REFUSAL, "I will not")


@BOTH
def test_an_empty_reply_is_a_reply(reply_from):
    reply = reply_from(Says())
    assert (reply.text, reply.tool_calls, reply.stop_reason) == ("", (), StopReason.END)


@pytest.mark.parametrize("reply_of", [claude.reply_of, openai.reply_of])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>maintenance</html>",
        b"null",
        b"[]",
        b'"ok"',
        b"{}",
        b'{"choices": null}',
        b'{"choices": []}',
        b'{"choices": [{"message": null}]}',
        b'{"type": "message", "content": null}',
        b'{"type": "message", "content": [{"type": "tool_use", "name": 5}]',
        b'{"type": "error", "error": {"message": "sorry"}}',
        b"\xff\xfe",
    ],
)
def test_a_body_that_is_no_reply_is_a_provider_fault_that_shows_its_start(reply_of, body):
    with pytest.raises(ProviderFault, match="answered with no reply") as caught:
        reply_of("x (m)", body)
    assert caught.value.may_have_cost
    assert len(caught.value.message) < 600


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ('{"ticker": "A"', "it was cut off"),
        ("[1]", "no JSON object"),
        ('{"n": NaN}', "not a JSON number"),
        ('{"n": 123456789012345678901234567890}', "cannot be kept"),
        ("[" * 100_000, "no JSON object"),
        ('{"a":' * 10_000, "nested deeper"),
    ],
)
def test_arguments_that_cannot_be_used_are_told_and_not_guessed(arguments, error):
    [call] = from_openai(Says(calls=[Call("price", arguments)])).tool_calls
    assert error in call.error
    assert call.arguments == {}


@pytest.mark.parametrize("arguments", ["", "  ", "null", "{}", '"{}"'])
def test_no_arguments_are_no_mistake(arguments):
    [call] = from_openai(Says(calls=[Call("price", arguments)])).tool_calls
    assert (call.error, call.arguments) == ("", {})


@pytest.mark.parametrize("ids", [(None, None), ("same", "same")])
def test_calls_without_ids_of_their_own_get_some(ids):
    said = Says(calls=[Call("price", id=each) for each in ids])
    assert [call.id for call in from_openai(said).tool_calls] == ["call_0", "call_1"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>buy?</think>{}", "{}"),
        ("<think>a</think>x<think>b</think>y", "xy"),
        ("thought without an opening</think>\n{}", "{}"),
        ('{"a": 1}<think>never closed {"a": 2}', '{"a": 1}'),
        ("<think>only thoughts", ""),
        ("plain", "plain"),
    ],
)
def test_thoughts_are_not_part_of_the_text(content, text):
    assert spoken(content) == text


def test_thoughts_go_back_verbatim_where_the_endpoint_wants_them_and_nowhere_else():
    thinking = "<think>hm</think>ok"
    reply = from_openai(Says(thinking, extra={"reasoning_content": "deep"}))
    message = AssistantMessage(text=reply.text, raw=reply.raw)
    [echoed] = openai.turns_of(message, Capabilities(reasoning_echo=True))
    assert (echoed["content"], echoed["reasoning_content"]) == (thinking, "deep")
    [bare] = openai.turns_of(message, Capabilities())
    assert bare == {"role": "assistant", "content": "ok"}


def test_claudes_thoughts_go_back_with_their_signature():
    thought = {"type": "thinking", "thinking": "hm", "signature": "abc"}
    reply = from_claude(Says("ok", blocks=[thought]))
    sent = claude.message_of(AssistantMessage(text=reply.text, raw=reply.raw))
    assert sent["content"] == [thought, {"type": "text", "text": "ok"}]


def test_an_empty_turn_of_claude_goes_back_as_words_since_the_api_takes_no_empty_one():
    sent = claude.message_of(AssistantMessage(raw=[{"type": "text", "text": ""}]))
    assert sent["content"][0]["text"]


def test_unreadable_arguments_go_back_as_an_empty_object():
    message = AssistantMessage(tool_calls=(ToolCall(id="c", name="price", error="no JSON"),))
    [sent] = openai.turns_of(message, Capabilities())
    assert sent["tool_calls"][0]["function"]["arguments"] == "{}"


def test_results_are_one_turn_at_claude_and_one_message_each_at_openai():
    results = tuple(ToolResult(call_id=f"c{n}", name="price", content="{}") for n in range(3))
    message = ToolMessage(results=results)
    assert len(claude.message_of(message)["content"]) == 3
    assert [m["tool_call_id"] for m in openai.turns_of(message, Capabilities())] == [
        "c0",
        "c1",
        "c2",
    ]


def test_tools_and_schema_never_travel_together_and_the_transcript_is_cached_with_tools_only():
    tooling = sent_to_claude(request(tools=(TOOL,)))
    output = sent_to_claude(request(output_schema=SentimentDraft.model_json_schema()))
    assert "tools" in tooling
    assert "output_config" not in tooling
    assert "tools" not in output
    assert "cache_control" not in output


def test_a_long_prefix_is_marked_by_itself_and_is_the_same_for_every_task():
    prompt = "Look at each ticker. " * 300
    first = sent_to_claude(request(system=prompt, tools=(TOOL,)))
    other = (UserMessage(text="another task"),)
    second = sent_to_claude(request(system=prompt, tools=(TOOL,), messages=other))
    assert first["system"] == [
        {"type": "text", "text": prompt, "cache_control": {"type": "ephemeral"}}
    ]
    assert (first["tools"], first["system"]) == (second["tools"], second["system"])


@pytest.mark.parametrize("fields", [{"tools": (TOOL,)}, {"system": "Look. " * 2_000}])
def test_a_prefix_too_short_to_be_kept_or_asked_for_once_is_not_marked(fields):
    assert isinstance(sent_to_claude(request(**fields))["system"], str)


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_draft_is_bound_by_a_format_or_asked_for_in_words(draft):
    schema = draft.model_json_schema()
    Draft202012Validator.check_schema(schema)
    sent = sent_to_claude(request(output_schema=schema))
    if has_maps(schema):
        assert "output_config" not in sent
        assert "JSON Schema" in sent["system"]
    else:
        Draft202012Validator.check_schema(sent["output_config"]["format"]["schema"])
        assert sent["system"] == "Be brief."


def test_an_object_with_keys_of_ones_own_choosing_is_a_map():
    assert has_maps(StrategyDraft.model_json_schema())
    assert not has_maps(PlanDraft.model_json_schema())
    assert has_maps({"type": "array", "items": {"type": "object"}})
    assert not has_maps(SentimentDraft.model_json_schema())


@pytest.mark.parametrize("name", ["openai", "minimax", "vllm", "ollama", "llamacpp", "compatible"])
def test_an_endpoint_gets_no_field_that_it_does_not_have(name):
    can = PRESETS[name].capabilities
    tooling = openai.parameters(request(tools=(TOOL,)), PRESETS[name])
    output = openai.parameters(request(output_schema=PlanDraft.model_json_schema()), PRESETS[name])
    assert ("tool_choice" in tooling) is can.tool_choice
    assert ("parallel_tool_calls" in tooling) is can.parallel_calls
    assert ("seed" in tooling) is can.seed
    assert ("response_format" in output) is (can.output is not OutputMode.NONE)
    assert tooling[can.max_tokens_field] == 16_000
    assert "JSON Schema" in output["messages"][0]["content"]
    assert tooling.get("reasoning_effort", "") == can.effort_with_tools


def test_cached_tokens_are_told_apart_from_the_rest_in_both_formats():
    cached = from_claude(
        Says(
            usage={
                "input_tokens": 10,
                "cache_read_input_tokens": 70,
                "cache_creation_input_tokens": 20,
            }
        )
    )
    assert (cached.usage.input_tokens, cached.usage.cache_read_tokens) == (10, 70)
    assert cached.usage.cache_write_tokens == 20
    within = from_openai(
        Says(
            usage={
                "prompt_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 70, "cache_write_tokens": 20},
            }
        )
    )
    assert (within.usage.input_tokens, within.usage.cache_read_tokens) == (10, 70)
    assert within.usage.cache_write_tokens == 20


NO_COUNTS = (-1, True, "12", "many", 1.5, float("nan"), float("inf"), [3], None)
"""What an endpoint may write where a count of tokens stands."""


@BOTH
@pytest.mark.parametrize(
    "usage", [None, *({"input_tokens": each, "prompt_tokens": each} for each in NO_COUNTS)]
)
def test_a_usage_that_is_missing_or_impossible_is_no_usage(reply_from, usage):
    assert reply_from(Says("x", usage=usage, no_usage=usage is None)).usage.tokens == 0
