"""The loop over the real SDKs and a real socket: every fault of an endpoint has its outcome."""

import asyncio
import socket
from dataclasses import replace
from typing import Any

import orjson
import pytest
from pydantic import SecretStr

from libs.llm.endpoints.endpoint import PRESETS, PRICES
from libs.llm.endpoints.remote import RemoteProvider
from libs.llm.errors import (
    AnswerInvalid,
    KeyRefused,
    ModelError,
    ModelRefused,
    ProviderFault,
    ProviderUnavailable,
    ReplyUnreadable,
    Truncated,
)
from libs.runtime.errors import DeskError
from tests.fakes.model_bench import GOOD, TIMEOUT_S, Speaking
from tests.fakes.model_server import (
    KEY,
    Answer,
    Body,
    Drop,
    Error,
    Hang,
)
from tests.fakes.wire_formats import Call, Says

PASSING: dict[str, Answer] = {
    "429": Error(429, "rate_limit_error", "slow down", {"retry-after": "1"}),
    "500": Error(500),
    "502 with a page": Body(b"<html>bad gateway</html>", 502, "text/html"),
    "503": Error(503, "service_unavailable", "warming up"),
    "529": Error(529, "overloaded_error", "Overloaded"),
    "a dropped connection": Drop(),
    "a reply cut off": Drop(after_bytes=43),
    "a page with HTTP 200": Body(b"<html>login</html>", content_type="text/html"),
    "null choices": Body(b'{"id": "x", "choices": null, "content": null}'),
    "an empty body": Body(b""),
    "half of a reply": Body(b'{"id": "msg_1", "type": "mess'),
}
GARBLED = Error(500, "server_error", "does not match the expected peg-native format")


@pytest.mark.parametrize("fault", PASSING)
async def test_a_passing_fault_is_tried_again_and_stands_on_record(
    speaking: Speaking, fault: str
) -> None:
    async with speaking([PASSING[fault], GOOD]) as bench:
        assert (await bench.plain()).number == 3
        assert len(bench.server.asked) == 2
        calls = [entry.reply for entry in bench.entries if entry.kind == "model"]
        assert [isinstance(reply, dict) and "fault" in reply for reply in calls] == [True, False]


LASTING: list[tuple[Answer, type[ModelError], int, str]] = [
    (Error(529, "overloaded_error", "Overloaded"), ProviderUnavailable, 3, "gave up after 3 tries"),
    (Drop(), ProviderUnavailable, 3, "connection was lost"),
    (Body(b"<html>"), ProviderFault, 3, "check base_url .*; .*answered with no reply"),
    (Error(400, "invalid_request_error", "no such field"), ModelError, 1, "no such field"),
    (Error(404, "not_found_error", "model: x"), ModelError, 1, "name another model"),
    (Error(429, "insufficient_quota", "quota exceeded"), ModelError, 1, "add credit"),
    (Error(429, "rate_limit_error", "x", {"retry-after": "900"}), ProviderUnavailable, 1, "900 s"),
    (Says("I will not", stop="refusal"), ModelRefused, 1, "declined"),
    (Says('{"word": "ye', stop="max_tokens"), Truncated, 2, "raise output_tokens_max"),
]
OPENAI_STOPS = {"refusal": "content_filter", "max_tokens": "length"}


@pytest.mark.parametrize(("fault", "error", "calls", "words"), LASTING)
async def test_a_lasting_fault_ends_with_its_typed_error(
    speaking: Speaking, fault: Answer, error: type[ModelError], calls: int, words: str
) -> None:
    def always(asked: Any) -> Answer:
        if isinstance(fault, Says) and asked.wire == "openai":
            return replace(fault, stop=OPENAI_STOPS[fault.stop])
        return fault

    async with speaking(always) as bench:
        with pytest.raises(error, match=words):
            await bench.plain()
        assert len(bench.server.asked) == calls == len(bench.entries)


async def test_a_retry_after_stands_on_record_where_the_orchestrator_reads_it(
    speaking: Speaking,
) -> None:
    slow_down = Error(429, "rate_limit_error", "slow down", {"retry-after": "7"})
    async with speaking([slow_down, GOOD]) as bench:
        await bench.plain()
        fault = bench.entries[0].reply["fault"]  # type: ignore[call-overload, index]
        assert (fault["code"], fault["retry_after_s"]) == ("provider_unavailable", 7.0)


