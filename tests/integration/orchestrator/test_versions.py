"""Orchestrators of two versions at once: each ends the cycles whose workflow it knows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from uuid import UUID

import pytest

from libs.postgres.pool import Pool
from libs.runtime import ids
from libs.runtime.settings import Settings
from services.orchestrator.commit import Committer
from services.orchestrator.group.batch import WorkflowUnknown
from services.orchestrator.group.inputs import OperationOverdue
from services.orchestrator.store import failure_of
from tests.integration.orchestrator.conftest import LANE, WORKFLOW, Orchestrators, Sent

OLD, NEW = 0, 1
DONE = [("join", "completed"), ("left", "completed"), ("right", "completed")]


@pytest.fixture
async def both(pool: Pool) -> AsyncIterator[Orchestrators]:
    """The first one knows version 1 alone, the second one both."""
    sent = Sent()
    later = replace(WORKFLOW, version=2)
    known = ((WORKFLOW,), (WORKFLOW, later))
    committers = [Committer(pool, each, Settings(), sent, sent) for each in known]
    async with AsyncExitStack() as stack:
        for committer in committers:
            running = asyncio.create_task(committer.run())
            stack.callback(running.cancel)
        yield Orchestrators(pool, committers, sent)


def op_of(cycle_id: UUID, step: str) -> UUID:
    return ids.operation_id(cycle_id, LANE, "sides", step, 1)


async def test_a_cycle_of_the_old_version_ends_at_either(both: Orchestrators) -> None:
    cycle_id = await both.begin(OLD)
    for at, step in ((NEW, "left"), (OLD, "right"), (NEW, "join")):
        assert await both.answer(at, cycle_id, step) == "ok"
    assert await both.steps(cycle_id) == DONE


async def test_an_old_orchestrator_gives_no_answer_on_a_cycle_that_it_does_not_know(
    both: Orchestrators,
) -> None:
    cycle_id = await both.begin(NEW)

    with pytest.raises(WorkflowUnknown, match="version 2 of join"):
        await both.answer(OLD, cycle_id, "left")
    assert await both.steps(cycle_id) == [("left", "pending"), ("right", "pending")]

    for step in ("left", "right", "join"):
        assert await both.answer(NEW, cycle_id, step) == "ok"
    assert await both.steps(cycle_id) == DONE


async def test_an_old_orchestrator_does_not_end_what_it_does_not_know(both: Orchestrators) -> None:
    cycle_id = await both.begin(NEW)
    late = OperationOverdue(op_of(cycle_id, "left"), failure_of(ValueError("late")))

    with pytest.raises(WorkflowUnknown):
        await both.committers[OLD].ask(late)
    assert await both.status(cycle_id) == "running"

    await both.committers[NEW].ask(late)
    assert await both.status(cycle_id) == "failed"


async def test_the_others_of_a_group_do_not_suffer_for_an_unknown_one(both: Orchestrators) -> None:
    unknown, known = await both.begin(NEW), await both.begin(OLD)

    answers = await asyncio.gather(
        both.answer(OLD, unknown, "left"),
        both.answer(OLD, known, "left"),
        return_exceptions=True,
    )
    assert isinstance(answers[0], WorkflowUnknown)
    assert answers[1] == "ok"
