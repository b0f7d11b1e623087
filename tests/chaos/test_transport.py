"""NATS is transport: what it holds may vanish at any moment."""

import asyncio

import pytest

from contracts.cycle import CycleStatus
from libs.bus.publisher import FLUSH_TIMEOUT_S
from tests.chaos import invariants
from tests.chaos.desk import ChaosDesk
from tests.chaos.invariants import Tables
from tests.chaos.load import Asked, User
from tests.fakes.chaos_workflow import SHAPES

pytestmark = pytest.mark.asyncio(loop_scope="session")

FROZEN_S = FLUSH_TIMEOUT_S + 2
"""Long enough for the relay's flush to time out, whose answer then comes late."""
AWAKE_S_MAX = 8.0
CYCLES = 32
WIPES = 3
DEADLINE_S = 240.0


async def test_the_store_wiped_under_load_loses_nothing_and_repeats_nothing(
    desk: ChaosDesk, user: User
) -> None:
    async def one(number: int) -> Asked:
        shape = SHAPES[number % len(SHAPES)]
        request = user.request(number, shape=shape)
        await user.run(request)
        return Asked(user.cycle_id(request), shape)

    async with desk.within(DEADLINE_S):
        calm = [await one(number) for number in range(len(SHAPES))]
        tasks = [asyncio.create_task(one(len(SHAPES) + number)) for number in range(CYCLES)]
        for _ in range(WIPES):
            ended = sum(task.done() for task in tasks)
            desk.wipe()
            while sum(task.done() for task in tasks) < min(ended + CYCLES // WIPES, CYCLES):
                await asyncio.wait(
                    [task for task in tasks if not task.done()],
                    return_when=asyncio.FIRST_COMPLETED,
                )
        stormy = await asyncio.gather(*tasks)
    async with desk.database() as db:
        tables = await Tables.read(db, [each.cycle_id for each in (*calm, *stormy)])
    expected = {each.label: tables.story(each.cycle_id) for each in calm}
    assert invariants.stories_differ(tables, stormy, expected) == []
    assert invariants.calls_repeated_after_record(tables, desk.model.lines()) == []


async def test_a_nats_that_was_frozen_is_heard_again_at_once(desk: ChaosDesk, user: User) -> None:
    async with desk.within(DEADLINE_S):
        before = [asyncio.create_task(user.run(user.request(n))) for n in range(CYCLES)]
        await asyncio.wait(before, return_when=asyncio.FIRST_COMPLETED)
        desk.freeze("nats")
        try:
            await asyncio.sleep(FROZEN_S)
        finally:
            desk.thaw("nats")
        async with asyncio.timeout(AWAKE_S_MAX):
            assert await user.run(user.request("after", "join")) is CycleStatus.COMPLETED
        assert await asyncio.gather(*before) == [CycleStatus.COMPLETED] * CYCLES
