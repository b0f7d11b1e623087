"""Replies in pieces: a model that thinks is waited for, an endpoint that has died is not."""

import asyncio
import time
from typing import Any

import orjson
import pytest

from libs.llm.errors import KeyRefused, ProviderUnavailable
from tests.fakes.model_bench import GOOD, Speaking
from tests.fakes.model_server import Body, Hang, Stalls
from tests.fakes.wire_formats import Call, Says

SILENCE_S = 1.0


async def test_a_reply_is_the_same_in_pieces_and_at_once(speaking: Speaking) -> None:
    calls = [Call("price", {"ticker": "A"}), Call("price", {"ticker": "B", "x": 1.5})]
    blocks = [{"type": "thinking", "thinking": "is it so?", "signature": "abc"}]
    found = []
    for stream in (True, False):
        async with speaking(
            lambda asked: (
                Says("let me see, Grüße", calls, blocks=blocks)
                if asked.tools and not asked.round
                else GOOD
            ),
            can={"stream": stream},
        ) as bench:
            await bench.with_tools()
            assert [bool(each.body.get("stream")) for each in bench.server.asked] == [stream] * 3
            found.append([(entry.reply, entry.usage) for entry in bench.entries])
    assert found[0] == found[1]


async def test_a_model_that_tells_that_it_lives_may_take_longer_than_an_endpoint_may_be_silent(
    speaking: Speaking,
) -> None:
    slow = Stalls(GOOD, pieces=100, every_s=SILENCE_S / 5, ends=True)
    started = time.monotonic()
    async with speaking([slow], timeout_s=60.0, silence_s=SILENCE_S) as bench:
        assert (await bench.plain()).word == "yes"
        assert len(bench.server.asked) == 1
    assert time.monotonic() - started > SILENCE_S


@pytest.mark.parametrize("pieces", [0, 2])
async def test_an_endpoint_that_says_nothing_is_given_up_long_before_the_calls_time(
    speaking: Speaking, pieces: int
) -> None:
    dead = Stalls(GOOD, pieces) if pieces else Hang()
    async with speaking([dead, dead, GOOD], timeout_s=60.0, silence_s=SILENCE_S) as bench:
        # Wide enough for a busy machine; two whole calls would be 120 s.
        async with asyncio.timeout(30.0):
            assert (await bench.plain()).word == "yes"
        lost = [entry for entry in bench.entries if entry.kind == "model"][:2]
        assert ["said nothing for 1 s" in str(entry.reply) for entry in lost] == [True, True]
        assert all(entry.usage.cost_usd > 0 for entry in lost)


async def test_a_local_server_may_read_a_long_prompt_in_silence(on_openai: Speaking) -> None:
    silent = Stalls(GOOD, pieces=1, every_s=SILENCE_S * 1.5)
    whole = Stalls(GOOD, pieces=100, every_s=0.05, ends=True)
    async with on_openai(
        [silent, whole], timeout_s=4.0, silence_s=SILENCE_S, patient=True
    ) as bench:
        assert (await bench.plain()).word == "yes"
        first = bench.entries[0].reply
        assert "no reply within 4 s" in str(first)


async def test_a_stream_that_ends_before_its_reply_is_a_lost_connection(
    speaking: Speaking,
) -> None:
    async with speaking([Stalls(GOOD, pieces=2, ends=True), GOOD]) as bench:
        assert (await bench.plain()).word == "yes"
        assert "connection was lost" in str(bench.entries[0].reply)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, ProviderUnavailable, "Overloaded"),
        ({"code": 502, "message": "Upstream gone"}, ProviderUnavailable, "Upstream gone"),
        ({"type": "authentication_error", "message": "bad key"}, KeyRefused, "bad key"),
    ],
)
async def test_an_error_within_a_stream_is_the_error_that_it_would_be_as_a_status(
    speaking: Speaking, error: dict[str, Any], kind: type[Exception], words: str
) -> None:
    event = b"event: error\ndata: " + orjson.dumps({"type": "error", "error": error}) + b"\n\n"
    async with speaking(lambda _: Body(event, content_type="text/event-stream")) as bench:
        with pytest.raises(kind, match=words):
            await bench.plain()


@pytest.mark.parametrize("piece", [b"data: {\n\n", b"data: [1]\n\n", b'data: {"type": 5}\n\n'])
async def test_pieces_that_cannot_be_read_are_asked_for_again(
    speaking: Speaking, piece: bytes
) -> None:
    async with speaking([Body(piece, content_type="text/event-stream"), GOOD]) as bench:
        assert (await bench.plain()).word == "yes"


async def test_a_server_that_does_not_stream_is_read_all_the_same(on_openai: Speaking) -> None:
    completion = {
        "choices": [{"message": {"content": '{"word": "yes"}'}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3},
    }
    async with on_openai([Body(orjson.dumps(completion))]) as bench:
        assert (await bench.plain()).word == "yes"
