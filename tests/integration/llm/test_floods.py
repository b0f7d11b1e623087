"""Endpoints that want to fill the desk's memory, or have its prompts sent elsewhere."""

import json
import re

import pytest

from libs.llm.errors import ModelError, ProviderFault
from tests.fakes.floods import FLOODS
from tests.fakes.model_bench import GOOD, Speaking
from tests.fakes.model_server import Body, Pours, model_server
from tests.fakes.wire_formats import Call, Says


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_ends_as_a_fault_before_it_fills_the_memory(
    speaking: Speaking, name: str
) -> None:
    async with speaking([FLOODS[name]], timeout_s=60.0) as bench:
        with pytest.raises(ModelError) as caught:
            await bench.plain()
        first = bench.entries[0]
    assert "no reply within" not in str(first.reply)
    if FLOODS[name].status == 200:
        assert re.search("more than|answered with no reply|cannot be read", str(first.reply))
        assert first.usage.cost_usd > 0, "what may have been paid is on record"
    else:
        assert isinstance(caught.value, ModelError)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_names_where_it_leads(
    speaking: Speaking, status: int
) -> None:
    async with model_server([GOOD] * 9) as other:
        elsewhere = {"location": f"{other.url}/v1/messages"}
        away = Body(b"", status, headers=elsewhere)
        async with speaking([away] * 3) as bench:
            with pytest.raises(ProviderFault, match=rf"redirect to 127.0.0.1 \(HTTP {status}\)"):
                await bench.plain()
        assert other.asked == []


async def test_a_redirect_within_the_same_host_is_not_followed_either(speaking: Speaking) -> None:
    away = Body(b"", 307, headers={"location": "/v2/messages"})
    async with speaking([away] * 3) as bench:
        with pytest.raises(ProviderFault, match="set base_url to the address that answers"):
            await bench.plain()
        assert {asked.wire for asked in bench.server.asked} <= {"claude", "openai"}


LONE = "\\ud800"
"""Half of a character, as JSON writes it."""
UNUSABLE = {
    "a lone surrogate": f'{{"ticker": "{LONE}"}}',
    "a lone surrogate in a key": f'{{"{LONE}": {{"{LONE}": ["{LONE}"]}}}}',
    "NUL": '{"ticker": "A\\u0000B"}',
    "NaN": '{"ticker": NaN}',
    "infinity": '{"ticker": -Infinity}',
    "1e999": '{"ticker": 1e999}',
    "a huge number": f'{{"ticker": {"9" * 400}}}',
    "a number of 5,000 digits": f'{{"ticker": {"9" * 5_000}}}',
    "deep lists": '{"ticker": ' + "[" * 900 + "]" * 900 + "}",
    "deep objects": '{"a":' * 200 + "1" + "}" * 200,
    "deeper than Python goes": "[" * 50_000,
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("case", UNUSABLE)
async def test_arguments_that_nothing_can_carry_are_mended_or_told_and_the_call_is_on_record(
    speaking: Speaking, case: str, stream: bool
) -> None:
    calls = [Call("price", UNUSABLE[case])]
    async with speaking(
        lambda asked: Says(calls=calls) if asked.tools and not asked.round else GOOD,
        can={"stream": stream},
    ) as bench:
        answer, _ = await bench.with_tools()
    assert answer.word == "yes"
    for entry in bench.entries:
        entry.model_dump_json()
    [tool] = [entry for entry in bench.entries if entry.kind == "tool"]
    assert "\ud800" not in json.dumps(tool.model_dump(mode="json"), ensure_ascii=False)


@pytest.mark.parametrize("text", ["\ud800", "a\x00b", "\ud83d\ude00"])
async def test_text_that_nothing_can_carry_is_mended_wherever_it_stands(
    speaking: Speaking, text: str
) -> None:
    said = Says(
        f"{text} yes",
        [Call(f"price{text}", {text: text}, id=f"c{text}")],
        extra={"reasoning_content": text},
        blocks=[{"type": "thinking", "thinking": text, "signature": text}],
    )
    async with speaking(lambda asked: said if asked.tools and not asked.round else GOOD) as bench:
        answer, _ = await bench.with_tools()
    assert answer.word == "yes"
    for entry in bench.entries:
        entry.model_dump_json().encode()


async def test_an_answer_whose_text_nothing_can_carry_is_a_wrong_answer(
    speaking: Speaking,
) -> None:
    wrong = [Says(f'{{"word": "{LONE}", "number": 3}}'), Says('{"word": ' + "[" * 900)]
    async with speaking([*wrong, GOOD]) as bench:
        assert (await bench.plain()).word == "yes"
        assert len(bench.server.asked) == 3, "it was told what is wrong, and asked again"


async def test_the_halves_of_a_character_in_two_pieces_are_one_character(
    on_openai: Speaking,
) -> None:
    pieces = ['{"word": "\ud83d', '\ude00"}']
    events = [
        *({"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    poured = Pours(lambda: iter([body]), {"content-type": "text/event-stream"})
    async with on_openai([poured]) as bench:
        assert (await bench.plain()).word == "\U0001f600"


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 7, 100_000])
async def test_lines_of_a_stream_end_in_three_ways_and_a_separator_within_text_is_none(
    on_openai: Speaking, ending: str, size: int
) -> None:
    word = "a\u2028b\x85c"
    text = json.dumps({"word": word, "number": 3}, ensure_ascii=False)
    events = [
        {"choices": [{"index": 0, "delta": {"content": text}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    lines = (f"data: {json.dumps(event, ensure_ascii=False)}{ending * 2}" for event in events)
    body = "".join(lines).encode()
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    poured = Pours(lambda: iter(pieces), {"content-type": "text/event-stream"})
    async with on_openai([poured]) as bench:
        assert (await bench.plain()).word == word