async def test_a_refusal_while_tooling_fails_unless_results_are_there_to_answer_from(
    speaking: Speaking,
) -> None:
    def refuses(asked: Any) -> Says:
        return Says("I will not", stop="refusal" if asked.wire == "claude" else "content_filter")

    async with speaking(refuses) as bench:
        with pytest.raises(ModelRefused, match="I will not"):
            await bench.with_tools()
        assert len(bench.server.asked) == 1

    def refuses_later(asked: Any) -> Says:
        if not asked.tools:
            return GOOD
        return refuses(asked) if asked.round else Says(calls=[Call("price", {"ticker": "A"})])

    async with speaking(refuses_later) as bench:
        assert (await bench.with_tools())[0].word == "yes"


async def test_a_wrong_key_is_told_without_showing_it(speaking: Speaking) -> None:
    wrong = "planted-key-and-wrong-987654"
    async with speaking([GOOD], key=wrong) as bench:
        with pytest.raises(KeyRefused, match="Incorrect API key provided") as caught:
            await bench.plain()
        stored = b"".join(orjson.dumps(e.model_dump(mode="json")) for e in bench.entries)
        assert wrong not in str(caught.value) + repr(caught.value)
        assert wrong.encode() not in stored


async def test_a_silent_endpoint_is_given_up_in_time_and_counts_as_paid(speaking: Speaking) -> None:
    async with speaking([Hang(), Hang(), Hang()], timeout_s=0.3) as bench:
        with pytest.raises(ProviderUnavailable, match=r"no reply within 0\.3 s"):
            await bench.plain()
        assert all(entry.usage.cost_usd > 0 for entry in bench.entries)


async def test_nobody_there_is_a_failure_that_costs_nothing(speaking: Speaking) -> None:
    async with speaking([]) as bench:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
            provider = RemoteProvider(
                replace(PRESETS[bench.agent.provider.name], base_url=url),
                SecretStr(KEY),
                PRICES,
            )
            bench.agent = replace(bench.agent, provider=provider)
            with pytest.raises(ProviderUnavailable, match="cannot be reached"):
                await bench.plain()
        assert all(entry.usage.cost_usd == 0 for entry in bench.entries)
        await provider.close()


async def test_a_cancelled_call_hangs_up(speaking: Speaking) -> None:
    async with speaking([Hang()]) as bench:
        asked = asyncio.ensure_future(bench.plain())
        async with asyncio.timeout(TIMEOUT_S * 4):
            while not bench.server.asked:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked


async def test_tools_of_a_round_then_an_answer_without_tools(speaking: Speaking) -> None:
    two = Says("let me see", [Call("price", {"ticker": "A"}), Call("price", {"ticker": "B"})])
    async with speaking([two, Says("enough"), GOOD]) as bench:
        answer, calls = await bench.with_tools()
        assert (answer.word, calls) == ("yes", 2)
        assert [bool(each.tools) for each in bench.server.asked] == [True, True, False]
        last = bench.server.asked[-1]
        assert '"id":"E1"' in last.first
        assert "let me see" not in orjson.dumps(last.body).decode()
        assert all(e.usage.cost_usd > 0 for e in bench.entries if e.kind == "model")


async def test_the_last_round_is_followed_by_one_call_without_tools(speaking: Speaking) -> None:
    def endless(asked: Any) -> Answer:
        return Says(calls=[Call("price", {"ticker": f"T{asked.number}"})]) if asked.tools else GOOD

    async with speaking(endless) as bench:
        _, calls = await bench.with_tools()
        assert calls == 15
        assert len(bench.server.asked) == 16
        assert not bench.server.asked[-1].tools


async def test_unusable_arguments_are_told_to_the_model_in_a_transcript_that_is_taken(
    speaking: Speaking,
) -> None:
    async with speaking([Says(calls=[Call("price", "[1, 2")]), Says("ok"), GOOD]) as bench:
        await bench.with_tools()
        assert bench.tools.asked == []
        assert "bad_tool_arguments" in orjson.dumps(bench.server.asked[1].body).decode()


async def test_a_refused_tool_is_told_to_the_model(speaking: Speaking) -> None:
    async with speaking([Says(calls=[Call("place_order", {})]), Says("ok"), GOOD]) as bench:
        await bench.with_tools()
        assert "tool_not_allowed" in orjson.dumps(bench.server.asked[1].body).decode()


async def test_faults_after_results_lead_to_the_output_pass(speaking: Speaking) -> None:
    page = PASSING["a page with HTTP 200"]
    first = Says(calls=[Call("price", {"ticker": "A"})])
    async with speaking([first, page, page, page, GOOD]) as bench:
        answer, calls = await bench.with_tools()
        assert (answer.word, calls) == ("yes", 1)


