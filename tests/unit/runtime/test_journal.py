"""The journal: a recorded call is never made again."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from pydantic import BaseModel, JsonValue

from contracts.message import Message
from contracts.operation import (
    JOURNAL_BATCH_BYTES_MAX,
    JOURNAL_BATCH_MAX,
    CallKind,
    JournalEntry,
    Progress,
    Reserve,
)
from contracts.types import Usage
from libs.llm.json_values import JsonObject
from libs.runtime.errors import DeskError, Unavailable
from libs.runtime.journal import (
    Call,
    Journal,
    JournalMismatch,
    OperationStopped,
    RecordedJournal,
    Reply,
    batches,
)

RESERVE = Reserve(tokens=100, cost_usd=Decimal("0.5"))


class World:
    """Makes calls and keeps records, and counts both."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.kept: list[JournalEntry] = []
        self.asked: list[tuple[int, Reserve | None]] = []

    async def record(
        self, entries: Sequence[JournalEntry], reserve: Reserve | None, _: Progress | None
    ) -> None:
        self.kept += entries
        self.asked.append((len(entries), reserve))

    def call(self, name: str, reserve: Reserve | None = None, reply: JsonValue = None) -> Call:
        async def run() -> Reply:
            self.made.append(name)
            return Reply(reply or f"reply to {name}", Usage(input_tokens=3))

        return Call(CallKind.TOOL, name, {"name": name}, run, reserve=reserve)

    def journal(self, recorded: Sequence[JournalEntry] = ()) -> Journal:
        return Journal(recorded, self.record)


async def handler(world: World, journal: Journal) -> list[JsonValue]:
    """Three rounds: a paid call, two parallel tools, a paid call."""
    first = await journal.call(world.call("think", RESERVE))
    tools = await journal.calls([world.call("a"), world.call("b")])
    last = await journal.call(world.call("answer", RESERVE))
    await journal.flush()
    return [first, *tools, last]


async def test_every_call_is_made_once_and_recorded_in_the_order_of_asking() -> None:
    world = World()
    replies = await handler(world, world.journal())
    assert world.made == ["think", "a", "b", "answer"]
    assert [entry.index for entry in world.kept] == [0, 1, 2, 3]
    assert [entry.reply for entry in world.kept] == replies


async def test_a_paid_call_is_reserved_before_and_recorded_right_after() -> None:
    world = World()
    await handler(world, world.journal())
    # reserve, think | tools with the next reserve, answer
    think, answer = (
        RESERVE.model_copy(update={"name": name, "index": index})
        for name, index in (("think", 0), ("answer", 3))
    )
    assert world.asked == [(0, think), (1, None), (2, answer), (1, None)]


@pytest.mark.parametrize("survived", range(5))
async def test_after_a_crash_only_what_was_not_recorded_is_called(survived: int) -> None:
    before = World()
    replies = await handler(before, before.journal())
    after = World()
    assert await handler(after, after.journal(before.kept[:survived])) == replies
    assert after.made == ["think", "a", "b", "answer"][survived:]


async def test_another_request_than_the_recorded_one_stops_the_operation() -> None:
    world = World()
    await handler(world, world.journal())
    with pytest.raises(JournalMismatch, match="call 0"):
        await world.journal(world.kept).call(world.call("changed"))


async def test_a_replay_makes_no_call_at_all() -> None:
    world = World()
    replies = await handler(world, world.journal())
    again = World()
    assert await handler(again, RecordedJournal(world.kept)) == replies
    assert again.made == []
    with pytest.raises(JournalMismatch, match="not on record"):
        await handler(again, RecordedJournal(world.kept[:3]))
    assert again.made == []


async def test_no_paid_call_starts_once_the_lease_is_gone() -> None:
    world = World()

    def gone() -> None:
        raise OperationStopped

    journal = Journal((), world.record, gone)
    with pytest.raises(OperationStopped):
        await journal.call(world.call("think", RESERVE))
    assert world.made == []
    assert await journal.call(world.call("free")) == "reply to free"


async def test_of_a_round_only_calls_that_began_before_the_lease_was_gone_are_made() -> None:
    """The process is frozen while the first of two calls begins: the second would be paid twice."""
    world = World()

    def check() -> None:
        if world.made:
            raise OperationStopped

    journal = Journal((), world.record, check)
    with pytest.raises(OperationStopped):
        await journal.calls([world.call("first", RESERVE), world.call("second", RESERVE)])
    assert world.made == ["first"]
    assert [entry.name for entry in world.kept] == ["first"]


async def test_a_call_that_raises_does_not_lose_the_others_of_its_round() -> None:
    world = World()

    async def broken() -> Reply:
        await asyncio.sleep(0)
        raise ValueError("no data")

    bad = Call(CallKind.TOOL, "bad", {}, broken)
    journal = world.journal()
    with pytest.raises(ValueError, match="no data"):
        await journal.calls([world.call("a"), bad, world.call("b")])
    await journal.flush()
    assert [entry.name for entry in world.kept] == ["a", "b"]


def entry(index: int, size_bytes: int) -> JournalEntry:
    return JournalEntry(
        index=index,
        kind=CallKind.TOOL,
        name="t",
        request_sha256="0" * 64,
        request=None,
        reply="x" * size_bytes,
    )


