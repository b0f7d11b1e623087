"""Studies as their service runs them, on a real Postgres: the live desk first, one study after the
other, and no cell that is passed over for a reason which is not its own."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from json import dumps
from typing import Any

import pytest

from contracts.cycle import CycleRequest, CycleStatus, RequestAnswer
from contracts.study import RunStudy, StopStudy, StudyAnswer
from libs.bus.client import DeskNotReachable
from libs.market.calendar import exchange_calendar
from libs.market.sessions import Sessions, SessionSpan
from libs.postgres.pool import STUDY_ROLE, Pool, open_pool
from libs.runtime import ids
from libs.runtime.background import Background
from libs.servers.embedded import Servers
from services.study.runner import Studies
from tests.flat_settings import settings_with

LATEST = date(2013, 3, 1)
DAYS = ["2012-03-01", "2012-04-02", "2012-05-01"]


@dataclass
class Desk:
    """A clock of studies, and a desk that answers it as it is told to."""

    pool: Pool
    own: Pool
    answers: list[RequestAnswer | None] = field(default_factory=list)
    asked: list[CycleRequest] = field(default_factory=list)
    judged: list[CycleRequest] = field(default_factory=list)

    async def ask(self, request: CycleRequest) -> RequestAnswer:
        """Accepts what it has no other answer to; a cell ends at once."""
        assert request.study
        (self.judged if request.study.dry_run else self.asked).append(request)
        if self.answers:
            answer = self.answers.pop(0)
            if answer is None:
                raise DeskNotReachable("the orchestrator is away")
            return answer
        cycle_id = ids.cycle_id("study", request.idempotency_key)
        return RequestAnswer(outcome="accepted", cycle_id=cycle_id, status=CycleStatus.RUNNING)

    def clock(self, latest: date = LATEST, **settings: Any) -> Studies:
        async def span() -> SessionSpan:
            return SessionSpan(date(2000, 3, 1), latest)

        sessions = Sessions("a test", exchange_calendar(), span)
        return Studies(self.own, self.ask, sessions, settings_with(**settings))

    async def works(self, clock: Studies) -> None:
        """The clock looks until there is nothing to ask for."""
        with contextlib.suppress(DeskNotReachable):
            while await clock._step():
                pass

    async def came_to(
        self, request: CycleRequest, *failures: str, cost: int = 0, usd: str = "0"
    ) -> None:
        """The cycle of a request as it ended: completed, or with steps that failed for these."""
        cycle_id = ids.cycle_id("study", request.idempotency_key)
        await self.pool.execute(
            "insert into cycles (cycle_id, kind, workflow_version, requester, idempotency_key,"
            " body_sha256, request, as_of, started_on, status, state, accepted_at, deadline_at,"
            " tokens_max, cost_usd_max, tokens_spent, cost_usd_spent) values ($1, $2, 1, 'study',"
            " $3, '', '{}', $4, current_date, $5, '{}', now(), now() + interval '1 hour', 1, 1, $6,"
            " $7)",
            cycle_id,
            request.kind,
            request.idempotency_key,
            request.as_of,
            "failed" if failures else "completed",
            cost,
            Decimal(usd),
        )
        for failure in failures:
            step, _, code = failure.rpartition("/")
            await self.pool.execute(
                "insert into operations (op_id, cycle_id, started_on, pipeline, account, state,"
                " step, service, attempt, as_of, status, claimed, must_answer, command, due_at,"
                " created_at, failure) values (gen_random_uuid(), $1, current_date, 'rules', 'a',"
                " 's', $2, 'trader', 1, $3, $4, true, false, '', 'infinity', now(), $5)",
                cycle_id,
                step or "picks",
                request.as_of,
                *(("cancelled", None) if code == "late" else ("failed", dumps({"code": code}))),
            )

    async def standing(self, name: str) -> tuple[str, int, int]:
        row = await self.own.fetchrow("select * from studies where name = $1", name)
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
async def desk(pool: Pool, servers: Servers) -> AsyncIterator[Desk]:
    """Nothing is at work at first, and no study afterwards."""
    await pool.execute("update cycles set status = 'cancelled' where status = 'running'")
    async with open_pool(servers.postgres_dsn(STUDY_ROLE), size_max=2) as own:
        await own.execute("update studies set status = 'stopped' where status = 'running'")
        yield Desk(pool, own)
        await own.execute("update studies set status = 'stopped' where status = 'running'")


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


async def test_a_study_whose_dates_are_no_longer_in_the_data_stops_with_the_reason_and_others_run(
    desk: Desk,
) -> None:
    gone, other = wish(), wish(dates={"sessions": DAYS[:1]})
    await begun(desk.clock(), gone)
    shorter = desk.clock(date(2012, 4, 15))
    await begun(shorter, other)

    await desk.works(shorter)
    row = await desk.own.fetchrow("select * from studies where name = $1", gone.study.name)
    assert row["status"] == "stopped"
    assert DAYS[-1] in row["reason"]
    assert [request.as_of for request in desk.asked] == [date(2012, 3, 1)]


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
    reason = await desk.own.fetchval("select reason from studies where name = $1", asked.study.name)
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


async def tried_again(desk: Desk, *ends: tuple[str, ...], **fields: Any) -> list[CycleRequest]:
    """What a study whose cells came to these ends asks for when it is run again."""
    clock, asked = desk.clock(), wish(**fields)
    await begun(clock, asked)
    await desk.works(clock)
    for request, failures in zip(desk.asked, ends, strict=True):
        await desk.came_to(request, *failures)
    desk.asked.clear()
    await begun(clock, asked)
    await desk.works(desk.clock())
    return desk.asked


def numbers(asked: list[CycleRequest]) -> list[int]:
    return [each.study.number for each in asked if each.study]


async def test_run_again_a_study_has_only_those_cells_again_that_failed_for_what_can_pass(
    desk: Desk,
) -> None:
    asked = await tried_again(desk, (), ("budget_exhausted",), ("answer_invalid",))

    assert numbers(asked) == [1]
    assert asked[0].idempotency_key.endswith("/decision/1/0/2")
    (account,) = asked[0].accounts
    assert "-r2-1-0-" in account, "the account of the cell that failed is not empty any more"


@pytest.mark.parametrize(
    ("failure", "again"),
    [
        ("provider_unavailable", True),
        ("timed_out", True),
        ("late", True),
        ("contract_invalid", False),
        ("memorize/budget_exhausted", False),
    ],
)
async def test_a_cell_that_ran_out_of_time_is_had_again_and_one_without_a_memory_is_not(
    desk: Desk, failure: str, again: bool
) -> None:
    asked = await tried_again(desk, (), (), (failure,))

    assert numbers(asked) == ([2] if again else [])


async def test_a_study_none_of_whose_cells_can_be_had_again_stays_as_it_is(desk: Desk) -> None:
    clock, asked = desk.clock(), wish()
    await begun(clock, asked)
    await desk.works(clock)
    for request in list(desk.asked):
        await desk.came_to(request)

    answer = await begun(clock, asked)

    assert (answer.changed, answer.status, answer.message) == (False, "completed", "")


async def test_what_a_cell_has_cost_is_taken_from_the_most_that_it_may_cost(desk: Desk) -> None:
    clock, asked = desk.clock(), wish(budget={"cell_tokens": 1_000})
    await begun(clock, asked)
    await desk.works(clock)
    first, *others = list(desk.asked)
    await desk.came_to(first, "budget_exhausted", cost=600, usd="0.00018515")
    for request in others:
        await desk.came_to(request)
    desk.asked.clear()

    richer = {**asked.study.model_dump(mode="json"), "budget": {"cell_tokens": 5_000}}
    answer = await begun(clock, RunStudy.model_validate({"study": richer}))
    await desk.works(clock)

    assert answer.message.startswith("1 cell is tried again")
    (again,) = desk.asked
    assert (again.budgets.tokens, again.budgets.cost_usd) == (4_400, Decimal("0.999814"))


async def test_whatever_dies_a_cell_is_tried_again_under_one_key_and_no_round_begins_twice(
    desk: Desk,
) -> None:
    clock, asked = desk.clock(), wish()
    await begun(clock, asked)
    await desk.works(clock)
    for request in list(desk.asked):
        await desk.came_to(request, "provider_unavailable")
    desk.asked.clear()

    assert (await begun(clock, asked)).changed
    assert not (await begun(desk.clock(), asked)).changed, "the request came again"
    desk.answers = [None]
    await desk.works(clock)
    # Asked for, and killed before that was on record.
    await desk.own.execute("update studies set next_cell = 0 where name = $1", asked.study.name)
    await desk.works(desk.clock())

    keys = [each.idempotency_key for each in desk.asked]
    assert len(set(keys)) == len(DAYS)
    assert {key.rpartition("/")[2] for key in keys} == {"2"}


async def test_a_path_of_which_a_cell_failed_begins_anew_in_other_accounts(desk: Desk) -> None:
    path = {"kind": "path", "dates": {"sessions": DAYS, "every": 1}}
    ends = [()] * 4 + [("provider_unavailable",)]

    asked = await tried_again(desk, *ends, **path)

    kinds = ["decision", "exit", "decision", "exit", "decision"]
    assert [each.kind for each in asked] == kinds
    assert {account.split("-")[2] for each in asked for account in each.accounts} == {"r2"}


async def test_a_cell_that_pays_not_one_call_of_its_dearest_model_is_refused(desk: Desk) -> None:
    answer = refused("invalid").model_copy(update={"field": "budgets"})
    desk.answers, clock = [answer], desk.clock()

    answer = await clock.begin("cli", wish())

    assert (answer.outcome, answer.code, answer.field) == ("rejected", "invalid", "budget")
    assert desk.asked == [], "it is only judged"
    await begun(clock, wish())
    assert len(desk.judged) == 2


async def test_a_cutoff_that_nobody_knows_and_a_masked_arm_alone_are_told_before_it_begins(
    desk: Desk,
) -> None:
    arms = [{"name": "m", "provider": "claude", "masked": True}]
    asked = wish(arms=arms)

    checked = await desk.clock().begin("cli", asked.model_copy(update={"dry_run": True}))

    only, masked, cutoff, canary = checked.notes
    assert "only arm" in only
    assert "with names" in masked
    assert "claude: " in cutoff
    assert "canary" in canary
    known = "select count(*) from studies where name = $1"
    assert await desk.own.fetchval(known, asked.study.name) == 0
    clock = desk.clock()
    assert (await begun(clock, asked)).notes == checked.notes


async def test_a_study_that_only_a_later_version_can_read_ends_no_service(desk: Desk) -> None:
    clock, asked = desk.clock(orchestrator_sweep_s=0.02), wish()
    await begun(clock, asked)
    body = dumps({**asked.study.model_dump(mode="json"), "of_a_later_version": 1}).encode()
    later = "update studies set body = $2 where name = $1"
    await desk.own.execute(later, asked.study.name, body)

    async with Background(clock.run()) as background:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await background.failed()
        assert desk.asked == []
        now = asked.study.model_dump_json().encode()
        await desk.own.execute(later, asked.study.name, now)
        async with asyncio.timeout(10):
            while len(desk.asked) < len(DAYS):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
