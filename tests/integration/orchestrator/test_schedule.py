"""The schedule's clocks on a real Postgres: one slot is one cycle, whoever looks and dies."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast

import pytest

from contracts.cycle import RequestAnswer
from contracts.message import Message
from contracts.schedule import PauseJob, ResumeJob, RunJob
from libs.bus.publisher import Publisher
from libs.market.calendar import exchange_calendar
from libs.postgres.pool import Pool
from libs.runtime.background import Background
from libs.runtime.settings import Settings
from services.orchestrator.commit import Committer
from services.orchestrator.group.inputs import CancelRequested
from services.orchestrator.group.refusals import Refusals
from services.orchestrator.handler import Handler
from services.orchestrator.machine.workflows import workflows_of
from services.orchestrator.preflight import Preflight
from services.orchestrator.proposals import ProposalDesk
from services.orchestrator.schedulers.schedule import GIVE_UP_AFTER, Ask, Clock, Time
from tests.fakes.log_lines import log_lines
from tests.integration.orchestrator.conftest import Sent

CALENDAR = exchange_calendar()
FRIDAY = datetime(2012, 6, 29, 20, 30, tzinfo=UTC)
"""Half an hour after the close."""
LATEST = date(2013, 3, 1)
PATIENCE_S = 20.0
BEFORE = FRIDAY - timedelta(hours=1)


@dataclass
class Wound:
    """A clock that a test sets, and what it drives."""

    pool: Pool
    committer: Committer
    ask: Ask
    now: datetime = BEFORE

    def clock(self, jobs: Mapping[str, Any], ask: Ask | None = None, **other: Any) -> Clock:
        """An orchestrator's clock with these jobs; one more with the same jobs is another one's."""

        async def latest() -> date:
            return LATEST

        settings = Settings.model_validate({"schedule": {"jobs": jobs, **other}})
        time = Time(lambda: self.now, CALENDAR, latest)
        return Clock(self.pool, ask or self.ask, time, settings)

    async def passes(self, clock: Clock, to: datetime) -> None:
        """It becomes so late, and the clock looks."""
        self.now = to
        await clock.look()
        await clock.ask_due()

    async def slots(self, job: str) -> list[tuple[date, str]]:
        rows = await self.pool.fetch(
            "select as_of, outcome from schedule_slots where job = $1 order by slot", job
        )
        return [(row["as_of"], row["outcome"]) for row in rows]

    async def cycles(self, job: str) -> list[date]:
        rows = await self.pool.fetch(
            "select as_of from cycles where requester = 'schedule' and idempotency_key like $1"
            " order by accepted_at",
            f"{job}/%",
        )
        return [row["as_of"] for row in rows]

    async def end(self, job: str) -> None:
        """Whatever runs of the job is cancelled."""
        rows = await self.pool.fetch(
            "select cycle_id from schedule_slots where job = $1 and cycle_id is not null", job
        )
        for row in rows:
            await self.committer.ask(CancelRequested(row["cycle_id"], "enough"))


@pytest.fixture
async def wound(pool: Pool) -> AsyncIterator[Wound]:
    settings, sent = Settings(), Sent()
    committer = Committer(pool, workflows_of(settings), settings, sent, sent)

    async def latest() -> date:
        return LATEST

    async def no_version() -> None:
        return None

    async def outlook(*_: object) -> Preflight:
        return Preflight()

    refusals = Refusals(60, lambda: 0.0)
    handler = Handler(
        committer,
        cast(Publisher, None),
        latest,
        no_version,
        outlook,
        refusals,
        5.0,
        cast(ProposalDesk, None),
    )
    async with AsyncExitStack() as stack:
        running = asyncio.create_task(committer.run())
        stack.callback(running.cancel)
        yield Wound(pool, committer, handler.cycle)


@pytest.fixture
def name() -> str:
    """A job's name that no other test has."""
    return f"job-{uuid.uuid4().hex[:12]}"


