"""The desk's clock: limits and leases stand while nothing can be committed, for all alike."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from libs.postgres.pool import DatabaseUnavailable, Pool
from libs.runtime import ids
from libs.runtime.settings import Settings
from libs.telemetry import metrics
from services.orchestrator.schedulers.desk_clock import DeskClock
from services.orchestrator.store import sql
from tests.integration.orchestrator.conftest import LANE, Orchestrators

AWAY_S = 1_000.0
EPOCHS_MAX = 5
AGO = "clock_timestamp() - $1 * interval '1 second'"
SETTINGS = Settings()


@pytest.fixture
async def clock(pool: Pool) -> AsyncIterator[DeskClock]:
    """The clock of one orchestrator; in the end nobody has ever beaten."""
    yield DeskClock(pool, SETTINGS)
    await pool.execute("update desk_clock set stands_at = 'infinity'")


async def away(orchestrators: Orchestrators, cycle_id: UUID) -> None:
    """All that the cycle has was written before an outage, which lasts on."""
    pool = orchestrators.pool
    await pool.execute(
        "update cycles set deadline_at = deadline_at - $1 * interval '1 second'"
        " where cycle_id = $2",
        AWAY_S,
        cycle_id,
    )
    await pool.execute(
        "update operations set due_at = due_at - $1 * interval '1 second',"
        " deadline_at = deadline_at - $1 * interval '1 second' where cycle_id = $2",
        AWAY_S,
        cycle_id,
    )
    await pool.execute(f"update desk_clock set stands_at = {AGO}, beat_at = {AGO}", AWAY_S)


async def late(pool: Pool, cycle_id: UUID) -> tuple[list[Any], list[Any]]:
    """Whether the cycle is found to be late, and which of its operations."""
    cycles = await pool.fetch(sql.overdue_cycles, 1_000)
    operations = await pool.fetch(sql.overdue_operations, 1_000)
    mine = await pool.fetch("select op_id from operations where cycle_id = $1", cycle_id)
    known = {row["op_id"] for row in mine}
    return (
        [row["cycle_id"] for row in cycles if row["cycle_id"] == cycle_id],
        [row["op_id"] for row in operations if row["op_id"] in known],
    )


async def left_s(pool: Pool, cycle_id: UUID) -> float:
    """How much of the cycle's time is left."""
    left: float = await pool.fetchval(
        "select extract(epoch from deadline_at - clock_timestamp())::float8 from cycles"
        " where cycle_id = $1",
        cycle_id,
    )
    return left


async def test_limits_stand_during_an_outage_and_are_as_long_after_it_as_before(
    orchestrators: Orchestrators, clock: DeskClock
) -> None:
    cycle_id = await orchestrators.begin()
    before_s = await left_s(orchestrators.pool, cycle_id)
    await away(orchestrators, cycle_id)

    assert await left_s(orchestrators.pool, cycle_id) < 0, "by the wall clock it is late"
    assert await late(orchestrators.pool, cycle_id) == ([], [])
    assert await clock.beat() >= AWAY_S
    assert await late(orchestrators.pool, cycle_id) == ([], [])
    after_s = await left_s(orchestrators.pool, cycle_id)
    assert 0 < after_s <= before_s
    stood = await orchestrators.pool.fetchval(
        "select extract(epoch from until_at - since_at)::float8 from outages order by until_at desc"
    )
    assert stood >= AWAY_S


async def test_without_an_outage_what_is_late_is_late(
    orchestrators: Orchestrators, clock: DeskClock
) -> None:
    cycle_id = await orchestrators.begin()
    await away(orchestrators, cycle_id)
    await orchestrators.pool.execute("update desk_clock set stands_at = 'infinity'")
    assert await clock.beat() == 0
    cycles, operations = await late(orchestrators.pool, cycle_id)
    assert cycles == [cycle_id]
    assert len(operations) == 2


@pytest.mark.parametrize("runs", [True, False])
async def test_a_desk_that_was_stopped_stood_still_only_for_what_ran(
    orchestrators: Orchestrators, clock: DeskClock, runs: bool
) -> None:
    pool, cycle_id = orchestrators.pool, await orchestrators.begin()
    await pool.execute("update cycles set status = 'cancelled' where cycle_id <> $1", cycle_id)
    if not runs:
        await pool.execute("update cycles set status = 'cancelled'")
    await clock.beat()
    await clock.rest()
    await pool.execute(
        f"update desk_clock set beat_at = {AGO}, stands_at = case when stands_at = 'infinity'"
        f" then stands_at else {AGO} end",
        AWAY_S,
    )
    assert (await DeskClock(pool, SETTINGS).beat() >= AWAY_S) is runs


