"""A desk on a model's SDK, hit at some points of a cycle; `make soak` hits it at every one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.chaos.crash_matrix import (
    ONE_PROCESS,
    PAID_CALLS,
    TOOL_CALLS,
    Fault,
    Matrix,
    Point,
    mortal_desk,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

STEP = "picks"
"""Three calls and three tools of the trader; it has processes of its own, the rest of the desk
lives in the test's."""
START_S = 120.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def matrix(module_dir: Path) -> AsyncIterator[Matrix]:
    folder = module_dir / "models"
    folder.mkdir(mode=0o755)
    async with mortal_desk(folder, {"trader": 2}) as desk:
        found = Matrix(desk)
        async with asyncio.timeout(START_S):
            await found.calm()
        yield found


def point(matrix: Matrix, what: str, number: int) -> Point:
    return next(
        each
        for each in matrix.points
        if (each.step, each.what, each.number) == (STEP, what, number)
    )


async def test_the_cycle_has_the_calls_and_tools_that_the_matrix_is_about(matrix: Matrix) -> None:
    assert matrix.reference is not None
    models = [name for _, name in matrix.reference.calls if ":" in name]
    assert len(models) == PAID_CALLS
    assert len(matrix.reference.calls) - len(models) == TOOL_CALLS
    assert matrix.reference.orders != ()


@pytest.mark.parametrize(
    ("what", "number", "calls_again"), [("in flight", 1, 1), ("told", 1, 0), ("recorded", 2, 0)]
)
async def test_a_killed_trader_decides_as_without_faults_and_pays_for_nothing_on_record_again(
    matrix: Matrix, what: str, number: int, calls_again: int
) -> None:
    found = await matrix.hit(Fault.SERVICE, point(matrix, what, number))
    assert found.same
    assert found.repeated == found.tools_repeated == ()
    assert found.calls_again >= calls_again


@pytest.mark.parametrize(
    ("fault", "what"), [(Fault.FROZEN, "in flight"), (Fault.FROZEN_LONG, "result")]
)
async def test_a_frozen_trader_is_refused_when_it_wakes_up_and_its_work_is_paid_for_once(
    matrix: Matrix, fault: Fault, what: str
) -> None:
    found = await matrix.hit(fault, point(matrix, what, 0))
    assert found.refused
    assert found.same
    assert found.repeated == ()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_process(module_dir: Path) -> AsyncIterator[Matrix]:
    """A desk in one process, whose claims, records and results are calls."""
    folder = module_dir / "one"
    folder.mkdir(mode=0o755)
    async with mortal_desk(folder, ONE_PROCESS) as desk:
        found = Matrix(desk)
        async with asyncio.timeout(START_S):
            await found.calm()
        yield found


@pytest.mark.parametrize(
    ("fault", "what"),
    [(Fault.SERVICE, "recorded"), (Fault.SERVICE, "result"), (Fault.POSTGRES, "record")],
)
async def test_a_desk_of_one_process_decides_as_without_faults_and_repeats_nothing_on_record(
    one_process: Matrix, fault: Fault, what: str
) -> None:
    found = await one_process.hit(fault, point(one_process, what, 0))
    assert found.is_sound
