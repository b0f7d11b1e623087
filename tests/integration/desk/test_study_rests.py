"""A study beside live cycles on the shared desk: its cells rest in between, and say the same."""

import asyncio
from uuid import UUID, uuid4

from tests.integration.desk.caller import Caller, Json
from tests.integration.desk.conftest import Desk
from tests.integration.desk.test_study import STUDY_S, begun, ended, standing, study

LIVE = (
    "insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key, body_sha256,"
    " request, as_of, started_on, status, state, accepted_at, deadline_at, tokens_max,"
    " cost_usd_max) values ($1, 'decision', 1, 'cli', $1::uuid::text, '', '{}', '2012-06-29',"
    " current_date, 'running', '{}', now(), now() + interval '1 hour', 1, 1)"
)
OF_CELLS = "from operations o join study_cells c using (cycle_id) where c.study = $1"
AT_WORK = (
    f"select count(*) {OF_CELLS} and o.status in ('pending', 'running') and o.rests_since is null"
)
RESTING = f"select count(*) {OF_CELLS} and o.status = 'pending' and o.rests_since is not null"
DONE = f"select count(*) {OF_CELLS} and o.status = 'completed'"

Database = "asyncpg.Connection[asyncpg.Record]"


async def begin_live(db: "Database") -> UUID:
    """A live cycle at work, which takes as long as the test wants."""
    cycle_id = uuid4()
    await db.execute(LIVE, cycle_id)
    return cycle_id


async def end_live(db: "Database", cycle_id: UUID) -> None:
    await db.execute("delete from cycles where cycle_id = $1", cycle_id)


async def until_it_rests(db: "Database", name: str) -> int:
    """How many commands of a study rest, once its services have done what they had begun."""
    async with asyncio.timeout(STUDY_S):
        while await db.fetchval(AT_WORK, name):  # noqa: ASYNC110 - a database's
            await asyncio.sleep(0.02)
    resting: int = await db.fetchval(RESTING, name)
    return resting


async def until_it_has_moved(db: "Database", user: Caller, name: str) -> bool:
    """Whether the study still runs, once another of its steps is done."""
    before = await db.fetchval(DONE, name)
    async with asyncio.timeout(STUDY_S):
        while (await standing(user, name))["status"] == "running":
            if await db.fetchval(DONE, name) > before:
                return True
            await asyncio.sleep(0.02)
    return False


async def decided(user: Caller, name: str) -> list[Json]:
    """What each cell came to, without its ids and times."""
    cells = (await user.query("study_cells", "study", name=name, limit=100))["cells"]
    return [{key: value for key, value in each.items() if key != "cycle_id"} for each in cells]


async def test_a_study_that_rests_again_and_again_comes_to_the_same_cells(
    desk: Desk, user: Caller
) -> None:
    plain, rested = study(seed=7, arms=[{"name": "rules"}, {"name": "coin", "provider": "coin"}]), 0
    await begun(user, plain)
    assert (await ended(user, plain["name"]))["completed"] == 3
    beside = {**plain, "name": f"{plain['name']}-beside"}

    async with desk.postgres() as db:
        await begun(user, beside)
        while await until_it_has_moved(db, user, beside["name"]):
            live = await begin_live(db)
            try:
                resting = await until_it_rests(db, beside["name"])
                if resting:
                    rested += 1
                    view = await standing(user, beside["name"])
                    assert view["resting"]
                    # A cell that was accepted meanwhile begins with a rest.
                    assert await db.fetchval(RESTING, beside["name"]) >= resting
            finally:
                await end_live(db, live)

    view = await standing(user, beside["name"])
    assert (view["status"], view["completed"], view["resting"]) == ("completed", 3, False)
    assert rested >= 3, "cells rested in between"
    assert await decided(user, beside["name"]) == await decided(user, plain["name"])


async def test_a_study_that_is_stopped_while_it_rests_ends_its_cells_and_begins_none(
    desk: Desk, user: Caller
) -> None:
    file = study(dates={"first": "2011-01-03", "last": "2012-06-29", "count": 12})
    async with desk.postgres() as db:
        await begun(user, file)
        assert await until_it_has_moved(db, user, file["name"])
        live = await begin_live(db)
        try:
            resting = await until_it_rests(db, file["name"])
            stopped = await user.ask(
                {"name": file["name"], "reason": "lunch"}, "stop_study", "study"
            )
            assert stopped["outcome"] == "accepted"
            view = await standing(user, file["name"])
            assert (view["status"], view["resting"]) == ("stopped", False)
            assert await db.fetchval(RESTING, file["name"]) >= resting
        finally:
            await end_live(db, live)
        async with asyncio.timeout(STUDY_S):
            while (await standing(user, file["name"]))["running"]:  # noqa: ASYNC110 - the desk's
                await asyncio.sleep(0.05)
        begun_cells = await db.fetchval(
            "select count(*) from study_cells where study = $1", file["name"]
        )

    view = await standing(user, file["name"])
    assert view["completed"] == begun_cells < 12