async def test_of_many_orchestrators_one_gives_the_time_back(
    orchestrators: Orchestrators, clock: DeskClock
) -> None:
    cycle_id = await orchestrators.begin()
    await away(orchestrators, cycle_id)
    others = [DeskClock(orchestrators.pool, SETTINGS) for _ in range(5)]
    stood = await asyncio.gather(*(each.beat() for each in (clock, *others)))
    assert sorted(each > 0 for each in stood) == [False] * 5 + [True]
    waited_s = await orchestrators.pool.fetchval(
        "select waited_s from cycles where cycle_id = $1", cycle_id
    )
    assert AWAY_S <= waited_s < 2 * AWAY_S


async def test_a_lease_is_live_as_long_after_an_outage_as_it_was_before(
    orchestrators: Orchestrators, clock: DeskClock
) -> None:
    pool, cycle_id = orchestrators.pool, await orchestrators.begin()
    op_id = ids.operation_id(cycle_id, LANE, "sides", "left", 1)
    await pool.execute(
        "update operations set status = 'running', epoch = 1,"
        " due_at = clock_timestamp() + $1 * interval '1 second' where op_id = $2",
        SETTINGS.orchestrator.lease_s,
        op_id,
    )
    await away(orchestrators, cycle_id)

    async def is_live() -> bool:
        rows = await pool.fetch(sql.load_cycles, [], [op_id])
        due = await pool.fetch(sql.due_operations, 1_000, 2.0, 30.0, EPOCHS_MAX)
        assert op_id not in {each["op_id"] for each in due}
        return any(row["op.lease_live"] for row in rows if row["op.op_id"] == op_id)

    assert await is_live()
    await clock.beat()
    assert await is_live()


async def test_cycles_that_an_orchestrator_knows_by_heart_go_on_after_an_outage(
    orchestrators: Orchestrators, clock: DeskClock
) -> None:
    cycle_id = await orchestrators.begin()
    await away(orchestrators, cycle_id)
    await clock.beat()
    for step in ("left", "right", "join"):
        assert await orchestrators.answer(0, cycle_id, step) == "ok"
    assert await orchestrators.status(cycle_id) == "completed"


async def test_the_clock_stands_while_no_result_can_come(pool: Pool) -> None:
    beats = 0

    class Counting(DeskClock):
        async def beat(self) -> float:
            nonlocal beats
            beats += 1
            return await super().beat()

    there = asyncio.Event()
    asked: list[bool] = []

    def connected() -> bool:
        asked.append(there.is_set())
        return there.is_set()

    running = asyncio.create_task(
        Counting(pool, Settings(orchestrator={"lease_s": 0.12}), connected).run()
    )
    async with asyncio.timeout(10):
        while len(asked) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert beats == 0
        there.set()
        while not beats:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await pool.execute("update desk_clock set stands_at = 'infinity'")


@pytest.mark.parametrize("away", ["postgres", "nats", "desk"])
async def test_an_outage_is_counted_with_its_seconds_by_what_was_away(
    orchestrators: Orchestrators, away: str
) -> None:
    ended, missed = asyncio.Event(), asyncio.Event()

    class Reached(DeskClock):
        """Cannot reach Postgres at its first beat, where that is what is away."""

        async def beat(self) -> float:
            if away == "postgres" and not missed.is_set():
                missed.set()
                raise DatabaseUnavailable("gone")
            return await super().beat()

    def connected() -> bool:
        if away == "nats" and not missed.is_set():
            missed.set()
            return False
        return True

    def on_commit(*, hurry: bool) -> None:
        if hurry:
            ended.set()

    pool = orchestrators.pool
    before = metrics.OUTAGE_SECONDS.sum_of(away=away)
    before_all = metrics.OUTAGE_SECONDS.sum_of()
    await pool.execute(f"update desk_clock set stands_at = {AGO}, beat_at = {AGO}", AWAY_S)
    clock = Reached(pool, Settings(orchestrator={"lease_s": 0.12}), connected, on_commit)
    running = asyncio.create_task(clock.run())
    async with asyncio.timeout(10):
        await ended.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await pool.execute("update desk_clock set stands_at = 'infinity'")
    assert AWAY_S <= metrics.OUTAGE_SECONDS.sum_of(away=away) - before < 2 * AWAY_S
    assert metrics.OUTAGE_SECONDS.sum_of() - before_all < 2 * AWAY_S, "it is counted once"


# --- Postgres' clock jumps ------------------------------------------------------------------------

JUMPS = [3_600.0, -3_600.0, 86_400.0, -86_400.0]
"""By so many seconds Postgres' clock jumps, below zero back."""


async def jumped(pool: Pool, cycle_id: UUID, by_s: float) -> None:
    """All that is on record was written before a jump: what lies ahead of now by Postgres' clock
    lies elsewhere by as much."""
    before = (-by_s, cycle_id)
    move = "+ $1 * interval '1 second'"
    await pool.execute(
        f"update cycles set deadline_at = deadline_at {move} where cycle_id = $2", *before
    )
    await pool.execute(
        f"update operations set due_at = due_at {move}, deadline_at = deadline_at {move},"
        f" created_at = created_at {move} where cycle_id = $2",
        *before,
    )
    await pool.execute(
        f"update desk_clock set beat_at = beat_at {move}, stands_at = stands_at {move}", -by_s
    )
    await pool.execute(
        "insert into paces values ('jumped', clock_timestamp(), clock_timestamp(),"
        f" clock_timestamp() {move}) on conflict (provider) do update"
        " set closed_until = excluded.closed_until",
        60.0 - by_s,
    )


