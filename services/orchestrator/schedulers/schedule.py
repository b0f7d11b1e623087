"""The schedule's clock: jobs' slots as they pass, each asked for once. Every orchestrator has one.

Whoever looks first at a slot writes its row; the row names the request, and the request's key names
the cycle. So however many look, and whatever dies in between, a slot is one cycle. It is asked for
as anybody's request is, in the name `schedule`, which no key on the bus has.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import structlog
from pydantic import ValidationError

from contracts.cycle import CycleRequest, RequestAnswer
from contracts.schedule import (
    SCHEDULE,
    JobAnswer,
    JobRun,
    PauseJob,
    ResumeJob,
    RunJob,
    slot_key,
)
from contracts.subjects.schedule import PAUSE_JOB, RESUME_JOB, RUN_JOB
from contracts.types import shortened
from libs.bus.server import Server
from libs.market.calendar import ExchangeCalendar
from libs.market.sessions import LatestSession
from libs.market.slots import TimeSlot, next_slot, slots
from libs.postgres.pool import Pool, PoolConnection, Record
from libs.postgres.queries import Queries
from libs.runtime.errors import DeskError
from libs.runtime.nearest import did_you_mean, nearest
from libs.runtime.schedule_settings import Job
from libs.runtime.settings import Settings
from services.orchestrator.schedulers.missed_slots import LATE_AFTER, Planned, planned

LOOK_BACK = timedelta(days=31)
"""Slots that were missed longer ago are forgotten."""
DUE_EVERY_S = 5.0
"""How often it is looked for slots that another orchestrator has left due."""
DUE_MAX = 100
GIVE_UP_AFTER = timedelta(minutes=10)
"""How long a slot is asked for while the desk is too busy for it."""
REASON_CHARS_MAX = 4_000

# Asks for a cycle in somebody's name; None where another orchestrator is to be asked.
Ask = Callable[[str, CycleRequest], Awaitable[RequestAnswer | None]]

sql = Queries(Path(__file__).parent / "schedule.sql")
log = structlog.get_logger()


@dataclass(frozen=True)
class Time:
    """The present time, the sessions, and the newest one that has prices."""

    now: Callable[[], datetime]
    calendar: ExchangeCalendar
    latest_session: LatestSession

    async def as_of(self) -> Callable[[datetime], date]:
        """The session that a slot sees: the newest one closed by then that has prices."""
        latest = await self.latest_session()
        return lambda at: min(self.calendar.last_closed(at), latest)


class Clock:
    """Looks for slots, asks for their cycles, and answers what people ask of jobs."""

    def __init__(self, pool: Pool, ask: Ask, time: Time, settings: Settings) -> None:
        self._pool = pool
        self._ask = ask
        self._time = time
        self._jobs: Mapping[str, Job] = settings.schedule.jobs
        self._ticking = settings.schedule.clock == "wall"
        self._poll_s = settings.orchestrator.sweep_s
        self._next: dict[str, datetime] = {}
        self._seen: datetime | None = None

    async def serve(self, server: Server) -> None:
        """Begin to answer requests about jobs."""
        await server.serve(PAUSE_JOB, self.answer)
        await server.serve(RESUME_JOB, self.answer)
        await server.serve(RUN_JOB, self.answer)

    async def run(self) -> None:
        """Look for slots until cancelled."""
        if not self._jobs:
            await asyncio.Event().wait()
        asked_at = -DUE_EVERY_S
        loop = asyncio.get_running_loop()
        while True:
            try:
                looked = self._ticking and await self.look()
                if looked or loop.time() - asked_at >= DUE_EVERY_S:
                    await self.ask_due()
                    asked_at = loop.time()
            except (DeskError, ValidationError) as error:
                # What cannot be read is of a later version, whose orchestrators ask for it.
                log.warning("schedule.interrupted", error=f"{type(error).__name__}: {error}"[:400])
            await asyncio.sleep(self._poll_s)

    # --- slots ------------------------------------------------------------------------------

    async def look(self) -> bool:
        """Give rows to slots that have passed; False where none can have."""
        now = self._time.now()
        self._mind_jump(now)
        ripe = [name for name in self._jobs if name not in self._next or self._next[name] <= now]
        if not ripe:
            return False
        as_of = await self._time.as_of()
        await self._pool.execute(sql.meet, ripe, now)
        for name in ripe:
            async with self._pool.acquire() as db, db.transaction():
                seen = await self._look_at(db, name, now, as_of)
            if seen:
                after = next_slot(self._jobs[name].moments, self._time.calendar, now)
                self._next[name] = after.at if after else now + LOOK_BACK
        return True

    def _mind_jump(self, now: datetime) -> None:
        """Say that the clock has jumped back: what ran while it was ahead does not run again."""
        if self._seen is not None and now < self._seen - LATE_AFTER:
            log.error(
                "schedule.clock_back",
                now=now.isoformat(),
                was=self._seen.isoformat(),
                why="slots up to then have run or were missed; none runs until it is later again",
            )
        self._seen = now

    async def _look_at(
        self, db: PoolConnection, name: str, now: datetime, as_of: Callable[[datetime], date]
    ) -> bool:
        """Whether its slots up to now have their rows; not while another is at it."""
        row = await db.fetchrow(sql.lock_job, name)
        if row is None:
            return False
        job = self._jobs[name]
        if row["paused_at"] is None:
            since = max(row["looked_until"], now - LOOK_BACK)
            due = slots(job.moments, self._time.calendar, since, now)
            for plan in planned(due, now, job):
                await self._put(db, name, plan, as_of(plan.slot.at))
                if plan.late:
                    log.warning(
                        "schedule.missed",
                        job=name,
                        slot=plan.slot.at.isoformat(),
                        becomes=plan.outcome,
                        others=plan.missed,
                    )
        await db.execute(sql.looked, name, now)
        return True

    async def _put(
        self, db: PoolConnection | Pool, name: str, plan: Planned, as_of: date, by: str = ""
    ) -> None:
        job = self._jobs[name]
        request = job.request(slot_key(name, plan.slot.at))
        body = request.model_copy(update={"as_of": as_of}).model_dump_json().encode()
        await db.execute(
            sql.put_slot,
            name,
            plan.slot.at,
            plan.slot.session,
            as_of,
            list(job.accounts),
            body,
            plan.outcome,
            plan.late,
            plan.missed,
            by,
        )

    # --- requests ---------------------------------------------------------------------------

    async def ask_due(self) -> None:
        """Ask for the cycles of slots that are due, the earliest first."""
        for row in await self._pool.fetch(sql.due, DUE_MAX):
            await self._ask_for(row)

    async def _ask_for(self, row: Record) -> None:
        answer = await self._ask(SCHEDULE, CycleRequest.model_validate_json(row["request"]))
        if answer is None:
            return
        too_old = self._time.now() - row["made_at"] > GIVE_UP_AFTER
        if answer.code == "busy" and not too_old:
            log.warning("schedule.busy", job=row["job"], slot=row["slot"].isoformat())
            return
        await self._pool.execute(
            sql.settle,
            row["job"],
            row["slot"],
            answer.outcome,
            answer.cycle_id if answer.outcome == "accepted" else None,
            shortened(answer.message, REASON_CHARS_MAX),
        )
        log.info(
            "schedule.asked",
            job=row["job"],
            slot=row["slot"].isoformat(),
            as_of=row["as_of"].isoformat(),
            outcome=answer.outcome,
            cycle_id=str(answer.cycle_id),
        )

    # --- what people ask ----------------------------------------------------------------------

    async def answer(self, caller: str, message: PauseJob | ResumeJob | RunJob) -> JobAnswer:
        """Pause, resume or run a job, as a person asks; returns the answer."""
        if message.job not in self._jobs:
            names = ", ".join(self._jobs) or "none: see docs/schedule.md"
            near = nearest(message.job, self._jobs)
            text = f"no job is named {message.job!r}; there are {names}{did_you_mean(near)}"
            return JobAnswer(outcome="rejected", code="not_found", message=text, suggestion=near)
        await self._pool.execute(sql.meet, [message.job], self._time.now())
        match message:
            case PauseJob():
                status = await self._pool.execute(sql.pause, message.job, caller, message.reason)
                return _changed(status)
            case ResumeJob():
                status = await self._pool.execute(sql.resume, message.job, self._time.now())
                return _changed(status)
            case RunJob():
                return await self._run(caller, message)

    async def _run(self, caller: str, request: RunJob) -> JobAnswer:
        now, at = self._time.now(), request.at.astimezone(UTC)
        if at > now + LATE_AFTER:
            text = f"it is {now:%Y-%m-%d %H:%M:%S} UTC, before {at.isoformat()}; try again then"
            return JobAnswer(outcome="rejected", code="too_early", message=text)
        as_of = (await self._time.as_of())(at)
        local = at.astimezone(self._time.calendar.zone).date()
        slot = TimeSlot(at, self._time.calendar.session_on_or_before(local))
        await self._put(self._pool, request.job, Planned(slot, "due", late=False), as_of, caller)
        row = await self._pool.fetchrow(sql.unsettled, request.job, at)
        if row is not None:
            await self._ask_for(row)
        run = await self._pool.fetchrow(sql.run, request.job, at)
        return JobAnswer(outcome="accepted", changed=row is not None, run=JobRun(**dict(run)))


def _changed(status: str) -> JobAnswer:
    return JobAnswer(outcome="accepted", changed=not status.endswith(" 0"))