@pytest.mark.parametrize(("count", "size_bytes"), [(1, 10), (200, 10), (40, 32_000), (3, 399_000)])
def test_batches_keep_order_and_fit_into_a_message(count: int, size_bytes: int) -> None:
    entries = [entry(index, size_bytes) for index in range(count)]
    found = batches(entries)
    assert [e for batch in found for e in batch] == entries
    assert all(len(batch) <= JOURNAL_BATCH_MAX for batch in found)
    sizes = [sum(len(e.model_dump_json()) for e in batch) for batch in found]
    assert all(size <= JOURNAL_BATCH_BYTES_MAX for size in sizes)


@pytest.mark.parametrize("reply_bytes", [10, JOURNAL_BATCH_BYTES_MAX // 2, JOURNAL_BATCH_BYTES_MAX])
async def test_texts_never_make_a_call_too_large_for_its_message(reply_bytes: int) -> None:
    """The longest are left out first; quotes and line breaks take twice their place in JSON."""
    world = World()
    journal = world.journal()
    whole = world.call("a", reply="x" * reply_bytes)
    texts = ("short", '"\n' * 90_000, "y" * 150_000)
    await journal.call(replace(whole, texts=texts))
    await journal.flush()
    (entry,) = world.kept
    room = JOURNAL_BATCH_BYTES_MAX - reply_bytes
    assert len(entry.model_dump_json()) <= JOURNAL_BATCH_BYTES_MAX or entry.texts == ()
    assert ("short" in entry.texts) == (room > 1_000)
    assert (texts[2] in entry.texts) == (room > 151_000)
    assert texts[1] not in entry.texts or texts[2] not in entry.texts


def test_nothing_makes_no_batch() -> None:
    assert batches([]) == []


def failing(world: World, name: str, error: DeskError) -> Call:
    """A call that fails; what is told in the place of its answer is the error's code."""

    async def run() -> Reply:
        world.made.append(name)
        raise error

    def failed(error: DeskError) -> Reply:
        return Reply(error.code)

    return Call(CallKind.READ, name, {"name": name}, run, failed=failed)


async def test_where_another_is_answered_a_call_that_fails_is_put_on_record_as_failed() -> None:
    world = World()
    journal = world.journal()
    asked = [world.call("a"), failing(world, "b", Unavailable("away"))]

    assert await journal.calls(asked) == ["reply to a", "unavailable"]
    await journal.flush()
    assert [entry.reply for entry in world.kept] == ["reply to a", "unavailable"]
    assert await world.journal(world.kept).calls(asked) == ["reply to a", "unavailable"]
    assert world.made == ["a", "b"]


async def test_where_nothing_is_answered_and_something_is_away_all_are_asked_again() -> None:
    world = World()
    journal = world.journal()
    asked = [failing(world, "a", DeskError("no")), failing(world, "b", Unavailable("away"))]
    with pytest.raises(Unavailable, match="away"):
        await journal.calls(asked)
    await journal.flush()
    assert world.kept == []

    journal.again()
    there = [failing(world, "a", DeskError("no")), world.call("b")]
    assert await journal.calls([there[0]]) == ["desk_error"]
    assert world.made == ["a", "b", "a"]


async def test_failures_that_nobody_could_wait_for_are_put_on_record() -> None:
    world = World()
    asked = [failing(world, "a", DeskError("no")), failing(world, "b", DeskError("no"))]
    assert await world.journal().calls(asked) == ["desk_error", "desk_error"]


async def test_the_last_batch_is_handed_out_to_travel_with_the_result() -> None:
    world = World()
    journal = world.journal()
    for number in range(JOURNAL_BATCH_MAX + 2):
        await journal.call(world.call(f"free {number}"))

    rest = await journal.rest()

    assert [entry.index for entry in rest] == [JOURNAL_BATCH_MAX, JOURNAL_BATCH_MAX + 1]
    assert len(world.kept) == JOURNAL_BATCH_MAX
    assert await journal.rest() == []


async def test_a_paid_call_is_on_record_and_never_left_for_the_result() -> None:
    world = World()
    journal = world.journal()
    await journal.call(world.call("free"))
    await journal.call(world.call("paid", RESERVE))

    assert await journal.rest() == []
    assert [entry.index for entry in world.kept] == [0, 1]


class Asked(BaseModel):
    """A request with a part that is a model too, and a tuple."""

    text: str
    parts: tuple[Message, ...]
    data: JsonObject


async def test_a_model_is_hashed_as_the_json_that_it_is_and_stored_so() -> None:
    """An operation that another version has begun goes on: both hash the same."""
    asked = Asked(
        text="a <b>",
        parts=(Message(),),
        data={"z": [1.5, None, True], "a": {"ä": "\u2028"}},
    )

    async def run() -> Reply:
        return Reply(None)

    as_model = Call(CallKind.MODEL, "rules:rules", asked, run)
    as_json = Call(CallKind.MODEL, "rules:rules", asked.model_dump(mode="json"), run)

    assert as_model.digest() == as_json.digest()
    assert as_model.stored == as_json.stored == asked.model_dump(mode="json")
