"""The commit loop of one orchestrator."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
import structlog.testing

from contracts.cycle import CycleRequest
from contracts.message import Pipeline
from libs.postgres.pool import Pool
from libs.runtime import ids
from libs.runtime.background import Background
from services.orchestrator.commit import Committer
from services.orchestrator.group.inputs import CancelRequested, CycleRequested
from services.orchestrator.store import sql
from tests.flat_settings import settings_with
from tests.integration.orchestrator.conftest import DAY, LANE, WORKFLOW, Orchestrators, Sent

CYCLES = 60
PATIENCE_S = 60.0
DONE = [("join", "completed"), ("left", "completed"), ("right", "completed")]


@asynccontextmanager
async def one_with(pool: Pool, **settings: Any) -> AsyncIterator[Orchestrators]:
    """One orchestrator with these settings, at work."""
    sent = Sent()
    committer = Committer(pool, (WORKFLOW,), settings_with(**settings), sent, sent)
    async with asyncio.timeout(PATIENCE_S), Background(committer.run()):
        yield Orchestrators(pool, [committer], sent)


async def run_to_its_end(orchestrators: Orchestrators, cycle_id: UUID) -> None:
    sides = (orchestrators.answer(0, cycle_id, step) for step in ("left", "right"))
    await asyncio.gather(*sides)
    await orchestrators.answer(0, cycle_id, "join")
    assert await orchestrators.steps(cycle_id) == DONE


async def test_an_orchestrator_does_not_overtake_itself(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = structlog.testing.CapturingLogger()
    monkeypatch.setattr("services.orchestrator.commit.log", log)

    async def cycle(orchestrators: Orchestrators) -> None:
        cycle_id = await orchestrators.begin()
        # As after an outage: each result twice, the second one of an operation that has ended.
        for step in ("left", "right", "join"):
            twice = (orchestrators.answer(0, cycle_id, step) for _ in range(2))
            assert await asyncio.gather(*twice) == ["ok", "ok"]
        assert await orchestrators.steps(cycle_id) == DONE

    async with one_with(pool, cycles_running_max=10**6) as orchestrators:
        await asyncio.gather(*(cycle(orchestrators) for _ in range(CYCLES)))
        assert orchestrators.sent.steps.count("join") == CYCLES
    assert log.calls == []


async def test_of_requests_at_once_no_more_are_accepted_than_there_is_room_for(pool: Pool) -> None:
    running = await pool.fetchval("select count(*) from cycles where status = 'running'")
    async with one_with(pool, cycles_running_max=running + 3) as orchestrators:

        async def request() -> str:
            key = uuid.uuid4().hex
            wish = CycleRequest(
                idempotency_key=key, kind="join", as_of=DAY, pipelines=(Pipeline(name=LANE),)
            )
            asked = CycleRequested(ids.cycle_id("user", key), "user", wish, DAY, key.encode())
            return (await orchestrators.committers[0].ask(asked)).outcome

        outcomes = await asyncio.gather(*(request() for _ in range(40)))
    assert sorted(outcomes) == ["accepted"] * 3 + ["rejected"] * 37


async def test_a_loop_that_loses_its_connection_goes_on(pool: Pool) -> None:
    async with one_with(pool) as orchestrators, pool.acquire() as holder:
        mine, beside = [await orchestrators.begin() for _ in range(2)]
        async with holder.transaction():
            await holder.execute(sql.lock_cycles, [mine], [])
            cancel = CancelRequested(mine, "enough")
            waiting = asyncio.create_task(orchestrators.committers[0].ask(cancel))
            killed = 0
            while not killed:
                killed = await pool.fetchval(
                    "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                    " where wait_event_type = 'Lock' and usename = current_user"
                )
            assert not waiting.done()
        assert (await waiting).outcome == "accepted"
        await run_to_its_end(orchestrators, beside)
    assert await orchestrators.status(mine) == "cancelled"