async def test_a_call_that_could_not_be_read_is_told_to_the_model_in_a_transcript_that_is_taken(
    speaking: Speaking,
) -> None:
    script = [GARBLED, Says(calls=[Call("price", {"ticker": "A"})]), Says("enough"), GOOD]
    async with speaking(script) as bench:
        answer, calls = await bench.with_tools()
        assert (answer.word, calls) == ("yes", 1)
        repair = orjson.dumps(bench.server.asked[1].body["messages"]).decode()
        assert "could not be read by the model's server" in repair
        assert "peg-native" not in repair, "it may quote the model"
        assert "Call a tool again" in repair


async def test_a_model_whose_calls_cannot_be_read_is_asked_for_its_answer_after_one_repair(
    speaking: Speaking,
) -> None:
    """As a small model on llama.cpp, which never gets a call right."""
    async with speaking(lambda asked: GARBLED if asked.tools else GOOD) as bench:
        answer, calls = await bench.with_tools()
        assert (answer.word, calls) == ("yes", 0)
        assert [bool(each.tools) for each in bench.server.asked] == [True, True, False]


async def test_what_ended_the_tools_is_told_where_the_answer_then_is_not_valid(
    speaking: Speaking,
) -> None:
    async with speaking(lambda asked: GARBLED if asked.tools else Says("no idea")) as bench:
        with pytest.raises(AnswerInvalid, match=r"tools had ended early.*peg-native"):
            await bench.with_tools()


async def test_an_agent_whose_answer_is_a_call_ends_with_what_was_wrong_with_it(
    speaking: Speaking,
) -> None:
    async with speaking(lambda _: GARBLED) as bench:
        with pytest.raises(ReplyUnreadable, match="peg-native"):
            await bench.tools_alone()


async def test_an_answer_that_its_server_could_not_read_is_repaired(on_openai: Speaking) -> None:
    groq = Error(400, "json_validate_failed", "Failed to generate JSON")
    async with on_openai([groq, GOOD]) as bench:
        assert (await bench.plain()).word == "yes"
        repair = orjson.dumps(bench.server.asked[1].body).decode()
        assert "could not be read by the model's server" in repair
        assert "Failed to generate JSON" not in repair


async def test_a_wrong_answer_is_repaired_in_a_transcript_that_is_taken(speaking: Speaking) -> None:
    wrong = Says('<think>{"word": "no"}</think>{"word": 5}')
    async with speaking([wrong, Says(""), GOOD]) as bench:
        assert (await bench.plain()).word == "yes"
        repair = orjson.dumps(bench.server.asked[1].body["messages"]).decode()
        assert "word: takes a text" in repair


async def test_an_answer_that_stays_wrong_is_a_wrong_answer(speaking: Speaking) -> None:
    async with speaking([Says(f"no idea {number}") for number in range(9)]) as bench:
        with pytest.raises(AnswerInvalid) as caught:
            await bench.plain()
        assert caught.value.corrections
        assert len(bench.server.asked) == 3


async def test_the_last_of_several_objects_counts(speaking: Speaking) -> None:
    text = 'First {"word": "no"} then ```json\n{"word": "yes", "number": 3}\n``` I hope.'
    async with speaking([Says(text)]) as bench:
        assert (await bench.plain()).word == "yes"


async def test_a_reply_without_usage_is_never_free(speaking: Speaking) -> None:
    async with speaking([replace(GOOD, no_usage=True)]) as bench:
        await bench.plain()
        assert bench.entries[0].usage.cost_usd > 0


async def test_an_operation_that_starts_again_asks_only_for_what_is_missing(
    speaking: Speaking,
) -> None:
    tools = Says(calls=[Call("price", {"ticker": "A"}), Call("price", {"ticker": "B"})])
    script = [tools, PASSING["529"], Says("enough"), GOOD]
    async with speaking(script) as bench:
        answer = await bench.with_tools()
        whole = list(bench.entries)
    for kept in range(len(whole)):
        used = sum(entry.kind == "model" for entry in whole[:kept])
        async with speaking(script[used:]) as again:
            again.entries = whole[:kept]
            assert await again.with_tools() == answer
            assert len(again.server.asked) == len(script) - used


async def test_many_agents_share_one_client(speaking: Speaking) -> None:
    async with speaking(lambda _: GOOD) as bench:
        benches = [replace(bench, entries=[]) for _ in range(20)]
        answers = await asyncio.gather(*(each.plain() for each in benches))
        assert {answer.word for answer in answers} == {"yes"}
        assert len(bench.server.asked) == 20


def test_every_fault_is_a_desk_error() -> None:
    assert issubclass(ModelError, DeskError)
