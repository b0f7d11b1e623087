"""A reply that ends at its limit is told as that, after one try with more room."""

from dataclasses import replace
from typing import Any

import pytest

from libs.llm.errors import AnswerInvalid, TaskTooLarge, Truncated
from tests.fakes.model_bench import GOOD, Speaking
from tests.fakes.model_server import Answer, Error
from tests.fakes.wire_formats import Call, Says

CUT = Says('{"word": "ye', stop="max_tokens")
ROUND = Says(calls=[Call("price", {"ticker": "A"})])
LIMITS = ("max_tokens", "max_completion_tokens")


def in_words_of(wire: str, said: Answer) -> Answer:
    cut = isinstance(said, Says) and said.stop == "max_tokens" and wire == "openai"
    return replace(said, stop="length") if cut else said  # type: ignore[type-var]


def script(*answers: Answer) -> Any:
    return lambda asked: in_words_of(asked.wire, answers[asked.number])


def room_of(asked: Any) -> int:
    return next(int(asked.body[name]) for name in LIMITS if name in asked.body)


async def test_an_answer_cut_off_is_asked_for_once_more_with_twice_the_room_reserved(
    speaking: Speaking,
) -> None:
    async with speaking(script(CUT, GOOD), output_tokens_max=1_000) as bench:
        assert (await bench.plain()).word == "yes"
        assert [room_of(each) for each in bench.server.asked] == [1_000, 2_000]
        first, second = bench.reserves
        assert second.tokens - first.tokens >= 1_000
        assert second.cost_usd > first.cost_usd


async def test_an_answer_cut_off_twice_is_truncated_and_says_what_to_set(
    speaking: Speaking,
) -> None:
    async with speaking(lambda asked: in_words_of(asked.wire, CUT)) as bench:
        with pytest.raises(Truncated, match=r"raise output_tokens_max.*2 times"):
            await bench.plain()
        assert len(bench.server.asked) == 2


async def test_a_refusal_of_more_room_is_still_told_as_truncation(speaking: Speaking) -> None:
    no_more = Error(400, "invalid_request_error", "max_tokens is too large: 32000")
    async with speaking(script(CUT, no_more)) as bench:
        with pytest.raises(Truncated, match=r"more room was refused.*too large: 32000"):
            await bench.plain()


async def test_a_round_cut_off_is_not_read_as_wanting_no_more_tools(speaking: Speaking) -> None:
    async with speaking(script(CUT, ROUND, Says("enough"), GOOD)) as bench:
        answer, calls = await bench.with_tools()
        assert (answer.word, calls) == ("yes", 1)
        assert [bool(each.tools) for each in bench.server.asked] == [True, True, True, False]


async def test_a_call_in_a_round_cut_off_is_not_made(speaking: Speaking) -> None:
    half = replace(ROUND, stop="max_tokens")
    async with speaking(script(half, half)) as bench:
        with pytest.raises(Truncated, match="ended at its output limit"):
            await bench.with_tools()
        assert bench.tools.asked == []


async def test_rounds_cut_off_after_results_lead_to_the_answer_and_are_told_where_it_fails(
    speaking: Speaking,
) -> None:
    async with speaking(script(ROUND, CUT, CUT, GOOD)) as bench:
        assert (await bench.with_tools())[0].word == "yes"
    async with speaking(script(ROUND, CUT, CUT, *[Says("no idea")] * 3)) as bench:
        with pytest.raises(AnswerInvalid, match=r"tools had ended early.*output limit"):
            await bench.with_tools()


async def test_a_full_context_is_a_task_too_large_and_not_asked_with_more_room(
    on_claude: Speaking,
) -> None:
    full = Says('{"word": "ye', stop="model_context_window_exceeded")
    async with on_claude([full]) as bench:
        with pytest.raises(TaskTooLarge, match="context"):
            await bench.plain()


async def test_an_operation_that_starts_again_pays_for_no_try_with_more_room_twice(
    speaking: Speaking,
) -> None:
    garbled = Error(500, "server_error", "does not match the expected peg-native format")
    grammar = Error(400, "invalid_request_error", "schema: The compiled grammar is too large")
    told = [CUT, ROUND, garbled, Says("enough"), grammar, CUT, GOOD]
    async with speaking(script(*told)) as bench:
        answer = await bench.with_tools()
        whole = list(bench.entries)
    for kept in range(len(whole)):
        used = sum(entry.kind == "model" for entry in whole[:kept])
        async with speaking(script(*told[used:])) as again:
            again.entries = whole[:kept]
            assert await again.with_tools() == answer
            assert len(again.server.asked) == len(told) - used