def daily(**other: Any) -> dict[str, Any]:
    account = f"timed-{uuid.uuid4().hex[:12]}"
    return {"kind": "decision", "when": "close+30m", "account": account, **other}


async def test_two_orchestrators_make_one_cycle_of_a_slot(wound: Wound, name: str) -> None:
    first, second = wound.clock({name: daily()}), wound.clock({name: daily()})
    for clock in (first, second):
        await clock.look()
    assert await wound.slots(name) == [], "a job that is new has missed nothing"

    await asyncio.gather(wound.passes(first, FRIDAY), wound.passes(second, FRIDAY))
    # One of them may have left the job to the other.
    await asyncio.gather(wound.passes(first, FRIDAY), wound.passes(second, FRIDAY))

    assert await wound.slots(name) == [(FRIDAY.date(), "accepted")]
    assert await wound.cycles(name) == [FRIDAY.date()]


async def test_what_one_leaves_due_another_asks_for(wound: Wound, name: str) -> None:
    dying, other = wound.clock({name: daily()}), wound.clock({name: daily()})
    await dying.look()
    wound.now = FRIDAY
    await dying.look()
    assert await wound.slots(name) == [(FRIDAY.date(), "due")]

    await other.ask_due()
    await dying.ask_due()

    assert await wound.slots(name) == [(FRIDAY.date(), "accepted")]
    assert len(await wound.cycles(name)) == 1


async def test_one_that_dies_after_its_request_is_no_second_cycle(wound: Wound, name: str) -> None:
    async def asked_and_dead(requester: str, message: Message) -> Message | None:
        await wound.ask(requester, message)
        raise ConnectionError("killed")

    dying = wound.clock({name: daily()}, asked_and_dead)
    await dying.look()
    with pytest.raises(ConnectionError):
        await wound.passes(dying, FRIDAY)
    await wound.clock({name: daily()}).ask_due()

    assert await wound.slots(name) == [(FRIDAY.date(), "accepted")]
    assert len(await wound.cycles(name)) == 1


async def test_after_a_week_down_once_runs_the_newest_slot(wound: Wound, name: str) -> None:
    jobs = {name: daily()}
    await wound.clock(jobs).look()
    clock = wound.clock(jobs)
    await wound.passes(clock, FRIDAY + timedelta(days=7, hours=2))

    assert await wound.cycles(name) == [date(2012, 7, 6)]
    # The fourth of July is no session.
    row = await wound.pool.fetchrow("select missed, late from schedule_slots where job = $1", name)
    assert (row["missed"], row["late"]) == (4, True)


async def test_a_clock_that_jumps_a_day_ahead_and_back_fires_each_slot_once_and_says_so(
    wound: Wound, name: str
) -> None:
    jobs = {name: daily()}
    clock = wound.clock(jobs)
    await wound.passes(clock, BEFORE)
    # Monday's slot comes over the week-end; the clock then shows Friday again.
    with log_lines() as ahead:
        await wound.passes(clock, FRIDAY + timedelta(days=3, hours=1))
    assert "schedule.missed" in [line["event"] for line in ahead]
    assert await wound.cycles(name) == [date(2012, 7, 2)]
    with log_lines() as back:
        for to in (BEFORE, FRIDAY + timedelta(minutes=1), FRIDAY + timedelta(days=3, minutes=1)):
            await wound.passes(clock, to)
            await wound.passes(wound.clock(jobs), to)
    assert await wound.cycles(name) == [date(2012, 7, 2)]
    assert "schedule.clock_back" in [line["event"] for line in back]
    await wound.end(name)
    await wound.passes(clock, FRIDAY + timedelta(days=4, minutes=1))
    assert await wound.cycles(name) == [date(2012, 7, 2), date(2012, 7, 3)]


