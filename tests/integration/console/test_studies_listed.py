"""Studies as they are listed: what counts as completed, counted how often, and in one answer."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import orjson
import pytest

from contracts.message import MESSAGE_BYTES_MAX
from contracts.study import DATES_MAX, StudiesQuery, Study, StudyView
from libs.postgres.pool import STUDY_ROLE, open_pool
from services.study.progress import StudyProgress, sql
from services.study.record import UnreadableStudy, study_of
from tests.integration.console.test_past_cycles import one_more

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from libs.postgres.pool import Pool, PoolConnection, Record
    from libs.servers.embedded import Servers
    from tests.integration.console.conftest import Made


@pytest.fixture
async def pool(servers: Servers) -> AsyncIterator[Pool]:
    async with open_pool(servers.postgres_dsn(STUDY_ROLE), size_max=1) as opened:
        yield opened


async def begun(db: PoolConnection, *, sessions: int = 2, status: str = "completed") -> str:
    """A study of two arms on record, under a name of its own."""
    days = [str(date(2000, 1, 3) + timedelta(days=n)) for n in range(sessions)]
    study = Study.model_validate(
        {
            "name": f"s{uuid4().hex[:12]}",
            "dates": {"sessions": days},
            "universe": ["AAPL", "IBM"],
            "arms": [{"name": "rules"}, {"name": "coin", "provider": "coin"}],
        }
    )
    await db.execute(
        "insert into studies (study_id, name, sha256, body, cells, next_cell, status)"
        " values (gen_random_uuid(), $1, $2, $3, $4, $4, $5)",
        study.name,
        study.sha256,
        study.model_dump_json().encode(),
        sessions,
        status,
    )
    return study.name


async def cell(made: Made, name: str, number: int, **arms: str) -> None:
    """An ended cell whose arms ended so."""
    cycle = await one_more(made.db, made)
    lanes = {arm: {"name": arm, "status": status} for arm, status in arms.items()}
    state = orjson.dumps({"main": "rules", "lanes": lanes})
    await made.db.execute(
        "update cycles set requester = 'study', idempotency_key = $2, state = $3"
        " where cycle_id = $1",
        cycle.cycle_id,
        f"{name}/cell/{number}/0",
        state,
    )


async def one(studies: StudyProgress, name: str) -> StudyView:
    (view,) = (await studies.answer("cli", StudiesQuery(name=name))).studies
    return view


async def test_a_cell_is_completed_where_all_its_arms_are(made: Made, pool: Pool) -> None:
    name = await begun(made.db)
    await cell(made, name, 0, rules="completed", coin="completed")
    await cell(made, name, 1, rules="completed", coin="failed")

    view = await one(StudyProgress(pool), name)

    assert (view.completed, view.failed, view.running) == (1, 1, 0)


class Counted:
    """A pool, with how many studies' cells were counted."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.names: list[str] = []

    async def fetch(self, statement: str, *values: object) -> Sequence[Record]:
        if statement == sql.counts:
            self.names += values[0]  # type: ignore[arg-type]
        return await self.pool.fetch(statement, *values)


async def test_the_cells_of_a_study_that_rests_are_counted_once(made: Made, pool: Pool) -> None:
    resting, runs = await begun(made.db), await begun(made.db, status="running")
    await cell(made, resting, 0, rules="completed", coin="completed")
    counted = Counted(pool)
    studies = StudyProgress(counted)  # type: ignore[arg-type]
    for _ in range(2):
        assert (await one(studies, resting)).completed == 1
        await one(studies, runs)
    assert counted.names == [resting, runs, runs]

    await made.db.execute("update studies set round = 2, next_cell = 1 where name = $1", resting)
    await cell(made, resting, 1, rules="completed", coin="completed")

    assert (await one(studies, resting)).completed == 2


async def test_studies_that_do_not_fit_into_one_answer_are_left_to_be_asked_for_by_name(
    db: PoolConnection, pool: Pool
) -> None:
    names = [await begun(db, sessions=DATES_MAX) for _ in range(9)]

    page = await StudyProgress(pool).answer("cli", StudiesQuery())

    assert page.more
    assert len(page.model_dump_json()) < MESSAGE_BYTES_MAX
    listed = [view.study.name for view in page.studies]
    assert listed == names[::-1][: len(listed)]
    assert (await one(StudyProgress(pool), names[0])).study.name == names[0]


async def test_a_study_that_a_later_version_wrote_is_named_and_hides_no_other(
    made: Made, pool: Pool
) -> None:
    names = [await begun(made.db), await begun(made.db)]
    body = orjson.dumps({"of": "a later version"})
    await made.db.execute("update studies set body = $2 where name = $1", names[0], body)
    try:
        view = await StudyProgress(pool).answer("cli", StudiesQuery())
        with pytest.raises(UnreadableStudy, match=names[0]):
            await StudyProgress(pool).answer("cli", StudiesQuery(name=names[0]))
        with pytest.raises(UnreadableStudy, match=names[0]):
            await study_of(names[0], pool)
    finally:  # other tests read all studies
        await made.db.execute("delete from studies where name = $1", names[0])

    assert view.unreadable == (names[0],)
    assert names[1] in {each.study.name for each in view.studies}
