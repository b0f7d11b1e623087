"""A model's call as a chat: what the loop has put on record, turn by turn."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from contracts.operation import CallKind, JournalEntry
from libs.llm.errors import ProviderUnavailable
from libs.llm.provider import ModelReply
from libs.report.calls.chat import Chat, ChatRole, Turn, chat_of
from tests.fakes.scripted_model import ScriptedProvider, asks, says
from tests.unit.llm.conftest import Bench

GOOD = says({"word": "yes", "number": 3})
BAD = says({"number": "none"})
A, B = ("price", {"ticker": "A"}), ("price", {"ticker": "B"})


async def recorded(*replies: ModelReply, faults: Mapping[int, Exception] | None = None) -> Bench:
    desk = Bench(ScriptedProvider(replies, faults=faults or {}))
    await desk.with_tools()
    return desk


def chats(desk: Bench) -> list[Chat]:
    models = [entry.index for entry in desk.entries if entry.kind is CallKind.MODEL]
    return [chat_of(desk.entries, index, texts_of(desk.entries)) for index in models]


def texts_of(entries: Sequence[JournalEntry]) -> Mapping[str, str]:
    """As the table of prompts has them."""
    return {hashlib.sha256(t.encode()).hexdigest(): t for entry in entries for t in entry.texts}


def brief(turns: Any) -> list[tuple[str, str]]:
    return [(turn.role.value, words_of(turn)) for turn in turns]


def words_of(turn: Turn) -> str:
    return turn.text or ", ".join(call.sentence for call in turn.calls) or turn.note


async def test_each_call_has_what_was_new_and_what_came_before_it() -> None:
    desk = await recorded(asks(A, B), ModelReply(text="done"), GOOD)
    first, second, answer = chats(desk)
    assert [turn.role for turn in first.asked] == [ChatRole.SYSTEM, ChatRole.TOOLS, ChatRole.USER]
    assert first.asked[0].text == "Be brief."
    assert '"name":"price"' in first.asked[1].text
    assert first.asked[2].text == desk.provider.requests[0].messages[0].text  # type: ignore[union-attr]
    assert first.before == []
    # What its tools gave stands where they were asked for: they were called after the reply.
    assert brief(first.reply) == [("assistant", "price(A), price(B)")]
    assert [call.index for call in first.reply[0].calls] == [1, 2]
    assert brief(second.before[-1:]) == [("assistant", "price(A), price(B)")]
    assert [turn.role for turn in second.asked] == [ChatRole.SYSTEM, ChatRole.TOOLS, ChatRole.TOOL]
    assert [(each.sentence, each.index) for each in second.asked[2].calls] == [
        ("price(A)", 1),
        ("price(B)", 2),
    ]
    assert brief(second.reply) == [("assistant", "done")]
    # The answer stands on the task and the results: nothing that the model said came there.
    assert answer.before == []
    assert [turn.role for turn in answer.asked] == [ChatRole.SYSTEM, ChatRole.SCHEMA, ChatRole.USER]
    assert '"ticker":"B"' in answer.asked[2].text
    assert "yes" in answer.reply[0].text


async def test_a_repair_turn_quotes_what_was_wrong_after_the_answer_that_was() -> None:
    desk = await recorded(asks(A), ModelReply(text="done"), BAD, GOOD)
    repair = chats(desk)[-1]
    assert brief(repair.before[-1:]) == [("assistant", BAD.text)]
    assert repair.asked[2].role is ChatRole.USER
    assert "That answer is not valid" in repair.asked[2].text


async def test_a_second_try_shows_the_request_of_the_first_and_how_that_failed() -> None:
    lost = ProviderUnavailable("429", retry_after_s=0.0)
    replies = (asks(A), asks(A), ModelReply(text="done"), GOOD)
    desk = await recorded(*replies, faults={0: lost})
    failed, second = chats(desk)[:2]
    assert brief(failed.reply) == [("assistant", "no reply: provider_unavailable: 429")]
    assert (failed.tries, second.tries) == (1, 2)
    assert [turn.role for turn in second.asked] == [
        ChatRole.SYSTEM,
        ChatRole.TOOLS,
        ChatRole.USER,
        ChatRole.ASSISTANT,
    ]
    assert second.asked[:3] == failed.asked
    assert brief(second.reply) == [("assistant", "price(A)")]


def test_what_is_not_on_record_is_named_and_never_invented() -> None:
    """Of another version, cut, or from the middle of a journal."""
    lost = JournalEntry(
        index=700,
        kind=CallKind.MODEL,
        name="claude:large",
        request_sha256="0" * 64,
        request={
            "messages": [
                {"role": "tool", "sha256": ["ab" * 32]},
                {"role": "user", "text": "as it was told before"},
            ]
        },
        reply=None,
    )
    chat = chat_of([lost], 700, {})
    assert brief(chat.asked) == [
        ("system", "not recorded"),
        ("tools", "not recorded"),
        ("tool", "result of a tool"),
        ("user", "not recorded"),
    ]
    assert chat.asked[2].calls[0].text == "not recorded"
    assert (chat.before, chat.reply) == ([], [])
    bare = chat_of([lost.model_copy(update={"request": None, "reply": {"text": ""}})], 700, {})
    assert brief(bare.reply) == [("assistant", "an empty reply")]


async def test_a_text_that_was_left_out_says_that_it_was_too_long_and_not_that_none_was_kept() -> (
    None
):
    desk = await recorded(asks(A), ModelReply(text="done"), GOOD)
    texts = dict(texts_of(desk.entries))
    longest = max(texts, key=lambda digest: len(texts[digest]) if "<task>" in texts[digest] else 0)
    del texts[longest]
    chat = chat_of(desk.entries, desk.entries[0].index, texts)
    assert chat.asked[0].text == "Be brief."
    assert chat.asked[2].note == "not recorded: too long to be kept with its call"
    assert chat.asked[2].text == ""