async def test_all_of_them_run_in_order_each_after_the_one_before(wound: Wound, name: str) -> None:
    jobs = {name: daily(missed="all", missed_max=3)}
    await wound.clock(jobs).look()
    clock = wound.clock(jobs)
    await wound.passes(clock, FRIDAY + timedelta(days=7, hours=2))

    for day in (3, 5, 6):
        assert await wound.cycles(name) == [date(2012, 7, d) for d in (3, 5, 6) if d <= day]
        await clock.ask_due()
        assert len(await wound.cycles(name)) == (3, 5, 6).index(day) + 1, "the one before runs"
        await wound.end(name)
        await clock.ask_due()


async def test_who_waits_for_a_late_one_is_its_own_account_alone(wound: Wound, name: str) -> None:
    late, other = name, f"{name}-other"
    jobs = {late: daily(), other: daily(when="close+2h")}
    jobs[f"{name}-same"] = {**jobs[late], "when": "close+2h"}
    await wound.clock(jobs).look()
    clock = wound.clock(jobs)
    await wound.passes(clock, FRIDAY + timedelta(hours=1, minutes=30))
    assert [await wound.cycles(each) for each in jobs] == [[FRIDAY.date()]] * 3

    await wound.passes(clock, FRIDAY + timedelta(days=3, hours=1, minutes=30))
    assert await wound.cycles(other) == [date(2012, 6, 29), date(2012, 7, 2)]
    assert await wound.cycles(f"{name}-same") == [date(2012, 6, 29)]
    await wound.end(late)
    await clock.ask_due()
    assert await wound.cycles(f"{name}-same") == [date(2012, 6, 29), date(2012, 7, 2)]


async def test_what_is_missed_can_be_skipped(wound: Wound, name: str) -> None:
    jobs = {name: daily(missed="skip")}
    await wound.clock(jobs).look()
    clock = wound.clock(jobs)
    await wound.passes(clock, FRIDAY + timedelta(hours=2))
    assert await wound.slots(name) == [(FRIDAY.date(), "skipped")]

    await wound.passes(clock, FRIDAY + timedelta(days=3))
    assert await wound.cycles(name) == [date(2012, 7, 2)]


async def test_a_paused_job_rests_over_a_restart_and_makes_up_for_nothing(
    wound: Wound, name: str
) -> None:
    jobs = {name: daily(missed="all")}
    clock = wound.clock(jobs)
    await clock.look()
    paused = await clock.answer("cli", PauseJob(job=name, reason="on holiday"))
    again = await clock.answer("cli", PauseJob(job=name))
    assert (paused.changed, again.changed) == (True, False)

    restarted = wound.clock(jobs)
    await wound.passes(restarted, FRIDAY)
    assert await wound.slots(name) == []

    wound.now = FRIDAY + timedelta(days=4)
    resumed = await restarted.answer("cli", ResumeJob(job=name))
    await wound.passes(restarted, wound.now)
    assert (resumed.changed, await wound.slots(name)) == (True, [])
    await wound.passes(restarted, FRIDAY + timedelta(days=6))
    assert await wound.cycles(name) == [date(2012, 7, 5)]


async def test_a_half_day_s_slot_comes_earlier_and_a_holiday_has_none(
    wound: Wound, name: str
) -> None:
    wound.now = datetime(2012, 11, 21, 23, tzinfo=UTC)
    clock = wound.clock({name: daily()})
    await clock.look()
    await wound.passes(clock, datetime(2012, 11, 23, 17, tzinfo=UTC))
    assert await wound.slots(name) == []

    await wound.passes(clock, datetime(2012, 11, 23, 18, 30, 1, tzinfo=UTC))
    assert await wound.cycles(name) == [date(2012, 11, 23)]


async def test_before_the_close_a_slot_sees_the_session_before(wound: Wound, name: str) -> None:
    clock = wound.clock({name: daily(when="30 12 * * *")})
    wound.now = FRIDAY - timedelta(hours=6)
    await clock.look()
    await wound.passes(clock, FRIDAY)

    assert await wound.cycles(name) == [date(2012, 6, 28)]


