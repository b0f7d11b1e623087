"""Workers that freeze, die, take too long, or are not wanted any more."""

import asyncio
from uuid import UUID

import pytest

from contracts.cycle import CycleRequest, CycleStatus
from libs.runtime import ids
from tests.chaos.desk import ChaosDesk
from tests.chaos.load import User
from tests.fakes.chaos_workflow import Behaviour

pytestmark = pytest.mark.asyncio(loop_scope="session")

DEADLINE_S = 120.0
STOP_S_MAX = 0.5
EPOCHS_MAX = 5
POISONS = 2
INNOCENTS = 8


def operation_of(user: User, request: CycleRequest) -> UUID:
    """The id of the one claimed operation of a single cycle."""
    return ids.operation_id(user.cycle_id(request), "alpha", "working", "work", 1)


def single(
    user: User, behaviour: Behaviour, number: int | str = 0, kind: str = "single"
) -> CycleRequest:
    return user.request(f"{behaviour}-{number}", kind, ("alpha",), behaviour=behaviour)


async def calls_of(desk: ChaosDesk, op_id: UUID) -> list[int]:
    """How often each call of an operation was begun, by index."""
    begun = [c.index for c in desk.model.lines() if c.what == "begin" and c.op_id == op_id]
    return [begun.count(index) for index in range(max(begun) + 1)]


async def effects_of(desk: ChaosDesk, cycle_id: UUID) -> int:
    async with desk.database() as db:
        found: int = await db.fetchval(
            "select count(*) from chaos.effects where key = $1", f"{cycle_id}/alpha"
        )
        return found


async def epoch_of(desk: ChaosDesk, op_id: UUID) -> int:
    async with desk.database() as db:
        epoch: int = await db.fetchval("select epoch from operations where op_id = $1", op_id)
        return epoch


async def test_a_worker_frozen_past_its_lease_is_fenced_and_nothing_happens_twice(
    desk: ChaosDesk, user: User
) -> None:
    request = single(user, Behaviour.SLOW)
    op_id = operation_of(user, request)
    async with desk.within(DEADLINE_S):
        cycle = asyncio.create_task(user.run(request))
        frozen = desk.named((await desk.model.saw("begin", op_id, 1)).pid)
        desk.freeze(frozen)
        try:
            # Another one has taken over, and made the call that was in flight again.
            await desk.model.saw("begin", op_id, 2)
        finally:
            desk.thaw(frozen)
        assert await cycle is CycleStatus.COMPLETED
        while "fenced" not in desk.log_of(frozen):  # noqa: ASYNC110 - its log tells nobody
            await asyncio.sleep(0.05)
    assert await epoch_of(desk, op_id) == 2
    assert await calls_of(desk, op_id) == [1, 2, 1, 1]
    assert await effects_of(desk, user.cycle_id(request)) == 1


async def test_a_killed_workers_operation_goes_on_where_its_journal_ends(
    desk: ChaosDesk, user: User
) -> None:
    request = single(user, Behaviour.SLOW)
    op_id = operation_of(user, request)
    async with desk.within(DEADLINE_S):
        cycle = asyncio.create_task(user.run(request))
        desk.kill(desk.named((await desk.model.saw("begin", op_id, 2)).pid))
        assert await cycle is CycleStatus.COMPLETED
    assert await calls_of(desk, op_id) == [1, 1, 2, 1]
    assert await effects_of(desk, user.cycle_id(request)) == 1


@pytest.mark.soak
async def test_operations_that_kill_their_process_fail_as_poison_and_no_others_do(
    desk: ChaosDesk, user: User
) -> None:
    poisons = [single(user, Behaviour.POISON, number) for number in range(POISONS)]
    slow = [single(user, Behaviour.SLOW, number) for number in range(INNOCENTS)]
    async with desk.within(2 * DEADLINE_S):
        beside = [asyncio.create_task(user.run(request)) for request in slow]
        for request in slow:
            await desk.model.saw("begin", operation_of(user, request), 0)
        poisoned = [asyncio.create_task(user.run(request)) for request in poisons]
        while await epoch_of(desk, operation_of(user, poisons[0])) in {None, 0}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        behind = [
            await user.run(single(user, Behaviour.QUICK, number)) for number in range(INNOCENTS)
        ]
        assert await asyncio.gather(*poisoned) == [CycleStatus.FAILED] * POISONS
        assert behind == [CycleStatus.COMPLETED] * INNOCENTS
        assert await asyncio.gather(*beside) == [CycleStatus.COMPLETED] * INNOCENTS
    async with desk.database() as db:
        rows = await db.fetch(
            "select status, epoch, failure ->> 'code' as code from operations"
            " where op_id = any($1::uuid[])",
            [operation_of(user, poison) for poison in poisons],
        )
    poison = {"status": "failed", "epoch": EPOCHS_MAX, "code": "poison"}
    assert [dict(row) for row in rows] == [poison] * POISONS


async def test_a_cancelled_cycles_running_handler_stops_within_half_a_second(
    desk: ChaosDesk, user: User
) -> None:
    request = single(user, Behaviour.ENDLESS)
    op_id = operation_of(user, request)
    async with desk.within(DEADLINE_S):
        cycle_id = await user.begin(request)
        begun = await desk.model.saw("begin", op_id, 0)
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        answer = await user.cancel(cycle_id)
        left = await desk.model.saw("left", op_id, 0)
        took_s = loop.time() - asked_at
        assert await user.run(request) is CycleStatus.CANCELLED
    assert answer.outcome == "accepted"
    assert left.pid == begun.pid
    assert took_s < STOP_S_MAX
    assert await effects_of(desk, cycle_id) == 0


async def test_an_operation_past_its_time_limit_fails_and_its_handler_stops(
    desk: ChaosDesk, user: User
) -> None:
    request = single(user, Behaviour.ENDLESS, kind="late")
    op_id = operation_of(user, request)
    async with desk.within(DEADLINE_S):
        assert await user.run(request) is CycleStatus.FAILED
        left = await desk.model.saw("left", op_id, 0)
    async with desk.database() as db:
        row = await db.fetchrow(
            "select o.failure ->> 'code' as code, o.finished_at, c.reason"
            " from operations o join cycles c using (cycle_id) where op_id = $1",
            op_id,
        )
    assert row["code"] == "timed_out"
    assert row["reason"].startswith("working/work failed: ")
    assert left.at - row["finished_at"].timestamp() < STOP_S_MAX
