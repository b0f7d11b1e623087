"""NATS is transport: what it holds may vanish at any moment."""

import asyncio

import pytest

from tests.chaos import invariants
from tests.chaos.desk import ChaosDesk
from tests.chaos.invariants import Tables
from tests.chaos.load import Asked, User
from tests.fakes.chaos_workflow import SHAPES

pytestmark = pytest.mark.asyncio(loop_scope="session")

CYCLES = 32
WIPES = 3
DEADLINE_S = 90.0


async def test_the_store_wiped_under_load_loses_nothing_and_repeats_nothing(
    desk: ChaosDesk, user: User
) -> None:
    async def one(number: int) -> Asked:
        shape = SHAPES[number % len(SHAPES)]
        request = user.request(number, shape=shape)
        await user.run(request)
        return Asked(user.cycle_id(request), shape)

    async with asyncio.timeout(DEADLINE_S):
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
