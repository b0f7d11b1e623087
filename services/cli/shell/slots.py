"""The slots of the schedule's jobs over past sessions, each run to its end."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from contracts.audit import Event
from contracts.cycle import TIMEOUT_S_DEFAULT, CycleStatus
from contracts.schedule import SCHEDULE, JobAnswer, JobRun, JobView, RunJob, slot_key
from contracts.subjects import RUN_JOB
from libs.bus.client import Client
from libs.market.calendar import ExchangeCalendar
from libs.market.slots import Slot, slots
from libs.runtime import ids
from libs.runtime.settings import Settings
from libs.runtime.when import OFFSET_MAX, parse
from services.cli.shell.problem import ExitCode, Problem
from services.cli.shell.request import follow


@dataclass(frozen=True)
class Slots:
    """Runs single slots of the schedule's jobs; `heard` hears the events of their cycles."""

    client: Client
    settings: Settings
    heard: Callable[[Event], None] = lambda _: None

    async def asked(self, job: str, at: datetime) -> JobRun:
        """The run as it stands right after it was asked for. Raises `Problem` where it is a no."""
        answer = accepted(await self.client.ask(RUN_JOB, RunJob(job=job, at=at)))
        if answer.run is None or answer.run.outcome == "rejected":
            why = answer.run.reason if answer.run else "the desk gave no reason"
            raise Problem(ExitCode.REJECTED, f"the desk refused the run: {why}")
        return answer.run

    async def to_its_end(self, job: str, at: datetime) -> JobRun:
        """The run once its cycle has ended."""
        known = self.settings.schedule.jobs.get(job)
        limit_s = known.timeout_s if known else TIMEOUT_S_DEFAULT
        cycle_id = ids.cycle_id(SCHEDULE, slot_key(job, at))
        async with self.client.events(cycle_id) as events:
            run = await self.asked(job, at)
            if run.status is not CycleStatus.RUNNING:
                return run
            view = await follow(self.client, cycle_id, events, limit_s, self.heard)
        return run.model_copy(update={"status": view.status, "reason": view.reason})


def slots_of(
    jobs: Sequence[JobView], calendar: ExchangeCalendar, first: date, last: date
) -> Iterator[tuple[str, Slot]]:
    """The slots of all jobs on these sessions, in order; jobs at one moment as they are listed."""
    before = datetime.combine(first, time(), calendar.zone) - OFFSET_MAX
    after = datetime.combine(last + timedelta(days=1), time(), calendar.zone) + OFFSET_MAX
    runs = [
        (slot.at, number, job.name, slot)
        for number, job in enumerate(jobs)
        if job.paused_at is None
        for slot in slots([parse(text) for text in job.when], calendar, before, after)
        if first <= slot.session <= last
    ]
    for _, _, name, slot in sorted(runs):
        yield name, slot


def accepted(answer: JobAnswer) -> JobAnswer:
    """The answer, where it is a yes. Raises `Problem` where it is a no."""
    if answer.outcome == "accepted":
        return answer
    code = ExitCode.NOT_FOUND if answer.code == "not_found" else ExitCode.REJECTED
    raise Problem(code, answer.message, "deskbus schedule list")