@pytest.mark.parametrize("by_s", JUMPS)
async def test_limits_and_leases_are_as_long_after_a_jump_of_the_clock_as_before(
    orchestrators: Orchestrators, clock: DeskClock, by_s: float
) -> None:
    pool, cycle_id = orchestrators.pool, await orchestrators.begin()
    assert await clock.beat() == 0
    before_s = await left_s(pool, cycle_id)
    await jumped(pool, cycle_id, by_s)

    assert await late(pool, cycle_id) == ([], [])
    assert await clock.beat() == pytest.approx(by_s, abs=60)
    after_s = await left_s(pool, cycle_id)
    assert after_s == pytest.approx(before_s, abs=60)
    assert await late(pool, cycle_id) == ([], [])
    longest_s = await pool.fetchval(
        "select extract(epoch from max(due_at) - clock_timestamp())::float8 from operations"
        " where cycle_id = $1 and finished_at is null and due_at <> 'infinity'",
        cycle_id,
    )
    assert longest_s <= max(SETTINGS.orchestrator.lease_s, SETTINGS.orchestrator.resend_after_s_max)
    if by_s < 0:
        closed_s = await pool.fetchval(
            "select extract(epoch from closed_until - clock_timestamp())::float8 from paces"
            " where provider = 'jumped'"
        )
        assert closed_s <= 120, "a limit of a provider does not last a day longer"
    assert await clock.beat() == 0, "once"


async def test_a_jump_is_called_a_jump_and_not_an_outage(
    orchestrators: Orchestrators, clock: DeskClock
) -> None:
    pool, cycle_id = orchestrators.pool, await orchestrators.begin()
    for by_s in JUMPS:
        await clock.beat()
        await jumped(pool, cycle_id, by_s)
        await clock.beat()
    told = await pool.fetch(
        "select (data ->> 'clock_jump_s')::float8 as by_s from state_events"
        " where type = 'outage_ended' order by id desc limit $1",
        len(JUMPS),
    )
    assert [row["by_s"] for row in reversed(told)] == [
        pytest.approx(each, abs=60) for each in JUMPS
    ]


async def test_what_is_claimed_right_after_a_jump_back_keeps_its_lease(
    orchestrators: Orchestrators, clock: DeskClock
) -> None:
    pool, cycle_id = orchestrators.pool, await orchestrators.begin()
    await clock.beat()
    await jumped(pool, cycle_id, -3_600.0)
    op_id = ids.operation_id(cycle_id, LANE, "sides", "left", 1)
    await pool.execute(
        "update operations set status = 'running', epoch = 1,"
        " due_at = clock_timestamp() + $1 * interval '1 second' where op_id = $2",
        SETTINGS.orchestrator.lease_s,
        op_id,
    )
    other = await orchestrators.begin()
    before_s = await left_s(pool, other)
    await clock.beat()
    rows = await pool.fetch(sql.load_cycles, [], [op_id])
    assert {row["op.op_id"]: row["op.lease_live"] for row in rows}[op_id]
    assert await left_s(pool, other) == pytest.approx(before_s, abs=60)


async def test_the_desks_time_is_that_of_postgres(pool: Pool, clock: DeskClock) -> None:
    await clock.beat()
    by_postgres = await pool.fetchval("select clock_timestamp()")
    assert abs((clock.now() - by_postgres).total_seconds()) < 30


# --- Postgres loses commits -----------------------------------------------------------------------


async def test_commits_that_postgres_has_lost_are_said_once(pool: Pool, clock: DeskClock) -> None:
    """As after a failover to a standby that was behind."""
    said = "select (data ->> 'beats_lost')::int from state_events where data ? 'beats_lost'"
    for _ in range(4):
        await clock.beat()
    before = len([row for row in await pool.fetch(said) if row[0] is not None])
    await pool.execute("update desk_clock set beats = beats - 3")
    for _ in range(3):
        await clock.beat()
    told = [row[0] for row in await pool.fetch(said) if row[0] is not None]
    assert told[before:] == [3]


async def test_the_beats_of_others_are_no_loss(pool: Pool, clock: DeskClock) -> None:
    other = DeskClock(pool, SETTINGS)
    before = await pool.fetchval("select count(*) from state_events where data ? 'beats_lost'")
    for each in (clock, other, other, clock, other, clock):
        await each.beat()
    after = await pool.fetchval("select count(*) from state_events where data ? 'beats_lost'")
    assert after == before
