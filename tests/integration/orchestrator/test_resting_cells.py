"""Commands of a study's cells rest while a live cycle is at work: on a real Postgres, with two
orchestrators, each of which may die at any moment."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import orjson
import pytest

from contracts.cycle import CycleRequest, StudyCell
from contracts.message import Pipeline
from contracts.subjects.subject import STUDY
from libs.postgres.pool import Pool
from libs.runtime import ids
from services.orchestrator.commit import Outbox, OutgoingCommand
from services.orchestrator.group.changes import Stop
from services.orchestrator.group.inputs import CancelRequested, CycleRequested
from services.orchestrator.schedulers.resting import Resting
from services.orchestrator.store import sql
from tests.flat_settings import settings_with
from tests.integration.orchestrator.conftest import DAY, LANE, Orchestrators
from tests.integration.orchestrator.test_commit import DONE

LIVE = (
    "insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key, body_sha256,"
    " request, as_of, started_on, status, state, accepted_at, deadline_at, tokens_max,"
    " cost_usd_max) values ($1, 'decision', 1, 'cli', $1::uuid::text, '', '{}', '2012-06-29',"
    " current_date, 'running', '{}', now(), now() + interval '1 hour', 1, 1)"
)
RESTING = "select op_id, rests_since, due_at from operations where cycle_id = $1 and step = 'join'"


class Lost:
    """The way out of an orchestrator that dies right after its commit."""

    async def send(self, command: OutgoingCommand) -> None:
        """Nobody hears it."""

    async def stop(self, stop: Stop) -> None:
        """Nobody hears it."""


def is_moment(value: object) -> bool:
    try:
        return "T" in str(value) and bool(datetime.fromisoformat(str(value)))
    except ValueError:
        return False


@dataclass
class Beside:
    """Cells beside live cycles."""

    orchestrators: Orchestrators

    @property
    def pool(self) -> Pool:
        return self.orchestrators.pool

    @property
    def joins(self) -> int:
        """How often the cells' last command was sent."""
        return self.orchestrators.sent.steps.count("join")

    async def live(self) -> UUID:
        """A live cycle at work, which takes as long as the test wants."""
        cycle_id = uuid.uuid4()
        await self.pool.execute(LIVE, cycle_id)
        return cycle_id

    async def over(self, live: UUID) -> None:
        await self.pool.execute("update cycles set status = 'completed' where cycle_id = $1", live)

    async def cell(self) -> UUID:
        """A cell whose next step has both that it needs: it rests where a live cycle is at work."""
        key = f"s/{uuid.uuid4().hex}/0/0"
        request = CycleRequest(
            idempotency_key=key,
            kind="join",
            as_of=DAY,
            pipelines=(Pipeline(name=LANE, account=f"study-{uuid.uuid4().hex}"),),
            study=StudyCell(study="s", number=0, sample=0, seed=1),
        )
        cycle_id = ids.cycle_id(STUDY, key)
        asked = CycleRequested(cycle_id, STUDY, request, DAY, key.encode())
        assert (await self.orchestrators.committers[0].ask(asked)).outcome == "accepted"
        await self.both_sides(cycle_id)
        return cycle_id

    async def both_sides(self, cycle_id: UUID) -> None:
        """Tell both results; a word that comes again is heard after what it led to was sent."""
        for at, side in ((0, "left"), (1, "right"), (1, "right")):
            await self.orchestrators.answer(at, cycle_id, side)

    async def rests(self, cycle_id: UUID) -> bool:
        row = await self.pool.fetchrow(RESTING, cycle_id)
        return row["rests_since"] is not None

    async def rested_for(self, cycle_id: UUID, seconds: float) -> None:
        """As if so much time had passed: a step that rests is as old as its rest."""
        await self.pool.execute(
            "update operations set rests_since = rests_since - $2 * interval '1 second',"
            " deadline_at = deadline_at - $2 * interval '1 second' where cycle_id = $1",
            cycle_id,
            seconds,
        )
        await self.pool.execute(
            "update cycles set deadline_at = deadline_at - $2 * interval '1 second'"
            " where cycle_id = $1",
            cycle_id,
            seconds,
        )

    def clock(self, outbox: Outbox | None = None, **settings: float) -> Resting:
        """The clock of an orchestrator, of any of them."""
        return Resting(self.pool, outbox or self.orchestrators.sent, settings_with(**settings))

    async def due(self) -> set[UUID]:
        """Operations that the sweep sends now."""
        rows = await self.pool.fetch(sql.due_operations, 1_000, 0.0, 0.0, 5)
        return {row["op_id"] for row in rows}

    async def late(self) -> set[UUID]:
        """Operations and cycles whose time is up."""
        late = await self.pool.fetch(sql.overdue_operations, 1_000)
        running = await self.pool.fetch(sql.running_cycles)
        cycles = await self.pool.fetch(sql.overdue_cycles, 1_000)
        loaded = await self.pool.fetch(sql.load_cycles, [row["cycle_id"] for row in running], [])
        found = {row["cycle_id"] for row in cycles}
        assert found == {row["cycle_id"] for row in loaded if row["is_late"]}
        return {row["op_id"] for row in late} | found


@pytest.fixture
async def beside(orchestrators: Orchestrators) -> AsyncIterator[Beside]:
    """Nothing is at work at first, and nothing afterwards."""
    pool = orchestrators.pool
    await nothing_at_work(pool)
    yield Beside(orchestrators)
    await nothing_at_work(pool)


