"""The clock of studies on a real Postgres: the live desk first, one study after the other, and no
cell that is passed over for a reason which is not its own."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pytest

from contracts.cycle import CycleRequest, CycleStatus, RequestAnswer
from contracts.study import RunStudy, StopStudy, StudyAnswer
from libs.market.calendar import exchange_calendar
from libs.market.sessions import Sessions, Span
from libs.postgres.pool import Pool
from libs.runtime import ids
from libs.runtime.settings import Settings
from services.orchestrator.clocks.studies import Studies
from services.orchestrator.preflight import Outlook
from tests.integration.orchestrator.conftest import Sent

LATEST = date(2013, 3, 1)
DAYS = ["2012-03-01", "2012-04-02", "2012-05-01"]


@dataclass
class Desk:
    """A clock of studies, and a desk that answers it as it is told to."""

    pool: Pool
    answers: list[RequestAnswer | None] = field(default_factory=list)
    asked: list[CycleRequest] = field(default_factory=list)

    async def ask(self, requester: str, request: CycleRequest) -> RequestAnswer | None:
        """Accepts what it has no other answer to; a cell ends at once."""
        assert requester == "study"
        self.asked.append(request)
        if self.answers:
            return self.answers.pop(0)
        cycle_id = ids.cycle_id(requester, request.idempotency_key)
        return RequestAnswer(outcome="accepted", cycle_id=cycle_id, status=CycleStatus.RUNNING)

    def clock(self, **settings: Any) -> Studies:
        async def span() -> Span:
            return Span(date(2000, 3, 1), LATEST)

        async def outlook(*_: object) -> Outlook:
            return Outlook()

        sessions = Sessions("a test", exchange_calendar(), span)
        return Studies(self.pool, self.ask, Sent(), outlook, sessions, Settings(**settings))

    async def works(self, clock: Studies) -> None:
        """The clock looks until there is nothing to ask for."""
        while await clock._step():
            pass

    async def standing(self, name: str) -> tuple[str, int, int]:
        row = await self.pool.fetchrow("select * from studies where name = $1", name)
        return row["status"], row["next_cell"], row["refused"]

    async def live_cycle(self) -> uuid.UUID:
        cycle_id = uuid.uuid4()
        await self.pool.execute(
            "insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key,"
            " body_sha256, request, as_of, started_on, status, state, accepted_at, deadline_at,"
            " tokens_max, cost_usd_max) values ($1, 'decision', 1, 'cli', $1::uuid::text, '', '{}',"
            " '2012-06-29', current_date, 'running', '{}', now(), now() + interval '1 hour', 1, 1)",
            cycle_id,
        )
        return cycle_id


@pytest.fixture
async def desk(pool: Pool) -> AsyncIterator[Desk]:
    """Nothing is at work at first, and no study afterwards."""
    await pool.execute("update cycles set status = 'cancelled' where status = 'running'")
    await pool.execute("update studies set status = 'stopped' where status = 'running'")
    yield Desk(pool)
    await pool.execute("update studies set status = 'stopped' where status = 'running'")


def wish(**fields: Any) -> RunStudy:
    study = {
        "name": f"s{uuid.uuid4().hex[:12]}",
        "dates": {"sessions": DAYS},
        "universe": ["AAPL", "IBM"],
        "arms": [{"name": "rules"}],
        **fields,
    }
    return RunStudy.model_validate({"study": study})


async def begun(clock: Studies, asked: RunStudy) -> StudyAnswer:
    answer = await clock.begin("cli", asked)
    assert answer.outcome == "accepted", answer
    return answer


def refused(code: str) -> RequestAnswer:
    return RequestAnswer(outcome="rejected", code=code, message=f"because of {code}")


async def test_no_cell_begins_while_a_live_cycle_is_at_work(desk: Desk) -> None:
    clock, asked = desk.clock(), wish()
    await begun(clock, asked)
    live = await desk.live_cycle()

    await desk.works(clock)
    assert desk.asked == []

    await desk.pool.execute("update cycles set waiting_since = now() where cycle_id = $1", live)
    await desk.works(clock)
    assert len(desk.asked) == len(DAYS), "one that waits for a person is not at work"
    await desk.pool.execute("update cycles set status = 'completed' where cycle_id = $1", live)


async def test_all_cells_are_asked_for_in_order_and_once_and_the_study_ends(desk: Desk) -> None:
    clock, asked = desk.clock(), wish(samples=2)
    await begun(clock, asked)

    await desk.works(clock)
    await desk.works(desk.clock())

    cells = [(f"{each.as_of}", each.study.sample) for each in desk.asked if each.study]
    assert cells == [(day, sample) for day in DAYS for sample in range(2)]
    assert await desk.standing(asked.study.name) == ("completed", 6, 0)


async def test_a_busy_desk_is_asked_again_for_the_same_cell(desk: Desk) -> None:
    clock, asked = desk.clock(), wish()
    await begun(clock, asked)
    desk.answers = [refused("busy"), None]

    for _ in range(3):
        await desk.works(clock)

    assert [each.study.number for each in desk.asked if each.study] == [0, 0, 0, 1, 2]
    assert await desk.standing(asked.study.name) == ("completed", 3, 0)


async def test_a_session_without_data_is_passed_over_and_counted(desk: Desk) -> None:
    clock, asked = desk.clock(), wish()
    await begun(clock, asked)
    desk.answers = [refused("unknown_ticker")]

    await desk.works(clock)

    assert await desk.standing(asked.study.name) == ("completed", 3, 1)


async def test_a_provider_that_cannot_be_used_stops_the_study_and_costs_no_cell(
    desk: Desk,
) -> None:
    clock, asked = desk.clock(), wish()
    await begun(clock, asked)
    desk.answers = [refused("provider_not_usable")]

    await desk.works(clock)
    assert await desk.standing(asked.study.name) == ("stopped", 0, 0)
    reason = await desk.pool.fetchval(
        "select reason from studies where name = $1", asked.study.name
    )
    assert "because of provider_not_usable" in reason

    assert (await begun(clock, asked)).changed
    await desk.works(clock)
    assert await desk.standing(asked.study.name) == ("completed", 3, 0)


async def test_studies_run_one_after_the_other(desk: Desk) -> None:
    clock, first, second = desk.clock(), wish(), wish()
    await begun(clock, first)
    await begun(clock, second)

    await desk.works(clock)

    names = [each.study.study for each in desk.asked if each.study]
    assert names == [first.study.name] * 3 + [second.study.name] * 3


async def test_a_stop_that_comes_again_changes_nothing(desk: Desk) -> None:
    clock, asked = desk.clock(), wish()
    await begun(clock, asked)
    stop = StopStudy(name=asked.study.name, reason="lunch")

    assert (await clock.stop("cli", stop)).changed
    assert not (await clock.stop("cli", stop)).changed
    assert (await clock.stop("cli", StopStudy(name="nobody"))).code == "not_found"
    await desk.works(clock)
    assert desk.asked == []
