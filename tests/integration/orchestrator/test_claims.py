"""Claimed work from memory: of two orchestrators that remember a cycle, one is right."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from uuid import UUID

import pytest

from contracts.cycle import CycleRequest, RequestAnswer
from contracts.message import Pipeline
from contracts.operation import (
    CallKind,
    Claim,
    ClaimAnswer,
    JournalEntry,
    Record,
    RecordAnswer,
    Reserve,
    Result,
    ResultAnswer,
)
from contracts.subjects.commands import command
from contracts.types import Usage
from libs.postgres.pool import Pool
from libs.runtime import ids
from libs.runtime.background import Background
from libs.runtime.settings import Settings
from services.orchestrator.commit import Committer
from services.orchestrator.group.inputs import (
    CallsRecorded,
    CancelRequested,
    Claimed,
    CycleRequested,
    Resulted,
)
from services.orchestrator.machine.workflow import State, Step, Workflow
from tests.integration.orchestrator.conftest import (
    DAY,
    LANE,
    DoLeft,
    DoRight,
    Join,
    Joined,
    LeftDone,
    RightDone,
    Sent,
)

WORKFLOW = Workflow(
    kind="join",
    version=1,
    states=(
        State(
            "sides",
            (
                Step(command("maker", "left", DoLeft, LeftDone, claimed=True)),
                Step(command("maker", "right", DoRight, RightDone, claimed=True)),
            ),
        ),
        State("joining", (Step(command("maker", "join", Join, Joined)),)),
    ),
)


class Two:
    """Two orchestrators on one database, as a service asks either of them."""

    def __init__(self, pool: Pool, committers: Sequence[Committer]) -> None:
        self.pool = pool
        self.committers = committers

    async def begin(self, at: int = 0) -> UUID:
        key = uuid.uuid4().hex
        request = CycleRequest(
            idempotency_key=key, kind="join", as_of=DAY, pipelines=(Pipeline(name=LANE),)
        )
        cycle_id = ids.cycle_id("user", key)
        asked = CycleRequested(cycle_id, "user", request, DAY, key.encode())
        answer = await self.committers[at].ask(asked)
        assert isinstance(answer, RequestAnswer)
        assert answer.outcome == "accepted"
        return cycle_id

    async def claim(self, at: int, op_id: UUID) -> ClaimAnswer:
        return await self.committers[at].ask(Claimed("maker", Claim(op_id=op_id, instance="i")))

    async def record(
        self, at: int, op_id: UUID, epoch: int, *entries: JournalEntry, reserve: int = 0
    ) -> RecordAnswer:
        held = Reserve(tokens=reserve) if reserve else None
        record = Record(op_id=op_id, epoch=epoch, entries=entries, reserve=held)
        return await self.committers[at].ask(CallsRecorded("maker", record))

    async def result(
        self, at: int, cycle_id: UUID, step: str, epoch: int, *entries: JournalEntry
    ) -> ResultAnswer:
        made = {"left": LeftDone, "right": RightDone}[step]
        op_id = operation(cycle_id, step)
        contract = made(cycle_id=cycle_id, op_id=op_id, as_of=DAY).model_dump(mode="json")
        result = Result(op_id=op_id, epoch=epoch, contract=contract, entries=entries)
        return await self.committers[at].ask(Resulted("maker", result))

    async def row(self, op_id: UUID) -> tuple[object, ...]:
        row = await self.pool.fetchrow(
            "select status, epoch, tokens,"
            " (select array_agg(index order by index) from journal j where j.op_id = o.op_id)"
            " from operations o where op_id = $1",
            op_id,
        )
        assert row is not None
        return tuple(row)


def operation(cycle_id: UUID, step: str) -> UUID:
    return ids.operation_id(cycle_id, LANE, "sides", step, 1)


def call(index: int, tokens: int = 0) -> JournalEntry:
    return JournalEntry(
        index=index,
        kind=CallKind.MODEL if tokens else CallKind.TOOL,
        name="test:model" if tokens else "look",
        request_sha256="0" * 64,
        request={},
        reply={},
        usage=Usage(input_tokens=tokens, cost_usd=Decimal(0)),
    )


@pytest.fixture
async def two(pool: Pool) -> AsyncIterator[Two]:
    sent = Sent()
    settings = Settings(orchestrator={"lease_s": 0.3})
    committers = [Committer(pool, (WORKFLOW,), settings, sent, sent) for _ in range(2)]
    async with Background(*(each.run() for each in committers)):
        yield Two(pool, committers)


async def test_a_claim_free_records_and_the_result_are_kept(two: Two) -> None:
    cycle_id = await two.begin()
    left = operation(cycle_id, "left")

    assert (await two.claim(0, left)).epoch == 1
    assert (await two.record(0, left, 1, call(0), call(1))).outcome == "ok"
    assert (await two.record(0, left, 1, call(2))).outcome == "ok"
    assert (await two.result(0, cycle_id, "left", 1)).outcome == "ok"

    assert await two.row(left) == ("completed", 1, 0, [0, 1, 2])


async def test_free_calls_travel_with_the_result_that_follows_from_them(two: Two) -> None:
    cycle_id = await two.begin()
    left = operation(cycle_id, "left")
    assert (await two.claim(0, left)).epoch == 1
    assert (await two.record(0, left, 1, call(0))).outcome == "ok"

    assert (await two.result(0, cycle_id, "left", 1, call(1), call(2))).outcome == "ok"

    assert await two.row(left) == ("completed", 1, 0, [0, 1, 2])


async def test_a_call_that_comes_again_with_the_result_is_kept_once(two: Two) -> None:
    cycle_id = await two.begin()
    left = operation(cycle_id, "left")
    assert (await two.claim(0, left)).epoch == 1
    assert (await two.record(0, left, 1, call(0))).outcome == "ok"

    assert (await two.result(0, cycle_id, "left", 1, call(0), call(1))).outcome == "ok"
    assert (await two.result(1, cycle_id, "left", 1, call(0), call(1))).outcome == "ok"

    assert await two.row(left) == ("completed", 1, 0, [0, 1])


async def test_what_calls_in_a_result_have_used_is_counted(two: Two) -> None:
    cycle_id = await two.begin()
    left = operation(cycle_id, "left")
    assert (await two.claim(0, left)).epoch == 1
    assert (await two.record(0, left, 1, reserve=500)).outcome == "ok"

    assert (await two.result(0, cycle_id, "left", 1, call(0, tokens=300))).outcome == "ok"

    assert await two.row(left) == ("completed", 1, 300, [0])
    spent = await two.pool.fetchrow(
        "select tokens_spent, tokens_reserved from cycles where cycle_id = $1", cycle_id
    )
    assert spent is not None
    assert tuple(spent) == (300, 0)


async def test_calls_of_an_old_epoch_are_not_kept(two: Two) -> None:
    cycle_id = await two.begin()
    left = operation(cycle_id, "left")
    assert (await two.claim(0, left)).epoch == 1
    await two.pool.execute(
        "update operations set due_at = now() - interval '1 s' where op_id = $1", left
    )
    assert (await two.claim(1, left)).epoch == 2

    assert (await two.result(0, cycle_id, "left", 1, call(0))).outcome == "fenced"

    assert await two.row(left) == ("running", 2, 0, None)


async def test_of_two_first_claims_at_two_orchestrators_one_is_granted(two: Two) -> None:
    cycle_id = await two.begin(0)
    left, right = operation(cycle_id, "left"), operation(cycle_id, "right")

    assert (await two.claim(1, left)).outcome == "granted"
    assert (await two.claim(0, left)).outcome == "busy"
    assert (await two.claim(1, right)).outcome == "granted"
    assert (await two.claim(0, right)).outcome == "busy"

    assert await two.row(left) == ("running", 1, 0, None)
    assert await two.row(right) == ("running", 1, 0, None)


async def test_who_lost_its_lease_is_fenced_by_every_orchestrator(
    two: Two,
) -> None:
    cycle_id = await two.begin(0)
    left = operation(cycle_id, "left")
    assert (await two.claim(0, left)).epoch == 1
    await two.pool.execute(
        "update operations set due_at = now() - interval '1 s' where op_id = $1", left
    )

    assert (await two.claim(1, left)).epoch == 2

    assert (await two.record(0, left, 1, call(0))).outcome == "fenced"
    assert (await two.result(0, cycle_id, "left", 1)).outcome == "fenced"
    assert await two.row(left) == ("running", 2, 0, None)
    assert (await two.result(1, cycle_id, "left", 2)).outcome == "ok"


async def test_a_result_of_an_old_epoch_does_not_end_what_another_has(two: Two) -> None:
    cycle_id = await two.begin(0)
    left = operation(cycle_id, "left")
    assert (await two.claim(0, left)).epoch == 1
    await two.pool.execute(
        "update operations set due_at = now() - interval '1 s' where op_id = $1", left
    )
    assert (await two.claim(1, left)).epoch == 2

    assert (await two.result(0, cycle_id, "left", 1)).outcome == "fenced"

    assert await two.row(left) == ("running", 2, 0, None)


async def test_what_a_paid_call_used_at_one_is_kept_by_a_free_record_at_the_other(two: Two) -> None:
    cycle_id = await two.begin(0)
    left = operation(cycle_id, "left")
    assert (await two.claim(0, left)).epoch == 1
    assert (await two.record(1, left, 1, reserve=500)).outcome == "ok"
    assert (await two.record(1, left, 1, call(0, tokens=300))).outcome == "ok"

    assert (await two.record(0, left, 1, call(1))).outcome == "ok"

    assert await two.row(left) == ("running", 1, 300, [0, 1])
    spent = await two.pool.fetchrow(
        "select tokens_spent, tokens_reserved from cycles where cycle_id = $1", cycle_id
    )
    assert spent is not None
    assert tuple(spent) == (300, 0)


async def test_money_that_is_held_back_is_settled_by_whoever_has_the_result(two: Two) -> None:
    cycle_id = await two.begin(0)
    left = operation(cycle_id, "left")
    assert (await two.claim(0, left)).epoch == 1
    assert (await two.record(0, left, 1, reserve=500)).outcome == "ok"

    assert (await two.result(0, cycle_id, "left", 1)).outcome == "ok"

    row = await two.pool.fetchrow(
        "select tokens_reserved from cycles where cycle_id = $1", cycle_id
    )
    assert row is not None
    assert row["tokens_reserved"] == 0


async def test_a_repeated_record_is_kept_once(two: Two) -> None:
    cycle_id = await two.begin(0)
    left = operation(cycle_id, "left")
    assert (await two.claim(0, left)).epoch == 1

    for at in (0, 0, 1, 0):
        assert (await two.record(at, left, 1, call(0), call(1))).outcome == "ok"

    assert await two.row(left) == ("running", 1, 0, [0, 1])
    events = await two.pool.fetchval(
        "select count(*) from state_events where op_id = $1 and type = 'tool_called'", left
    )
    assert events == 2


async def test_what_another_has_cancelled_is_neither_claimed_nor_recorded(two: Two) -> None:
    cycle_id = await two.begin(0)
    left, right = operation(cycle_id, "left"), operation(cycle_id, "right")
    assert (await two.claim(0, left)).epoch == 1
    cancelled = await two.committers[1].ask(CancelRequested(cycle_id, "enough"))
    assert cancelled.outcome == "accepted"

    assert (await two.record(0, left, 1, call(0))).outcome == "cancelled"
    assert (await two.claim(0, right)).outcome == "done"
    assert (await two.result(0, cycle_id, "left", 1)).outcome == "ok"

    assert await two.row(left) == ("cancelled", 1, 0, None)
    assert await two.row(right) == ("cancelled", 0, 0, None)


def sent(index: int, *texts: str) -> JournalEntry:
    return call(index).model_copy(update={"texts": texts})


async def texts_kept(two: Two, mark: str) -> list[str]:
    rows = await two.pool.fetch(
        "select text from prompt_texts where text like $1 order by text", f"{mark}%"
    )
    return [row["text"] for row in rows]


async def test_texts_are_committed_with_the_call_that_names_them_each_once(two: Two) -> None:
    mark = uuid.uuid4().hex
    cycle_id = await two.begin()
    left, right = operation(cycle_id, "left"), operation(cycle_id, "right")
    assert (await two.claim(0, left)).epoch == (await two.claim(0, right)).epoch == 1

    assert (await two.record(0, left, 1, sent(0, f"{mark} a", f"{mark} b"))).outcome == "ok"
    assert (await two.record(1, right, 1, sent(0, f"{mark} b", f"{mark} c"))).outcome == "ok"
    assert (await two.record(1, right, 9, sent(1, f"{mark} d"))).outcome == "fenced"

    assert await texts_kept(two, mark) == [f"{mark} {name}" for name in "abc"]
    entries = await two.pool.fetch("select entry from journal where op_id = any($1)", [left, right])
    assert not any(mark.encode() in row["entry"] for row in entries)
    again = JournalEntry.model_validate_json(entries[0]["entry"])
    assert again == call(0)


async def test_many_who_write_the_same_texts_at_once_do_not_lock_one_another_out(
    two: Two,
) -> None:
    mark = uuid.uuid4().hex
    texts = [f"{mark} {number:02}" for number in range(40)]
    cycles = [await two.begin() for _ in range(20)]

    async def record(number: int, cycle_id: UUID) -> str:
        left, at = operation(cycle_id, "left"), number % 2
        assert (await two.claim(at, left)).epoch == 1
        mixed = texts[number:] + texts[:number]
        outcomes = [
            (await two.record(at, left, 1, sent(place, *mixed[: 10 + place]))).outcome
            for place in range(4)
        ]
        return " ".join({*outcomes})

    outcomes = await asyncio.gather(*(record(n, cycle_id) for n, cycle_id in enumerate(cycles)))

    assert {*outcomes} == {"ok"}
    assert await texts_kept(two, mark) == texts[:32]