async def nothing_at_work(pool: Pool) -> None:
    await pool.execute("update cycles set status = 'cancelled' where status = 'running'")
    await pool.execute(
        "update operations set status = 'cancelled', finished_at = now()"
        " where status in ('pending', 'running')"
    )


async def test_a_cells_next_command_rests_while_a_live_cycle_is_at_work(beside: Beside) -> None:
    live = await beside.live()
    cell = await beside.cell()
    op_id = (await beside.pool.fetchrow(RESTING, cell))["op_id"]

    await beside.clock().resume()

    assert beside.joins == 0
    assert await beside.rests(cell)
    assert op_id not in await beside.due(), "the sweep leaves it alone"

    await beside.over(live)
    await beside.clock().resume()
    await beside.clock().resume()

    assert beside.joins == 1, "it is sent once, whoever looks"
    assert await beside.orchestrators.answer(0, cell, "join") == "ok"
    assert await beside.orchestrators.steps(cell) == DONE
    assert await beside.orchestrators.status(cell) == "completed"


async def test_a_cells_commands_are_sent_at_once_where_no_live_cycle_is_at_work(
    beside: Beside,
) -> None:
    waits = await beside.live()
    await beside.pool.execute("update cycles set waiting_since = now() where cycle_id = $1", waits)

    cell = await beside.cell()

    assert beside.joins == 1, "one that waits for a person is not at work"
    assert not await beside.rests(cell)


async def test_a_live_cycles_commands_never_rest(beside: Beside) -> None:
    await beside.live()
    cycle_id = await beside.orchestrators.begin()
    await beside.both_sides(cycle_id)

    assert not await beside.rests(cycle_id)
    assert beside.joins == 1


async def test_a_command_that_its_orchestrator_resumed_and_did_not_send_is_found_by_the_sweep(
    beside: Beside,
) -> None:
    live = await beside.live()
    cell = await beside.cell()
    op_id = (await beside.pool.fetchrow(RESTING, cell))["op_id"]
    await beside.over(live)

    await beside.clock(Lost(), orchestrator_resend_after_s=0.001).resume()

    assert beside.joins == 0
    assert not await beside.rests(cell)
    assert op_id in await beside.due()


async def test_no_time_limit_runs_while_a_cell_rests(beside: Beside) -> None:
    live = await beside.live()
    cell = await beside.cell()
    op_id = (await beside.pool.fetchrow(RESTING, cell))["op_id"]
    before = "select o.deadline_at, c.deadline_at as of_cycle from operations o join cycles c"
    before += " using (cycle_id) where o.op_id = $1"
    limits = await beside.pool.fetchrow(before, op_id)
    await beside.rested_for(cell, 86_000.0)
    assert not {op_id, cell} & await beside.late()

    await beside.over(live)
    await beside.clock().resume()

    assert not {op_id, cell} & await beside.late()
    after = await beside.pool.fetchrow(before, op_id)
    for name in ("deadline_at", "of_cycle"):
        assert 0 <= (after[name] - limits[name]).total_seconds() < 60.0, name


async def test_no_moment_in_a_command_but_the_cycles_own_is_wrong_after_its_rest(
    beside: Beside,
) -> None:
    await beside.live()
    cell = await beside.cell()
    stored = "select command from operations where cycle_id = $1"
    for row in await beside.pool.fetch(stored, cell):
        command = orjson.loads(row["command"])
        assert {name for name, value in command.items() if is_moment(value)} == {"now"}


async def test_a_cell_that_rested_for_long_goes_on_beside_live_cycles_and_others_rest(
    beside: Beside,
) -> None:
    await beside.live()
    elder, younger = await beside.cell(), await beside.cell()
    await beside.rested_for(elder, 61.0)

    await beside.clock().resume()

    assert beside.joins == 1
    assert not await beside.rests(elder)
    assert await beside.rests(younger)


async def test_without_a_rest_every_command_goes_out_at_the_next_look(beside: Beside) -> None:
    await beside.live()
    await beside.cell()

    await beside.clock(study_rest_s_max=0.0).resume()

    assert beside.joins == 1


async def test_a_cell_that_is_cancelled_while_it_rests_is_never_sent(beside: Beside) -> None:
    live = await beside.live()
    cell = await beside.cell()
    cancel = CancelRequested(cell, "enough")

    answer = await beside.orchestrators.committers[1].ask(cancel)

    assert answer.outcome == "accepted"
    await beside.over(live)
    await beside.clock().resume()
    assert beside.joins == 0
    assert await beside.orchestrators.status(cell) == "cancelled"


async def test_an_outage_while_a_cell_rests_is_not_counted_twice(beside: Beside) -> None:
    await beside.live()
    cell = await beside.cell()
    row = await beside.pool.fetchrow(RESTING, cell)
    try:
        await beside.pool.execute("update desk_clock set stands_at = now() - interval '1 hour'")
        await beside.pool.execute(sql.give_time_back, 1.0, 30.0)
        moved = await beside.pool.fetchrow(RESTING, cell)
    finally:
        await beside.pool.execute("update desk_clock set stands_at = 'infinity'")

    assert (moved["rests_since"] - row["rests_since"]).total_seconds() >= 3_600
    assert moved["due_at"] == row["due_at"], "it stays with the clock of studies"