async def test_a_person_s_run_is_one_cycle_however_often_it_is_asked_for(
    wound: Wound, name: str
) -> None:
    clock = wound.clock({name: daily()})
    await clock.answer("cli", PauseJob(job=name))
    wish = RunJob(job=name, at=datetime.fromisoformat("2012-06-29T15:00:00-04:00"))
    first, second = [await clock.answer("cli", wish) for _ in range(2)]

    assert first.run is not None
    assert (first.run.outcome, first.run.by, first.run.as_of) == (
        "accepted",
        "cli",
        date(2012, 6, 28),
    )
    assert second.run == first.run
    assert (first.changed, second.changed) == (True, False)
    assert len(await wound.cycles(name)) == 1


async def test_a_job_that_is_not_there_and_a_moment_to_come_are_refused(
    wound: Wound, name: str
) -> None:
    clock = wound.clock({name: daily()})
    missing = await clock.answer("cli", PauseJob(job="nobodys"))
    early = await clock.answer("cli", RunJob(job=name, at=FRIDAY))

    assert (missing.outcome, missing.code) == ("rejected", "not_found")
    assert name in missing.message
    assert (early.outcome, early.code) == ("rejected", "too_early")
    assert await wound.slots(name) == []


async def test_while_the_desk_is_busy_a_slot_is_asked_for_again_but_not_for_ever(
    wound: Wound, name: str
) -> None:
    async def busy(_requester: str, _message: Message) -> Message | None:
        return RequestAnswer(outcome="rejected", code="busy", message="1,000 cycles are running")

    clock = wound.clock({name: daily()}, busy)
    wound.now = datetime.now(UTC)  # rows say when they were made
    await clock.answer("cli", RunJob(job=name, at=wound.now))
    await clock.ask_due()
    ((_, outcome),) = await wound.slots(name)
    assert outcome == "due"

    wound.now += GIVE_UP_AFTER + timedelta(minutes=1)
    await clock.ask_due()
    ((_, outcome),) = await wound.slots(name)
    assert outcome == "rejected"


async def test_a_kind_that_the_desk_cannot_run_is_told_in_the_slot(wound: Wound, name: str) -> None:
    clock = wound.clock({name: daily(kind="snapshot", approval=True)})
    answer = await clock.answer("cli", RunJob(job=name, at=wound.now))

    assert answer.run is not None
    assert answer.run.outcome == "rejected"
    assert "approval_required" in answer.run.reason


async def test_a_clock_at_work_asks_by_itself_and_a_replay_s_never_does(
    wound: Wound, name: str
) -> None:
    still = f"{name}-replay"
    clocks = (wound.clock({name: daily()}), wound.clock({still: daily()}, clock="replay"))
    await clocks[0].look()
    wound.now = FRIDAY
    async with asyncio.timeout(PATIENCE_S), AsyncExitStack() as stack:
        for each in clocks:
            stack.callback(asyncio.create_task(each.run()).cancel)
        while not await wound.cycles(name):  # noqa: ASYNC110 - the clock's own connection writes it
            await asyncio.sleep(0.05)

    assert await wound.slots(still) == []


async def test_a_slot_that_only_a_later_version_can_read_is_left_to_it_and_ends_no_orchestrator(
    wound: Wound, name: str
) -> None:
    clock = wound.clock({name: daily()})
    await clock.look()
    wound.now = FRIDAY
    await clock.look()
    change = "update schedule_slots set request = convert_to($2, 'utf8') where job = $1"
    request = await wound.pool.fetchval(
        "select convert_from(request, 'utf8') from schedule_slots where job = $1", name
    )
    await wound.pool.execute(change, name, request.replace("{", '{"of_a_later_version": 1, ', 1))

    async with Background(clock.run()) as background:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await background.failed()
    assert await wound.slots(name) == [(FRIDAY.date(), "due")]
    await wound.pool.execute(change, name, request)
    await clock.ask_due()
    assert await wound.slots(name) == [(FRIDAY.date(), "accepted")]
