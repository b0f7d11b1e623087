"""The slots of the schedule's jobs over past sessions, each run to its end."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as clock_time

from contracts.account import Portfolio
from contracts.account_query import AccountQuery
from contracts.audit import Event
from contracts.cycle import CycleStatus
from contracts.schedule import (
    SCHEDULE,
    JobAnswer,
    JobRun,
    JobView,
    RunJob,
    ScheduleQuery,
    slot_key,
)
from contracts.subjects.accounts import ACCOUNT
from contracts.subjects.schedule import RUN_JOB
from contracts.subjects.schedule import SCHEDULE as SCHEDULE_QUERY
from libs.bus.client import Client
from libs.market.calendar import ExchangeCalendar
from libs.market.slots import TimeSlot, slots
from libs.runtime import ids
from libs.runtime.errors import DeskError
from libs.runtime.when import OFFSET_MAX, parse
from services.cli.shell.invalid import typed
from services.cli.shell.problem import CliProblem, ExitCode, refusal
from services.cli.shell.request import follow

EQUITY_EVERY_S = 1.0
"""How often the replayed accounts are looked at."""


REPLAY_HINT = (
    "replay on a separate desk: `export DESKBUS_DATA_DIR=.deskbus-replay; deskbus up --detach`, "
    "then the same command"
)


@dataclass(frozen=True)
class Slots:
    """Runs single slots of the schedule's jobs; `heard` hears the events of their cycles."""

    client: Client
    heard: Callable[[Event], None] = lambda _: None

    async def asked(self, job: str, at: datetime) -> JobRun:
        """The run as it stands right after it was asked for. Raises `CliProblem` where it is a
        no."""
        request = typed("job", RunJob, job=job, at=at)
        answer = accepted(await self.client.ask(RUN_JOB, request))
        if answer.run is None or answer.run.outcome == "rejected":
            raise await self._refused(job, answer.run)
        return answer.run

    async def _refused(self, job: str, run: JobRun | None) -> CliProblem:
        """The desk's no to a run, and what to do where its accounts have gone past it: another
        account of the same job finds its slots done, and a clock never goes back."""
        if run is None:
            return CliProblem(f"the desk refused {job}, without a reason", code=ExitCode.REJECTED)
        jobs = (await self.client.ask(SCHEDULE_QUERY, ScheduleQuery())).jobs
        accounts = [name for view in jobs if view.name == job for name in view.accounts]
        books = [await books_of(self.client, name) for name in accounts]
        is_past = any(one is not None and one.as_of > run.as_of for one in books)
        hint = REPLAY_HINT if is_past else ""
        text = f"the desk refused {job} of {run.session}: {run.reason}"
        return CliProblem(text, hint, ExitCode.REJECTED)

    async def to_its_end(self, job: str, at: datetime) -> JobRun:
        """The run once its cycle has ended."""
        cycle_id = ids.cycle_id(SCHEDULE, slot_key(job, at))
        async with self.client.events(cycle_id) as events:
            run = await self.asked(job, at)
            if run.status is not CycleStatus.RUNNING:
                return run
            view = await follow(self.client, cycle_id, events, self.heard)
        return run.model_copy(update={"status": view.status, "reason": view.reason})


async def books_of(client: Client, account: str) -> Portfolio | None:
    """The books of an account; None where it is not open."""
    return (await client.ask(ACCOUNT, AccountQuery(account=account, fills=0))).portfolio


class RunningEquity:
    """The equity of the accounts of a replay's jobs, asked for so seldom that it costs no time."""

    def __init__(self, client: Client, jobs: Sequence[JobView]) -> None:
        self._client = client
        self._accounts = {job.name: job.accounts for job in jobs}
        self._text: dict[str, str] = {}
        self._asked_at: dict[str, float] = {}

    async def of(self, job: str) -> str:
        """`, main 104,233 USD`; empty while no account of the job is open."""
        parts = [await self._equity(account) for account in self._accounts[job]]
        return "".join(parts)

    async def _equity(self, account: str) -> str:
        now = time.monotonic()
        if now - self._asked_at.get(account, -EQUITY_EVERY_S) < EQUITY_EVERY_S:
            return self._text.get(account, "")
        self._asked_at[account] = now
        try:
            books = await books_of(self._client, account)
        except DeskError:
            books = None  # a figure beside the replay ends none; who waits for a slot says it
        if books is not None:
            equity = books.equity  # in whole units: the line has 80 columns
            self._text[account] = f", {account} {equity.amount:,.0f} {equity.currency}"
        return self._text.get(account, "")


def slots_of(
    jobs: Sequence[JobView], calendar: ExchangeCalendar, first: date, last: date
) -> Iterator[tuple[str, TimeSlot]]:
    """The slots of all jobs on these sessions, in order; jobs at one moment as they are listed."""
    first, last = max(first, calendar.first), min(last, calendar.last)
    before = datetime.combine(first, clock_time(), calendar.zone) - OFFSET_MAX
    after = datetime.combine(last + timedelta(days=1), clock_time(), calendar.zone) + OFFSET_MAX
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
    """The answer about a job, where it is a yes. Raises `CliProblem` where it is a
    no."""
    if answer.outcome == "accepted":
        return answer
    raise refusal(answer.code, answer.message, "deskbus schedule list")
