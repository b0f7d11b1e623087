"""Groups from memory and under locks: two orchestrators on the same cycles, in any order."""

import asyncio
from datetime import datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID

import pytest
import structlog.testing

from libs.runtime.settings import Settings
from services.orchestrator import commit, store
from services.orchestrator.group import measured
from services.orchestrator.group.inputs import CancelRequested
from tests.integration.orchestrator.conftest import Orchestrators

CYCLES = 60
SIDES = ((0, "left"), (1, "right"))
DONE = [("join", "completed"), ("left", "completed"), ("right", "completed")]


class AheadClock(datetime):
    """A host's clock that is ahead of Postgres'."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(seconds=90)


async def run_alone(orchestrators: Orchestrators) -> None:
    cycle_id = await orchestrators.begin()
    for step in ("left", "right", "join"):
        assert await orchestrators.answer(0, cycle_id, step) == "ok"
    assert await orchestrators.steps(cycle_id) == DONE
    assert await orchestrators.status(cycle_id) == "completed"


async def both_sides(orchestrators: Orchestrators, number: int) -> UUID:
    """A new cycle whose two results arrive at two orchestrators at once."""
    cycle_id = await orchestrators.begin(number % 2)
    sides = (orchestrators.answer((number + i) % 2, cycle_id, s) for i, s in SIDES)
    await asyncio.gather(*sides)
    return cycle_id


async def test_a_cycles_seconds_are_by_one_clock_where_those_of_hosts_differ(
    orchestrators: Orchestrators, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = structlog.testing.CapturingLogger()
    monkeypatch.setattr(measured, "log", log)
    monkeypatch.setattr(commit, "datetime", AheadClock)
    cycle_id = await orchestrators.begin(0)
    monkeypatch.setattr(commit, "datetime", datetime)
    for step in ("left", "right", "join"):
        await orchestrators.answer(1, cycle_id, step)
    ended: list[Any] = []
    async with asyncio.timeout(10):
        while not ended:  # it is logged after the answer
            await asyncio.sleep(0.01)
            ended = [call.kwargs for call in log.calls if call.args == ("cycle.ended",)]
    row = await orchestrators.pool.fetchrow(
        "select extract(epoch from ended_at - accepted_at)::float8 as seconds,"
        " accepted_at <= clock_timestamp() as past from cycles where cycle_id = $1",
        cycle_id,
    )
    assert row["past"]
    assert (
        0 <= ended[0]["seconds"] <= row["seconds"] + 0.001
    )  # rounded, and taken as the write begins


async def test_a_join_of_results_at_two_orchestrators_starts_once(
    orchestrators: Orchestrators,
) -> None:
    for number in range(CYCLES):
        cycle_id = await orchestrators.begin(number % 2)
        answers = await asyncio.gather(
            orchestrators.answer(0, cycle_id, "left"), orchestrators.answer(1, cycle_id, "right")
        )
        assert answers == ["ok", "ok"]
        assert ("join", "pending") in await orchestrators.steps(cycle_id)
        assert await orchestrators.answer(number % 2, cycle_id, "join") == "ok"
        assert await orchestrators.steps(cycle_id) == DONE
        assert await orchestrators.status(cycle_id) == "completed"
    assert orchestrators.sent.steps.count("join") == CYCLES


async def test_what_another_orchestrator_has_written_counts(orchestrators: Orchestrators) -> None:
    cycle_id = await orchestrators.begin(0)
    await orchestrators.answer(1, cycle_id, "left")
    assert await orchestrators.answer(0, cycle_id, "right") == "ok"
    assert ("join", "pending") in await orchestrators.steps(cycle_id)


async def test_a_repeated_result_is_taken_once_at_either_orchestrator(
    orchestrators: Orchestrators,
) -> None:
    cycle_id = await orchestrators.begin(0)
    answers = [await orchestrators.answer(at, cycle_id, "left") for at in (0, 0, 1, 1)]
    assert answers == ["ok"] * 4
    await orchestrators.answer(0, cycle_id, "right")
    joined = [("join", "pending"), ("left", "completed"), ("right", "completed")]
    assert await orchestrators.steps(cycle_id) == joined


async def test_a_repeated_request_is_one_cycle_at_either_orchestrator(
    orchestrators: Orchestrators,
) -> None:
    cycles = {await orchestrators.begin(at, "the-same-key") for at in (0, 1, 0, 1)}
    assert len(cycles) == 1
    assert await orchestrators.steps(cycles.pop()) == [("left", "pending"), ("right", "pending")]


async def test_a_failure_stops_the_step_beside_it(orchestrators: Orchestrators) -> None:
    cycle_id = await orchestrators.begin(0)
    await orchestrators.answer(0, cycle_id, "left", wrong=True)
    assert await orchestrators.steps(cycle_id) == [("left", "failed"), ("right", "cancelled")]
    assert await orchestrators.status(cycle_id) == "failed"
    assert await orchestrators.answer(0, cycle_id, "right") == "ok"


async def test_many_cycles_at_once_at_two_orchestrators_all_end(
    orchestrators: Orchestrators,
) -> None:
    async def cycle(number: int) -> None:
        cycle_id = await both_sides(orchestrators, number)
        await orchestrators.answer(number % 2, cycle_id, "join")
        assert await orchestrators.steps(cycle_id) == DONE

    await asyncio.gather(*map(cycle, range(CYCLES)))


async def test_events_of_a_cycle_are_told_in_the_order_in_which_they_happened(
    orchestrators: Orchestrators,
) -> None:
    for _ in range(3):
        await asyncio.gather(*(both_sides(orchestrators, number) for number in range(CYCLES)))
    rows = await orchestrators.pool.fetch("select cycle_id, id from state_events order by xid, id")
    told: dict[object, list[int]] = {}
    for row in rows:
        told.setdefault(row["cycle_id"], []).append(row["id"])
    assert all(ids == sorted(ids) for ids in told.values())


async def test_a_group_that_waits_for_a_cycle_has_no_transaction_id_yet(
    orchestrators: Orchestrators,
) -> None:
    first, second = sorted([await orchestrators.begin(), await orchestrators.begin()])
    both = [CancelRequested(first, ""), CancelRequested(second, "")]
    pool = orchestrators.pool
    async with (
        asyncio.timeout(10),
        pool.acquire() as holder,
        pool.acquire() as waiter,
        waiter.transaction(),
    ):
        async with holder.transaction():
            await store.load(holder, both[1:], Settings())
            waiting = asyncio.create_task(store.load(waiter, both, Settings()))
            pid, held = waiter.get_server_pid(), None
            while held is None:
                held = await pool.fetchrow(
                    "select backend_xid from pg_stat_activity"
                    " where pid = $1 and wait_event_type = 'Lock'",
                    pid,
                )
            assert held["backend_xid"] is None
        await waiting
